"""Applies edits to a text: parses it once with libcst and rewrites only the nodes of the edits."""

from __future__ import annotations

import ast
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from flake8_torchperf.fixes.engine.build import comments_in, tidied
from flake8_torchperf.fixes.engine.imports import with_imports
from flake8_torchperf.fixes.engine.libcst_nodes import Positions
from flake8_torchperf.fixes.engine.lines.quotes import prevailing_quote, with_quotes
from flake8_torchperf.fixes.engine.registry import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.findings.finding import Edit

Replacement: TypeAlias = "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel"


@dataclass(frozen=True, slots=True)
class Applied:
    """The changed text, and the edits that are in it.

    ``waiting`` are edits that overlap with another one: they are made in the next round.
    """

    text: str
    edits: tuple[Edit, ...] = ()
    waiting: tuple[Edit, ...] = ()


def apply_edits(text: str, edits: Sequence[Edit]) -> Applied:
    """Return ``text`` with the edits made; an edit that cannot be made is left out.

    The edits' nodes belong to the ast of ``text``. Of several edits in one expression or statement,
    only the first is made in a call. Text that libcst does not reproduce unchanged is not touched.
    """
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return Applied(text)
    if module.code != text:
        return Applied(text)
    positions = Positions(module, io.StringIO(text, newline="").readlines())
    chosen: dict[cst.CSTNode, Replacement] = {}
    made: list[Edit] = []
    waiting: list[Edit] = []
    quote = ""
    for edit in edits:
        nodes = [found for node in edit.nodes if (found := positions.find(node)) is not None]
        if len(nodes) != len(edit.nodes):
            continue
        if _overlap(nodes, chosen):
            waiting.append(edit)
            continue
        new = load(edit.safety, edit.name).rewrite(nodes, edit)
        if len(new) == len(nodes) and _keeps_comments(nodes, new):
            quote = quote or prevailing_quote(text)
            new = [with_quotes(one, nodes, quote) for one in new]
            chosen.update(zip(nodes, new, strict=True))
            made.append(edit)
    if not made:
        return Applied(text, (), tuple(waiting))
    changed = module.visit(_Replacing(chosen))
    imports = [name for edit in made for name in edit.imports]
    result = with_imports(changed, imports).code
    if not _parses(result):
        return Applied(text) if len(made) == 1 else _one_by_one(text, edits)
    return Applied(result, tuple(made), tuple(waiting))


def _one_by_one(text: str, edits: Sequence[Edit]) -> Applied:
    """Return the first edit that can be made alone, for edits that together give no Python."""
    for index, edit in enumerate(edits):
        applied = apply_edits(text, [edit])
        if applied.edits:
            return Applied(applied.text, applied.edits, tuple(edits[index + 1 :]))
    return Applied(text)


class _Replacing(cst.CSTTransformer):
    """Replaces the chosen nodes of one tree."""

    def __init__(self, chosen: dict[cst.CSTNode, Replacement]) -> None:
        super().__init__()
        self._chosen = chosen

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Replacement:
        """Return the node's replacement."""
        if original_node in self._chosen:
            return self._chosen[original_node]
        if isinstance(updated_node, cst.Slice) and _has_one(original_node, self._chosen):
            return tidied(updated_node)
        return super().on_leave(original_node, updated_node)


def _has_one(node: cst.CSTNode, chosen: dict[cst.CSTNode, Replacement]) -> bool:
    """True if one of a node's own parts is replaced."""
    return any(child in chosen for child in node.children)


def _overlap(nodes: Sequence[cst.CSTNode], chosen: dict[cst.CSTNode, Replacement]) -> bool:
    """True if one of the nodes contains, or lies in, a node that is already being changed."""
    return any(_holds(node, other) or _holds(other, node) for node in nodes for other in chosen)


def _holds(outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
    waiting = [outer]
    while waiting:
        node = waiting.pop()
        if node is inner:
            return True
        waiting += node.children
    return False


def _keeps_comments(before: Sequence[cst.CSTNode], after: Sequence[Replacement]) -> bool:
    """True if every comment in the replaced nodes is also in their replacements."""
    kept: list[str] = []
    for one in after:
        if isinstance(one, cst.FlattenSentinel):
            kept += [comment for node in one for comment in comments_in(node)]
        elif isinstance(one, cst.CSTNode):
            kept += comments_in(one)
    for node in before:
        for comment in comments_in(node):
            if comment not in kept:
                return False
            kept.remove(comment)
    return True


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
