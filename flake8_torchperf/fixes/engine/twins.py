"""Statements and items that stand in parallel: fixes rewrite all of them, or none.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import FUNCTIONS, once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.findings.model import Edit, Finding
    from flake8_torchperf.fixes.engine.surroundings import Surroundings

_BLOCKS = ("body", "orelse", "finalbody")
_WITH_BLOCKS = (*FUNCTIONS, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.With, ast.Try)
_ITEMS = ("elts", "args", "values")


def together(
    found: Sequence[Finding], edits: Sequence[tuple[Edit, ...]], around: Surroundings
) -> list[tuple[Edit, ...]]:
    """Return the edits of each finding, without those that leave an item beside theirs as it is."""
    rewritten = {at for offered in edits for edit in offered for at in _rewritten(edit, around)}
    return [
        tuple(edit for edit in offered if _fills_its_rows(edit, one, rewritten, around))
        for one, offered in zip(found, edits, strict=True)
    ]


def _rewritten(edit: Edit, around: Surroundings) -> set[int]:
    """Return the identities of the nodes that an edit changes, and of those around them."""
    return {id(here) for node in edit.nodes for here in _outwards(node, around)}


def _fills_its_rows(
    edit: Edit, finding: Finding, rewritten: set[int], around: Surroundings
) -> bool:
    own = _rewritten(edit, around)
    return all(
        id(twin) in rewritten
        for here in _outwards(finding.site.node, around)
        if id(here) in own
        for twin in _row(here, around)
    )


def _outwards(node: ast.AST, around: Surroundings) -> Iterator[ast.AST]:
    """Yield a node and those around it, up to its statement."""
    here: ast.AST | None = node
    while here is not None:
        yield here
        if isinstance(here, ast.stmt):
            return
        here = around.parent(here)


def _row(node: ast.AST, around: Surroundings) -> list[ast.AST]:
    """Return the nodes next to one in its block or list that have the same shape, and so on."""
    if isinstance(node, _WITH_BLOCKS):
        return []
    parent = around.parent(node)
    fields = _BLOCKS if isinstance(node, ast.stmt) else _ITEMS
    for name in fields:
        items = getattr(parent, name, None)
        if not isinstance(items, list):
            continue
        at = next((i for i, one in enumerate(items) if one is node), -1)
        if at >= 0:
            return [*_alike(node, items[at + 1 :]), *_alike(node, items[:at][::-1])]
    return []


def _alike(node: ast.AST, items: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for one in items:
        if type(one) is not type(node):
            return
        if _shape(one) != _shape(node) and not (_filled(one) and _filled(one) == _filled(node)):
            return
        yield one


def _filled(node: ast.AST) -> str:
    """Return the tensor of ``x[mask] = ...``, of which several such statements fill parts."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=owner, slice=ast.Name())]):
            return ast.dump(owner)
    return ""


@once
def _shape(node: ast.AST) -> str:
    """Return the text of a node without the names of its variables and without its numbers."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()) | ast.Constant():
            return "0"
        case ast.Name():
            return "x"
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    told = getattr(node, "attr", None) or getattr(node, "arg", None) or called
    inner = ",".join(map(_shape, ast.iter_child_nodes(node)))
    return f"{type(node).__name__}:{told}({inner})"
