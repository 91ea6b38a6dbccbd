"""Moves of a tensor to a device that each round of a loop repeats, with the same result."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import STATEMENTS
from flake8_torchperf.syntax.bindings import changes_in
from flake8_torchperf.syntax.traversal import once, walk

if TYPE_CHECKING:
    from collections.abc import Sequence


def repeats_move(move: ast.Call, owner: ast.expr | None, loops: Sequence[ast.AST]) -> bool:
    """True for ``w.to(device)`` in a loop that binds neither name and does not write into ``w``."""
    if not isinstance(owner, ast.Name) or not loops or not isinstance(loops[-1], STATEMENTS):
        return False
    loop = loops[-1]
    return owner.id not in _written_in(loop) and not changes_in(move, loop)


@once
def _written_in(loop: ast.AST) -> frozenset[str]:
    """Return the names of objects that a loop changes: by an item, an attribute, ``x.add_()``."""
    found: set[str] = set()
    for node in walk([loop]):
        match node:
            case (
                ast.Subscript(value=value, ctx=ast.Store())
                | ast.Attribute(value=value, ctx=ast.Store())
            ):
                found.update(_names_in(value))
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name.endswith("_"):
                found.update(_names_in(value))
    return frozenset(found)


def _names_in(value: ast.expr) -> set[str]:
    return {node.id for node in walk([value]) if isinstance(node, ast.Name)}
