"""``for i in range(n): ... x[i].item() ...`` -> ``x_list = x.tolist()`` before it, ``x_list[i]``.

For a tensor that the loop does not change, whose elements it reads as numbers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import fresh_name, names_in
from flake8_torchperf.fixes.shared.loops.element_reads import elements_read, number_reads
from flake8_torchperf.fixes.shared.loops.unchanged import is_unchanged, runs_always
from flake8_torchperf.fixes.shared.tensors import bindings, is_tensor
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.traversal import FUNCTIONS, below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace
    from flake8_torchperf.fixes.shared.loops.element_reads import ElementRead
    from flake8_torchperf.judgement.judged_site import JudgedSite


def plan(place: FixPlace) -> Edit | None:
    """Apply to the elements of one tensor at the index of a loop, once for all of its reads."""
    for read in _of_elements(place.site):
        owner, index = _parts(read.element)
        loop = None if owner is None else _loop(place, read.node, index)
        if owner is None or loop is None or not is_unchanged(names_in([owner]), loop, place.around):
            continue
        name = _name(place, owner, loop)
        numbers = place.around.known(number_reads)
        found = numbers.by_owner.get(ast.dump(owner), [])
        reads = [one for one in found if _reads_at(one, owner, loop, place)]
        known = any(id(one.element) in numbers.of_tensors for one in reads)
        if not name or not (known or is_tensor(owner, place.around)):
            continue
        if not _is_there(place, owner, loop, reads):
            continue
        texts = tuple(f"{name}[{ast.unparse(_index(one.element))}]" for one in reads)
        facts = {"name": name, "owner": ast.unparse(owner), "texts": texts}
        return Edit((loop, *(one.node for one in reads)), facts)
    return None


def _of_elements(site: JudgedSite) -> Iterator[ElementRead]:
    """Yield the reads of items among those of a site."""
    yield from (one for one in elements_read(site) if isinstance(one.element, ast.Subscript))


def _parts(element: ast.expr) -> tuple[ast.expr | None, str]:
    """Return the tensor of ``x[i]`` or ``x[i + 1]``, and the name of the index."""
    match element:
        case ast.Subscript(value=owner, slice=ast.Name(id=index)):
            pass
        case ast.Subscript(
            value=owner,
            slice=ast.BinOp(
                left=ast.Name(id=index),
                op=ast.Add() | ast.Sub(),
                right=ast.Constant(value=int()),
            ),
        ):
            pass
        case _:
            return None, ""
    return (owner if _is_path(owner) else None), index


def _is_path(node: ast.expr) -> bool:
    """True for a name, or an attribute of one that is not ``self``."""
    match node:
        case ast.Name(id=name):
            return name not in ("self", "cls")
        case ast.Attribute(value=ast.Name() as inner):
            return _is_path(inner)
    return False


def _index(element: ast.expr) -> ast.expr:
    assert isinstance(element, ast.Subscript)
    return element.slice


def _loop(place: FixPlace, node: ast.AST, index: str) -> ast.For | None:
    """Return the loop around a node that counts with a name; None if it is bound in another way."""
    inner: ast.AST = node
    here = place.around.parent(node)
    while here is not None and not isinstance(here, (*FUNCTIONS, ast.Lambda)):
        if isinstance(here, ast.For) and inner in here.body and index in names_in([here.target]):
            return here if _counts(place, here, index) else None
        if index in all_bound_by(ast.iter_child_nodes(here)) and not isinstance(here, ast.For):
            stores = (one for one in ast.walk(here) if isinstance(one, ast.comprehension))
            if any(index in names_in([one.target]) for one in stores):
                return None
        inner, here = here, place.around.parent(here)
    return None


def _counts(place: FixPlace, loop: ast.For, index: str) -> bool:
    """True for ``for i in range(n)`` and ``for i, x in enumerate(xs)``, if nothing else binds i."""
    if index in all_bound_by(loop.body) or not isinstance(loop.iter, ast.Call):
        return False
    called = place.around.qualified(loop.iter.func)
    match loop.target:
        case ast.Name():
            return called == "builtins.range"
        case ast.Tuple(elts=[ast.Name(id=first), *_]):
            return called == "builtins.enumerate" and first == index
    return False


def _is_there(
    place: FixPlace, owner: ast.expr, loop: ast.For, reads: Sequence[ElementRead]
) -> bool:
    """True if a loop that runs a round reads the tensor in it, so that it is not None there."""
    if any(runs_always(place, one.node, loop) for one in reads):
        return True
    function = place.around.function(loop)
    if not isinstance(owner, ast.Name) or function is None:
        return False
    found = bindings(function, owner.id)
    none = any(isinstance(one, ast.Constant) for one in found) or None in found
    tested = any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        and owner.id in names_in([node.left])
        for node in below(function)
    )
    optional = any(isinstance(one, ast.arg) and one.annotation is not None for one in found)
    return not (none or tested or (optional and not is_tensor(owner, place.around)))


def _reads_at(read: ElementRead, owner: ast.expr, loop: ast.For, place: FixPlace) -> bool:
    other, index = _parts(read.element)
    if other is None or ast.dump(other) != ast.dump(owner):
        return False
    return _loop(place, read.node, index) is loop


def _name(place: FixPlace, owner: ast.expr, loop: ast.For) -> str:
    """Return a name for the list of a tensor's elements; "" if none is free."""
    last = owner.attr if isinstance(owner, ast.Attribute) else ast.unparse(owner)
    base = last.strip("_")
    return fresh_name(place, loop, (f"{base}_list", f"{base}_values", f"{base}_numbers"))


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]]:
    """Read the tensor before the loop, and its elements from the list."""
    from flake8_torchperf.fixes.shared.nodes.before_loop import read_before

    loop, *reads = nodes
    line = f"{edit.facts['name']} = {edit.facts['owner']}.tolist()\n"
    return [read_before(loop, dict(zip(reads, edit.facts["texts"], strict=True)), line), *reads]
