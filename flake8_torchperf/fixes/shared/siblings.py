"""The statements around one in its block. Imported while linting, so it must not import libcst."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import once

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings


@once
def _positions(node: ast.AST) -> dict[int, tuple[str, int]]:
    """Return the block and the index of each statement right below a node, by its identity."""
    return {
        id(statement): (name, index)
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, name, None), list)
        for index, statement in enumerate(block)
    }


def block_of(place: FixPlace, statement: ast.stmt) -> list[ast.stmt]:
    """Return the block that contains a statement; empty if there is none."""
    parent = place.around.parent(statement)
    found = None if parent is None else _positions(parent).get(id(statement))
    block: list[ast.stmt] = [] if found is None else getattr(parent, found[0])
    return block


def index_of(statement: ast.stmt, around: Surroundings) -> int:
    """Return the index of a statement in its block; -1 if it is in none."""
    parent = around.parent(statement)
    found = None if parent is None else _positions(parent).get(id(statement))
    return -1 if found is None else found[1]


def around_in_block(
    place: FixPlace, statement: ast.stmt
) -> tuple[ast.stmt | None, ast.stmt | None]:
    """Return the statements directly before and after one."""
    block = block_of(place, statement)
    at = index_of(statement, place.around)
    if at < 0:
        return None, None
    before = block[at - 1] if at else None
    return before, block[at + 1] if at + 1 < len(block) else None


def statements_before(statement: ast.AST, around: Surroundings) -> list[ast.stmt]:
    """Return the statements before one in its block."""
    above = around.parent(statement)
    found = None if above is None else _positions(above).get(id(statement))
    if found is None:
        return []
    before: list[ast.stmt] = getattr(above, found[0])[: found[1]]
    return before
