"""Loops that put away what they go through: over a tensor's rows, that is one ``unbind``.

By syntax alone.
"""

from __future__ import annotations

import ast

from flake8_torchperf.candidates.nominate import called_name
from flake8_torchperf.hotness.loop_kinds import COMPREHENSIONS, head_of, names_in
from flake8_torchperf.syntax.traversal import children, once, walk

# Methods of lists and queues that keep what they are given.
STORING = frozenset(("append", "appendleft", "add", "insert", "put"))
# Displays hold what stands in them.
DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


@once
def only_keeps(loop: ast.AST) -> bool:
    """``for row in t: rows.append(row)``, ``{k: row for k, row in zip(keys, t)}``.

    ``Tensor.__iter__`` makes all rows with one ``unbind`` (torch/_tensor.py); whatever else is
    launched for each row, the loop's body launches.
    """
    head = head_of(loop)
    rows = frozenset[str]() if head is None else frozenset(names_in(_row(head)))
    if isinstance(loop, COMPREHENSIONS):
        if len(loop.generators) > 1 or loop.generators[0].ifs:
            return False
        made = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
        return all(_kept(part, rows) for part in made)
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    return all(_stores(statement, rows) for statement in loop.body)


@once
def listed_calls(function: ast.AST) -> frozenset[int]:
    """The calls, by identity, that a list or a tuple is made of: ``tuple(zip(keys, values))``."""
    found: set[int] = set()
    for call in walk([function]):
        match call:
            case ast.Call(func=ast.Name(id="list" | "tuple"), args=[ast.Call() as inner]):
                found.add(id(inner))
    return frozenset(found)


@once
def moves_each(loop: ast.AST) -> bool:
    """``[t.to(device) for t in tensors]``: who has one tensor moves it as a whole.

    What is moved item by item is a list of tensors, whatever its declaration says.
    """
    if not isinstance(loop, COMPREHENSIONS) or isinstance(loop, ast.DictComp):
        return False
    match loop.generators, loop.elt:
        case (
            [ast.comprehension(target=ast.Name(id=row))],
            ast.Call(func=ast.Attribute(value=ast.Name(id=moved), attr="to" | "cuda")),
        ):
            return moved == row
    return False


def _row(head: ast.For | ast.AsyncFor | ast.comprehension) -> ast.expr:
    """What a loop calls a row; what ``enumerate`` counts is a number beside it."""
    match head.iter, head.target:
        case ast.Call(func=ast.Name(id="enumerate")), ast.Tuple(elts=[_, row]):
            return row
    return head.target


def _stores(statement: ast.AST, rows: frozenset[str]) -> bool:
    """Does a statement of the body no more than keep rows, if it has to do with them at all?"""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name)) as call):
            if name in STORING and not call.keywords and rows.isdisjoint(names_in(owner)):
                return all(_kept(argument, rows) for argument in call.args)
        case ast.Expr(value=ast.Yield(value=ast.expr() as value)):
            return _kept(value, rows)
    return rows.isdisjoint(names_in(statement))


def _kept(part: ast.AST, rows: frozenset[str]) -> bool:
    """Does a piece of code only name rows, or hold them in displays and records?"""
    if isinstance(part, ast.Name) or rows.isdisjoint(names_in(part)):
        return True
    held = isinstance(part, DISPLAYS) or (isinstance(part, ast.Call) and _makes_record(part.func))
    return held and all(
        _kept(inner.value if isinstance(inner, ast.keyword) else inner, rows)
        for inner in children(part)
    )


def _makes_record(called: ast.expr) -> bool:
    """``PixelData(heatmaps=row)``: a class, by its name."""
    name = called_name(called)
    return name[:1].isupper() and not name.isupper()
