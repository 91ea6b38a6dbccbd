"""Puts a statement before a loop that reads what its rounds used to, as libcst's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes.new_statements import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Moved: TypeAlias = "cst.FlattenSentinel[cst.CSTNode]"


def _without_blank(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines above a statement from the first comment on."""
    found = list(lines)
    while found and found[0].comment is None:
        found.pop(0)
    return found


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
