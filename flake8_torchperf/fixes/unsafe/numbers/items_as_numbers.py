"""``for x, n in zip(xs, lengths)`` -> ``zip(xs, lengths.tolist())`` where each ``n`` is a number.

Also ``for t, h, w in grid`` -> ``for t, h, w in grid.tolist()``: one read for all rounds.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import names_in, used_outside
from flake8_torchperf.fixes.shared.loops.element_reads import elements_read, number_reads
from flake8_torchperf.fixes.shared.tensors import is_tensor
from flake8_torchperf.syntax.traversal import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_PATHS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


class _Given(NamedTuple):
    """The tensor that gives a name its items, and all names that its items are unpacked to."""

    tensor: ast.expr
    names: tuple[str, ...]


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loop or comprehension that uses the items of a tensor as numbers alone."""
    for read in elements_read(place.site):
        if isinstance(read.element, ast.Name):
            edit = _planned(place, read.element)
            if edit is not None:
                return edit
    return None


def _planned(place: FixPlace, name: ast.Name) -> Edit | None:
    found = _binding(place, name)
    if found is None:
        return None
    loop, given, scope = found
    if not isinstance(given.tensor, _PATHS) or set(given.names) & names_in([given.tensor]):
        return None
    numbers = place.around.known(number_reads)
    reads = numbers.by_element
    uses = [
        one
        for part in scope
        for one in ast.walk(part)
        if isinstance(one, ast.Name) and one.id in given.names
    ]
    if not uses or not all(id(one) in reads for one in uses):
        return None
    if isinstance(loop, ast.For) and any(used_outside(place, one, loop) for one in given.names):
        return None
    shown = any(id(one) in numbers.of_tensors for one in uses)
    if not shown and not is_tensor(given.tensor, place.around):
        return None
    calls = [(reads[id(one)], one.id) for one in uses if reads[id(one)] is not one]
    facts = {"names": tuple(text for _, text in calls)}
    return Edit((given.tensor, *(node for node, _ in calls)), facts)


def _binding(place: FixPlace, name: ast.Name) -> tuple[ast.AST, _Given, Sequence[ast.AST]] | None:
    """Return the loop or clause that binds a name, what gives it, and the code that may use it."""
    here = place.around.parent(name)
    while here is not None and not isinstance(here, (*FUNCTIONS, ast.Lambda)):
        match here:
            case ast.For(target=target, iter=iterated, body=body) if name.id in names_in([target]):
                given = _given(place, target, iterated, name.id)
                return None if given is None else (here, given, body)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for clause in here.generators:
                    if name.id in names_in([clause.target]):
                        given = _given(place, clause.target, clause.iter, name.id)
                        scope = [one for one in ast.iter_child_nodes(here) if one is not clause]
                        alone = given is not None and not clause.is_async
                        return (clause, given, [*scope, *clause.ifs]) if alone and given else None
        here = place.around.parent(here)
    return None


def _given(place: FixPlace, target: ast.expr, iterated: ast.expr, name: str) -> _Given | None:
    """Return what gives a name its values in ``for target in iterated``; None where unclear."""
    elts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if isinstance(iterated, ast.Call):
        called = place.around.qualified(iterated.func)
        if any(isinstance(one, ast.Starred) for one in (*iterated.args, *elts)):
            return None
        if called == "builtins.zip" and len(elts) == len(iterated.args):
            pairs = zip(elts, iterated.args, strict=True)
            return next((_item(one, arg) for one, arg in pairs if _binds(one, name)), None)
        if called == "builtins.enumerate" and len(elts) == 2 and iterated.args:
            held = iterated.args[0]
            return _given(place, elts[1], held, name) or _item(elts[1], held)
        if called in ("builtins.zip", "builtins.enumerate"):
            return None
    return _item(target, iterated) if elts else None


def _binds(target: ast.expr, name: str) -> bool:
    return name in names_in([target])


def _item(target: ast.expr, tensor: ast.expr) -> _Given | None:
    """Return the names of a target that each item of a tensor fills."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [one.id for one in parts if isinstance(one, ast.Name)]
    return _Given(tensor, tuple(names)) if len(names) == len(parts) else None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Read the tensor where it is iterated, and no longer its items."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    tensor, *calls = nodes
    assert isinstance(tensor, cst.BaseExpression)
    new: list[cst.CSTNode] = [cst.Call(cst.Attribute(tensor, cst.Name("tolist")))]
    for call, name in zip(calls, edit.facts["names"], strict=True):
        assert isinstance(call, cst.BaseExpression)
        new.append(build.in_place_of(call, cst.Name(name)))
    return new
