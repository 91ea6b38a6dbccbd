"""Totals that are entries of a dict: the numbers they start as, and the other uses of the dict.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.siblings import statements_before
from flake8_torchperf.syntax.traversal import DEFINITIONS, below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.fixes.engine.surroundings import Surroundings

LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (*DEFINITIONS, ast.Lambda)


@dataclass(frozen=True, slots=True)
class DictTotal:
    """A total in a dict: the number that it starts with, and the loop that adds to it."""

    start: int | float
    loop: ast.For | ast.AsyncFor | ast.While


def entry_total(target: ast.Subscript, function: ast.AST, around: Surroundings) -> DictTotal | None:
    """Return the total of ``d["loss"] += x``; None where code beyond the loop may see its entry.

    The function must make the dict, by a display or by ``dict()``, and use it only for entries with
    constant keys until the loop is over.
    """
    match target:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
            pass
        case _:
            return None
    loop = _loop(target, name, around)
    if loop is None or loop.orelse:
        return None
    start: int | float | None = None
    before = {id(one) for one in statements_before(loop, around)}
    inside = {id(node) for node in below(loop)}
    for use in _uses(function, name):
        within = id(use) in inside
        if not within and use.lineno > loop.lineno:
            continue
        above = around.parent(use)
        made = None if within else _made(above, use, key)
        if made is not None and id(above) in before:
            start = made if made == made else None  # NaN: made without the key
            continue
        index = above.slice if isinstance(above, ast.Subscript) and above.value is use else None
        if not isinstance(index, ast.Constant) or _is_in_scope(use, function, around):
            return None
        assert above is not None
        if index.value != key or above is target:
            continue
        number = _number(around.parent(above))
        if within or number is None or id(around.parent(above)) not in before:
            return None
        start = number
    return None if start is None else DictTotal(start, loop)


def _uses(function: ast.AST, name: str) -> Iterator[ast.Name]:
    """Return all uses of a name, in the order of the text."""
    found = [one for one in below(function) if isinstance(one, ast.Name) and one.id == name]
    yield from sorted(found, key=lambda one: (one.lineno, one.col_offset))


def _loop(
    target: ast.AST, name: str, around: Surroundings
) -> ast.For | ast.AsyncFor | ast.While | None:
    """Return the loop around ``target`` that follows, in its block, the making of the dict."""
    here: ast.AST | None = target
    loop: ast.For | ast.AsyncFor | ast.While | None = None
    while here is not None and not isinstance(here, _SCOPES):
        if isinstance(here, LOOPS):
            loop = here
        if isinstance(here, ast.stmt):
            for one in statements_before(here, around):
                match one:
                    case ast.Assign(targets=[ast.Name(id=bound)]) if bound == name:
                        return loop if loop is here else None
                    case ast.AnnAssign(target=ast.Name(id=bound)) if bound == name:
                        return loop if loop is here else None
        here = around.parent(here)
    return None


def _made(statement: ast.AST | None, name: ast.Name, key: str) -> float | int | None:
    """Return the number at a key of a new dict, NaN if it has none; None if the dict is not new."""
    match statement:
        case ast.Assign(targets=[target], value=value) if target is name:
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as value) if target is name:
            pass
        case _:
            return None
    pairs: list[tuple[ast.expr | None, ast.expr]]
    match value:
        case ast.Dict(keys=keys, values=values):
            pairs = list(zip(keys, values, strict=True))
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            pairs = [(ast.Constant(one.arg) if one.arg else None, one.value) for one in keywords]
        case _:
            return None
    if not all(isinstance(one, ast.Constant) for one, _ in pairs):
        return None
    at = [given for one, given in pairs if isinstance(one, ast.Constant) and one.value == key]
    if not at:
        return float("nan")
    match at:
        case [ast.Constant(value=int() | float() as number)] if type(number) is not bool:
            return number
    return None


def _number(assign: ast.AST | None) -> int | float | None:
    match assign:
        case ast.Assign(targets=[_], value=ast.Constant(value=int() | float() as number)):
            return None if isinstance(number, bool) else number
    return None


def _is_in_scope(use: ast.AST, function: ast.AST, around: Surroundings) -> bool:
    """True if a use is in a function or class within ``function``."""
    here = around.parent(use)
    while here is not None and here is not function:
        if isinstance(here, _SCOPES):
            return True
        here = around.parent(here)
    return False
