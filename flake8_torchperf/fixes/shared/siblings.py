"""The statements around one in its block. Imported while linting, so it must not import libcst."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings


def block_of(place: Place, statement: ast.stmt) -> list[ast.stmt]:
    """Return the block that contains a statement; empty if there is none."""
    parent = place.around.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and any(one is statement for one in block):
            return block
    return []


def around_in_block(place: Place, statement: ast.stmt) -> tuple[ast.stmt | None, ast.stmt | None]:
    """Return the statements directly before and after one."""
    block = block_of(place, statement)
    at = next((i for i, one in enumerate(block) if one is statement), None)
    if at is None:
        return None, None
    before = block[at - 1] if at else None
    return before, block[at + 1] if at + 1 < len(block) else None


def statements_before(statement: ast.AST, around: Surroundings) -> list[ast.stmt]:
    """Return the statements before one in its block."""
    above = around.parent(statement)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(above, field, None)
        if isinstance(block, list) and statement in block:
            return block[: block.index(statement)]
    return []
