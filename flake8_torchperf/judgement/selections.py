"""Selections by a mask whose size the code needs, as the text of one function shows.

Only the device knows how many elements a mask selects. A sum over them does without the number, and
so does a value that is put back where they were (``torch.where``). Code that returns, keeps or
counts the elements needs it.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.syntax.traversal import once, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The most places that hold one selection, or what is computed of it.
MAX_HOLDERS = 60
# Expressions that hold the elements of what they hold.
_THROUGH = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.keyword, ast.NamedExpr, ast.Starred,
    ast.List, ast.Tuple, ast.Subscript,
)  # fmt: skip
# Places that keep elements, or go through them one by one.
_KEEPING = (ast.Return, ast.Yield, ast.Dict, ast.For, ast.comprehension)


def needs_size(selection: ast.AST, function: ast.AST) -> bool:
    """True if a function returns, keeps or counts the elements that a mask selects."""
    above = _parents(function)
    met: set[ast.AST] = set()
    waiting = [selection]
    while waiting and len(met) < MAX_HOLDERS:
        node = waiting.pop()
        holder = above.get(node)
        if node in met or holder is None:
            continue
        met.add(node)
        if isinstance(holder, _KEEPING) or _counts(node, holder) or _is_kept(holder):
            return True
        waiting += _holding(node, holder, above, function)
    return False


def _holding(
    node: ast.AST, holder: ast.AST, above: Mapping[ast.AST, ast.AST], function: ast.AST
) -> Iterator[ast.AST]:
    """Yield the nodes that hold the elements of a node next."""
    match holder:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield from _loads(function).get(name, ())
        case ast.Attribute(attr=name):
            call = above.get(holder)
            if not (isinstance(call, ast.Call) and call.func is holder):
                yield holder
            elif _keeps_elements(name, call, call.args):
                yield call
        case ast.Call(func=func, args=[first, *rest]) if first is node:
            name = dotted_name(func).rpartition(".")[2]
            if _keeps_elements(name, holder, rest):
                yield holder
        case _ if isinstance(holder, _THROUGH):
            yield holder


def _counts(node: ast.AST, holder: ast.AST) -> bool:
    """True if code asks how many elements there are, or appends them to a list."""
    match holder:
        case ast.Attribute(attr=name):
            return name in _counting()
        case ast.Call(func=ast.Name(id="len") | ast.Attribute(attr="append") as func):
            return func is not node
    return False


@cache
def _counting() -> frozenset[str]:
    return methods_of("counts-elements") | {"shape", "size"}


def _is_kept(holder: ast.AST) -> bool:
    """True for an assignment to an attribute, or to an item by a constant."""
    targets = holder.targets if isinstance(holder, ast.Assign) else []
    return any(
        isinstance(one, ast.Attribute)
        or (isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant))
        for one in targets
    )


def _keeps_elements(name: str, call: ast.Call, rest: list[ast.expr]) -> bool:
    """True if torch has such a method or function, and it leaves the first dimension as it is."""
    known = load().method(name) or load().function(f"torch.{name}")
    if known is None:
        return False
    is_along = bool(rest) or any(one.arg in ("dim", "axis") for one in call.keywords)
    return is_along or name not in methods_of("reduces-whole")


@once
def _parents(function: ast.AST) -> Mapping[ast.AST, ast.AST]:
    """Return what holds each node of a function."""
    return {child: node for node in walk([function]) for child in ast.iter_child_nodes(node)}


@once
def _loads(function: ast.AST) -> Mapping[str, list[ast.Name]]:
    """Return the reads of each name in a function."""
    found: dict[str, list[ast.Name]] = {}
    for node in walk([function]):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, []).append(node)
    return found
