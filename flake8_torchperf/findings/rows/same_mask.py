"""Rows of indexing by one mask: each index waits for the mask's positions, which are the same.

`torch.nonzero` of the mask waits once, and an index by its result doesn't wait at all. So what a
function indexes by one mask is one finding, as long as nothing changes the mask in between.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from flake8_torchperf.findings.match import Raw

    # For each block around a node, outermost first: the block, by identity, and the statement.
    Path: TypeAlias = "tuple[tuple[int, int], ...]"

# Parts of a mask whose value depends on nothing but what its names hold.
_PLAIN = (
    ast.Name, ast.Attribute, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Constant,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip


def by_mask(rows: Sequence[list[Raw]], roots: Sequence[ast.AST]) -> list[list[Raw]]:
    """Return the rows, those that index by one unchanged mask as one, where it is indexed first.

    ``roots`` are the function or the statements that contain the findings.
    """
    masked = [row for row in rows if len(row) == 1 and _mask(row[0])]
    if len(masked) < 2:
        return [*rows]
    paths = dict(_paths(roots))
    changes = list(_changes(roots))
    leaders: dict[tuple[str, str], list[Raw]] = {}
    joined: set[int] = set()
    for row in sorted(masked, key=lambda row: _position(row[0])):
        key = (row[0].rule.code, _mask(row[0]))
        leader = leaders.get(key)
        if leader is not None and _runs_before(leader[0], row[0], paths, changes):
            leader += row
            joined.add(id(row))
        else:
            leaders[key] = row
    return [row for row in rows if id(row) not in joined]


def _mask(raw: Raw) -> str:
    """Return the mask that a finding indexes by, as code; "" if it is none that may be shared."""
    site, mask = raw.site, raw.site.operand_node
    if site.kind is not SiteKind.MASK_INDEX or site.compiled or not raw.rule.own or mask is None:
        return ""
    plain = all(isinstance(node, _PLAIN) for node in ast.walk(mask))
    return ast.unparse(mask) if plain and isinstance(mask, ast.expr) else ""


def _position(raw: Raw) -> tuple[int, int]:
    node = raw.site.node
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _runs_before(
    first: Raw, second: Raw, paths: dict[int, Path], changes: Sequence[tuple[tuple[int, int], str]]
) -> bool:
    """True if a wait runs before another whenever that does, by the same mask."""
    one, other = paths.get(id(first.site.node)), paths.get(id(second.site.node))
    if one is None or other is None or len(one) > len(other):
        return False
    (block, index), (there, later) = one[-1], other[len(one) - 1]
    if one[:-1] != other[: len(one) - 1] or block != there or index > later:
        return False
    if len(first.site.loops) != len(second.site.loops):
        return False
    mask = first.site.operand_node
    parts = [] if mask is None else [*ast.walk(mask)]
    names = {_last(one) for one in parts if isinstance(one, (ast.Name, ast.Attribute))}
    start, end = _position(first), _position(second)
    return not any(start < place < end and name in names for place, name in changes)


def _paths(roots: Sequence[ast.AST]) -> Iterator[tuple[int, Path]]:
    """Yield each expression in the statements, by identity, with the blocks around it."""
    waiting: list[tuple[ast.AST, Path]] = []
    statements = [root for root in roots if isinstance(root, ast.stmt)]
    waiting += [(one, ((0, index),)) for index, one in enumerate(statements)]
    while waiting:
        node, path = waiting.pop()
        yield id(node), path
        for _, field in ast.iter_fields(node):
            if isinstance(field, ast.AST):
                waiting.append((field, path))
            elif isinstance(field, list):
                block = any(isinstance(one, ast.stmt) for one in field)
                waiting += [
                    (one, (*path, (id(field), index)) if block else path)
                    for index, one in enumerate(field)
                    if isinstance(one, ast.AST)
                ]


def _changes(roots: Sequence[ast.AST]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield what statements bind or change in place, with the place."""
    for node in walk(list(roots)):
        place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield place, _last(node)
            case ast.Subscript(value=ast.Name() | ast.Attribute() as owner, ctx=ast.Store()):
                yield place, _last(owner)
            case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=n)):
                if n.endswith("_") and not n.endswith("__"):
                    yield place, _last(owner)


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
