"""Edits in, changed text out: one parse by libcst, and only what an edit owns is written anew."""

from __future__ import annotations

import ast
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from flake8_torchperf.fixes.engine.build import comments_in
from flake8_torchperf.fixes.engine.imports import with_imports
from flake8_torchperf.fixes.engine.positions import Positions
from flake8_torchperf.fixes.engine.registry import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.findings.model import Edit

Replacement: TypeAlias = "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel"


@dataclass(frozen=True, slots=True)
class Applied:
    """The changed text, and which of the edits are in it.

    ``waiting`` are those that touch what another one changes: they come in the next round.
    """

    text: str
    edits: tuple[Edit, ...] = ()
    waiting: tuple[Edit, ...] = ()


def apply_edits(text: str, edits: Sequence[Edit]) -> Applied:
    """Rewrite ``text``, of whose ast the edits' nodes are; an edit that cannot be made is left out.

    Edits in one expression or statement are made one per call, the first one first. Text that
    libcst does not give back unchanged is not touched.
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
    for edit in edits:
        nodes = [found for node in edit.nodes if (found := positions.find(node)) is not None]
        if len(nodes) != len(edit.nodes):
            continue
        if _overlap(nodes, chosen):
            waiting.append(edit)
            continue
        new = load(edit.safety, edit.name).rewrite(nodes, edit)
        if len(new) == len(nodes) and _keeps_comments(nodes, new):
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
    """The first edit that can be made alone, where together they give no Python."""
    for index, edit in enumerate(edits):
        applied = apply_edits(text, [edit])
        if applied.edits:
            return Applied(applied.text, applied.edits, tuple(edits[index + 1 :]))
    return Applied(text)


class _Replacing(cst.CSTTransformer):
    """Puts what was chosen in the place of nodes of one tree."""

    def __init__(self, chosen: dict[cst.CSTNode, Replacement]) -> None:
        super().__init__()
        self._chosen = chosen

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Replacement:
        """Return what takes the node's place."""
        if original_node in self._chosen:
            return self._chosen[original_node]
        return super().on_leave(original_node, updated_node)


def _overlap(nodes: Sequence[cst.CSTNode], chosen: dict[cst.CSTNode, Replacement]) -> bool:
    """Does a node stand in one that is changed already, or hold one?"""
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
    """Is every comment within what is replaced in what replaces it too?"""
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
