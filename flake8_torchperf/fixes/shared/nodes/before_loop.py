"""Moves a statement or an expression of a loop before it, as libcst's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes.statements import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def read_before(loop: cst.CSTNode, texts: Mapping[cst.CSTNode, str], line: str) -> Moved:
    """Return a statement and the loop after it, with new expressions in place of some in it.

    The comments above the loop stay above it, and its blank lines above the statement.
    """
    assert isinstance(loop, cst.For)
    new = loop.visit(_Replacing({node: build.expression(text) for node, text in texts.items()}))
    assert isinstance(new, cst.For)
    (before,) = parsed(line)
    comments = _without_blank(loop.leading_lines)
    blank = loop.leading_lines[: len(loop.leading_lines) - len(comments)]
    above = before.with_changes(leading_lines=blank)
    return cst.FlattenSentinel([above, new.with_changes(leading_lines=comments)])


class _Replacing(cst.CSTTransformer):
    """Replaces expressions of one tree."""

    def __init__(self, chosen: Mapping[cst.CSTNode, cst.BaseExpression]) -> None:
        super().__init__()
        self._chosen = chosen

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel:
        """Return the node's replacement."""
        if original_node in self._chosen:
            return self._chosen[original_node]
        if isinstance(updated_node, cst.Slice):
            inner = any(child in self._chosen for child in original_node.children)
            return build.tidied(updated_node) if inner else updated_node
        return super().on_leave(original_node, updated_node)
