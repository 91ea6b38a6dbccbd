"""Moves a statement or an expression of a loop before it, as libcst's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from flake8_torchperf.fixes.engine import build

if TYPE_CHECKING:
    from collections.abc import Sequence

Moved: TypeAlias = "cst.FlattenSentinel[cst.CSTNode]"


def moved_out(loop: cst.CSTNode, node: cst.CSTNode, name: str) -> Moved:
    """Return a statement or expression moved out of a loop, and the loop after it.

    An expression gets a name. Comments above a statement move with it; those above the loop don't.
    """
    assert isinstance(loop, (cst.For, cst.While))
    if isinstance(node, cst.SimpleStatementLine):
        new: object = loop.visit(_Without(node))
        own = _without_blank(node.leading_lines)
        line = node
    else:
        assert isinstance(node, cst.BaseExpression)
        new = loop.deep_replace(node, cst.Name(name))
        assignment = cst.Assign([cst.AssignTarget(cst.Name(name))], build.bare(node))
        line, own = cst.SimpleStatementLine([assignment]), []
    assert isinstance(new, (cst.For, cst.While))
    comments = _without_blank(loop.leading_lines)
    blank = loop.leading_lines[: len(loop.leading_lines) - len(comments)]
    before = line.with_changes(leading_lines=[*blank, *own])
    return cst.FlattenSentinel([before, new.with_changes(leading_lines=comments)])


def _without_blank(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines above a statement from the first comment on."""
    found = list(lines)
    while found and found[0].comment is None:
        found.pop(0)
    return found


class _Without(cst.CSTTransformer):
    """Takes a statement out of its block, which begins without blank lines."""

    def __init__(self, line: cst.SimpleStatementLine) -> None:
        super().__init__()
        self._line = line

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """Leave the statement out."""
        at = next((i for i, one in enumerate(original_node.body) if one is self._line), None)
        if at is None:
            return updated_node
        body = [*updated_node.body[:at], *updated_node.body[at + 1 :]]
        if at == 0 and body:
            following = body[0]
            lines = getattr(following, "leading_lines", ())
            body[0] = following.with_changes(leading_lines=_without_blank(lines))
        return updated_node.with_changes(body=body)
