"""The tests that decide if a function reaches a node: those around it and those before it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

_LEAVING = (ast.Return, ast.Break)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True)
class Guard:
    """A test with the outcome that leads on.

    `each` marks the iterable of a loop, which must not be empty. Without a test, nothing is known
    of the way.
    """

    test: ast.expr | None
    holds: bool = True
    each: bool = False


_UNKNOWN = Guard(None)


def guards(body: Sequence[ast.stmt], node: ast.AST) -> list[Guard]:
    """Return the tests on the way to a node of this block.

    Tests that only raise an exception, skip one round of a loop or filter the iterated items do not
    count.
    """
    found: list[Guard] = []
    for statement in body:
        if _holds(statement, node):
            return found + _inside(statement, node)
        found += _past(statement)
    return [_UNKNOWN]


def _holds(outer: ast.AST, node: ast.AST) -> bool:
    return any(inner is node for inner in ast.walk(outer))


def _past(statement: ast.stmt) -> list[Guard]:
    """Return the tests that must hold for a function to get past a statement."""
    match statement:
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return [_UNKNOWN]
        case ast.If(test=test, body=body, orelse=orelse):
            left = [_leaves(block) for block in (body, orelse)]
            if all(left):
                return [_UNKNOWN]
            return [Guard(test, holds=left[1])] if any(left) else []
        case ast.With(body=body) | ast.Try(body=body):
            return [guard for inner in body for guard in _past(inner)]
        case ast.For() | ast.While() | ast.Match():
            return [_UNKNOWN] if _returns(statement) else []
    return []


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """True if a block may leave the function or the loop around it, other than by an exception."""
    return any(isinstance(n, _LEAVING) for s in body for n in _own(s))


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(n, ast.Return) for n in _own(statement))


def _own(node: ast.AST) -> list[ast.AST]:
    """Return the nodes of a statement without those of functions in it."""
    found = [node]
    if not isinstance(node, _INNER):
        found += [n for child in ast.iter_child_nodes(node) for n in _own(child)]
    return found


def _inside(statement: ast.stmt, node: ast.AST) -> list[Guard]:
    """Return the tests on the way to a node in a statement."""
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            if _holds(test, node):
                return _in_expression(test, node)
            inside = any(_holds(s, node) for s in body)
            return [Guard(test, holds=inside), *guards(body if inside else orelse, node)]
        case ast.For(iter=iterated, body=body) if not _holds(iterated, node):
            return [Guard(iterated, each=True), *guards(body, node)]
        case ast.While(test=test, body=body) if not _holds(test, node):
            return [Guard(test), *guards(body, node)]
        case ast.With(body=body) if any(_holds(s, node) for s in body):
            return guards(body, node)
        case ast.Try(body=body, orelse=orelse, finalbody=finalbody):
            return guards([*body, *orelse, *finalbody], node)
        case ast.Match() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [_UNKNOWN]
    return _in_expression(statement, node)


def _in_expression(outer: ast.AST, node: ast.AST) -> list[Guard]:
    """Return the tests on the way to a node in an expression or a simple statement."""
    if outer is node:
        return []
    if isinstance(outer, ast.Lambda):
        return [_UNKNOWN]
    child = next(c for c in ast.iter_child_nodes(outer) if _holds(c, node))
    before: list[Guard] = []
    match outer:
        case ast.BoolOp(op=op, values=values):
            earlier = values[: values.index(child)] if isinstance(child, ast.expr) else []
            before = [Guard(v, holds=isinstance(op, ast.And)) for v in earlier]
        case ast.IfExp(test=test) if child is not test:
            before = [Guard(test, holds=child is outer.body)]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            first = outer.generators[0].iter
            before = [] if _holds(first, node) else [Guard(first, each=True)]
    return before + _in_expression(child, node)
