"""Finds what must have run before calls show anything about a changed statement.

A value that the statement reads may be a tensor on one branch and a number on another. Each place
that sets such a value is a definition, and so is each side of a conditional expression.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from flake8_torchperf.runtime.verify.changed import changed_lines

# Definitions of definitions are followed this far.
_MOST_STEPS = 6


@dataclass(frozen=True, slots=True)
class Definition:
    """An expression that sets ``name``; its place as `ast` counts it."""

    name: str
    value: ast.expr

    def to_dict(self, number: int) -> dict[str, object]:
        """Return it as the child takes the places whose instructions it counts."""
        value = self.value
        return {
            "id": str(number),
            "name": self.name,
            "first": value.lineno,
            "column": value.col_offset,
            "last": value.end_lineno or value.lineno,
            "end_column": value.end_col_offset or 0,
        }


def definitions(before: str, after: str, function: ast.AST) -> list[Definition]:
    """Return what sets the values that the changed statements of a function read.

    ``before`` and ``after`` are the texts of the file, and ``function`` is a node of the first.
    """
    changed = changed_lines(before, after)
    read = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.lineno in changed
    }
    if not changed:
        return []
    within = _loop_around(function, changed)
    found: list[Definition] = []
    everything = list(_bindings(function))
    for _ in range(_MOST_STEPS):
        more = [
            one
            for one in everything
            if one.name in read
            and one not in found
            and one.value.lineno not in changed
            and (one.value.lineno < max(changed) or one.value.lineno in within)
        ]
        if not more:
            break
        found += more
        read |= {
            node.id for one in more for node in ast.walk(one.value) if isinstance(node, ast.Name)
        }
    return [part for one in found for part in _sides(one)]


def _loop_around(function: ast.AST, changed: set[int]) -> set[int]:
    """Return the lines of the loops that hold a changed line: what follows there runs before."""
    lines: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if not changed.isdisjoint(span):
                lines.update(span)
    return lines


def _bindings(function: ast.AST) -> Iterator[Definition]:
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from _named(targets, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                yield from _named([target], value)


def _named(targets: Iterable[ast.expr], value: ast.expr) -> Iterator[Definition]:
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield Definition(node.id, value)


def _sides(one: Definition) -> Iterator[Definition]:
    """Return a definition, or the sides of its conditional expression."""
    match one.value:
        case ast.IfExp(body=body, orelse=other):
            yield from _sides(Definition(one.name, body))
            yield from _sides(Definition(one.name, other))
        case _:
            yield one
