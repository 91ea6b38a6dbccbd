"""The assignments of a name that one use of it may see, by the blocks of a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def seen_by(use: ast.Name, values: list[ast.AST], body: Sequence[ast.stmt]) -> list[ast.AST]:
    """Return the values that may be the last assigned before ``use``; in doubt, return all values.

    An assignment before the use, in its own block or in a block around it, hides earlier ones. If
    an assignment in another block (``if``, ``for``) may come in between, any value may be seen.
    """
    if not values:
        return []  # a name of the module, or a builtin
    lines = sorted(line_of(value) for value in values)
    for block, before in reversed(_around(use, body)):
        for place in range(before - 1, -1, -1):
            statement = block[place]
            if statement.lineno > lines[-1] or not _within(statement, lines):
                continue
            given = _assigned(statement, use.id)
            if given is None or not any(given is value for value in values):
                return values
            return [given]
    return values


def line_of(node: ast.AST) -> int:
    """Return the line of a node; for a node without a place, the line of its first part."""
    while not hasattr(node, "lineno"):
        node = next(ast.iter_child_nodes(node))
    return int(node.lineno)


def _within(statement: ast.stmt, lines: list[int]) -> bool:
    end = statement.end_lineno or statement.lineno
    return any(statement.lineno <= line <= end for line in lines)


def _around(use: ast.Name, body: Sequence[ast.stmt]) -> list[tuple[Sequence[ast.stmt], int]]:
    """Return the blocks around a use, outermost first, with its statement's index in each."""
    found: list[tuple[Sequence[ast.stmt], int]] = []
    block: Sequence[ast.stmt] | None = body
    while block:
        place = _place(use, block)
        if place is None:
            return found
        found.append((block, place))
        block = next((b for b in _blocks(block[place]) if _place(use, b) is not None), None)
    return found


def _place(use: ast.Name, block: Sequence[ast.stmt]) -> int | None:
    for place, statement in enumerate(block):
        if statement.lineno <= use.lineno <= (statement.end_lineno or statement.lineno):
            return place
    return None


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks.extend(handler.body for handler in getattr(statement, "handlers", []))
    blocks.extend(case.body for case in getattr(statement, "cases", []))
    return [block for block in blocks if isinstance(block, list)]


def _assigned(statement: ast.stmt, name: str) -> ast.AST | None:
    match statement:
        case ast.FunctionDef(name=made) | ast.AsyncFunctionDef(name=made):
            return statement if made == name else None
        case ast.Assign(targets=targets, value=value):
            named = any(isinstance(t, ast.Name) and t.id == name for t in targets)
            return value if named else None
        case ast.AnnAssign(target=ast.Name(id=target), value=value):
            return value if target == name else None
    return None
