"""Statements and items that stand in parallel: fixes rewrite all of them, or none.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import FUNCTIONS, once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.findings.finding import Edit, Finding
    from flake8_torchperf.fixes.engine.surroundings import Surroundings

_BLOCKS = ("body", "orelse", "finalbody")
_WITH_BLOCKS = (*FUNCTIONS, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.With, ast.Try)
_ITEMS = ("elts", "args", "values")


def together(
    found: Sequence[Finding], edits: Sequence[tuple[Edit, ...]], around: Surroundings
) -> list[tuple[Edit, ...]]:
    """Return the edits of each finding, without those that leave an item beside theirs as it is."""
    rewritten = {at for offered in edits for edit in offered for at in _rewritten(edit, around)}
    rows = _Rows(around, rewritten)
    return [
        tuple(edit for edit in offered if _fills_its_rows(edit, one, rows, around))
        for one, offered in zip(found, edits, strict=True)
    ]


def _rewritten(edit: Edit, around: Surroundings) -> set[int]:
    """Return the identities of the nodes that an edit changes, and of those around them."""
    return {id(here) for node in edit.nodes for here in _outwards(node, around)}


def _fills_its_rows(edit: Edit, finding: Finding, rows: _Rows, around: Surroundings) -> bool:
    own = _rewritten(edit, around)
    return all(
        rows.are_rewritten(here) for here in _outwards(finding.site.node, around) if id(here) in own
    )


class _Rows:
    """The rows of a module, each looked at once: rewritten whole, or with an item that stays."""

    def __init__(self, around: Surroundings, rewritten: set[int]) -> None:
        self._around = around
        self._rewritten = rewritten
        self._whole: dict[int, bool] = {}

    def are_rewritten(self, node: ast.AST) -> bool:
        """True if edits rewrite all that stands in parallel with a node."""
        parent = None if isinstance(node, _WITH_BLOCKS) else self._around.parent(node)
        row = None if parent is None else _rows_below(parent).get(id(node))
        if row is None:
            return True
        if id(row) not in self._whole:
            self._whole[id(row)] = all(id(one) in self._rewritten for one in row)
        return self._whole[id(row)]


def _outwards(node: ast.AST, around: Surroundings) -> Iterator[ast.AST]:
    """Yield a node and those around it, up to its statement."""
    here: ast.AST | None = node
    while here is not None:
        yield here
        if isinstance(here, ast.stmt):
            return
        here = around.parent(here)


@once
def _rows_below(parent: ast.AST) -> dict[int, list[ast.AST]]:
    """Return the row of each statement or item right below a node, by its identity.

    A row holds neighbours of the same shape.
    """
    rows: dict[int, list[ast.AST]] = {}
    for name in (*_BLOCKS, *_ITEMS):
        items = getattr(parent, name, None)
        row: list[ast.AST] = []
        for one in items if isinstance(items, list) else []:
            if row and not _are_alike(row[-1], one):
                row = []
            row.append(one)
            rows[id(one)] = row
    return rows


def _are_alike(one: ast.AST, other: ast.AST) -> bool:
    if type(one) is not type(other):
        return False
    return _shape(one) == _shape(other) or (bool(_filled(one)) and _filled(one) == _filled(other))


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
