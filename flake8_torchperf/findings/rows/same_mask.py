"""Rows of waits for one mask: each waits for the mask's positions, or for how many there are.

`torch.nonzero` of the mask waits once, an index by its result doesn't wait at all, and its size is
the count. So what a function waits for of one mask is one finding, as long as nothing changes the
mask in between: what it indexes by it, or by the mask in another shape, and a test of it before.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.syntax.bindings import bound_by
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from flake8_torchperf.findings.match import Raw

    # For each block around a node, outermost first: the block, by identity, and the statement.
    Path: TypeAlias = "tuple[tuple[int, int], ...]"

# Parts of a mask whose value depends on nothing but what its names hold.
_PLAIN = (
    ast.Name, ast.Attribute, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Constant,
    ast.Subscript, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip
# Methods that give a mask another shape: its positions are those of the mask, or follow from them.
_SHAPING = frozenset((
    "unsqueeze", "squeeze", "expand", "expand_as", "repeat", "view", "view_as", "reshape",
    "flatten", "bool", "contiguous",
))  # fmt: skip
# Methods that tell how many elements of a mask are set, and if any are.
_COUNTING = frozenset(("sum", "any"))
# The most names that a mask is followed through.
MAX_NAMES = 4


class _Mask(NamedTuple):
    """The mask of a finding: its code, where that begins to count, and if the finding is a test."""

    node: ast.expr
    since: tuple[int, int]
    is_test: bool

    @property
    def text(self) -> str:
        return ast.unparse(self.node)


def by_mask(rows: Sequence[list[Raw]], roots: Sequence[ast.AST]) -> list[list[Raw]]:
    """Return the rows, those that wait for one unchanged mask as one, where it is met first.

    ``roots`` are the function or the statements that contain the findings.
    """
    if len(rows) < 2 or not any(_indexed(row[0]) for row in rows):
        return [*rows]
    bound = _bound_once(roots)
    masks = [(row, mask) for row in rows if len(row) == 1 and (mask := _mask(row[0], bound))]
    if len(masks) < 2:
        return [*rows]
    paths = dict(_paths(roots))
    changes = list(_changes(roots))
    leaders: dict[tuple[str, str], tuple[list[Raw], _Mask]] = {}
    joined: set[int] = set()
    for row, mask in sorted(masks, key=lambda pair: _position(pair[0][0])):
        tested, same = ("", mask.text), (row[0].rule.code, mask.text)
        if mask.is_test:
            leaders[tested] = row, mask
            continue
        known = (leaders.get(one) for one in (same, tested))
        leader = next(
            (one[0] for one in known if one and _leads(one, row, mask, paths, changes)), None
        )
        if leader is None:
            leaders[same] = row, mask
        else:
            leader += row
            joined.add(id(row))
    return [row for row in rows if id(row) not in joined]


def _mask(raw: Raw, bound: Mapping[str, ast.Assign]) -> _Mask | None:
    """Return the mask that a finding waits for; None if it is none that may be shared."""
    if raw.site.compiled or not raw.rule.own:
        return None
    indexed = _indexed(raw)
    node = _counted(raw) if indexed is None else indexed
    since = _position(raw)
    if node is None:
        return None
    node = _unshaped(node) or node
    for _ in range(MAX_NAMES):
        made = bound.get(node.id) if isinstance(node, ast.Name) else None
        shaped = None if made is None else _unshaped(made.value)
        if made is None or shaped is None:
            break
        node, since = shaped, min(since, (made.lineno, made.col_offset))
    if not all(isinstance(one, _PLAIN) for one in ast.walk(node)):
        return None
    return _Mask(node, since, indexed is None)


def _unshaped(node: ast.expr) -> ast.expr | None:
    """Return the name or attribute of a mask that calls give another shape; None for the rest."""
    shaped = node
    while (
        isinstance(shaped, ast.Call)
        and isinstance(shaped.func, ast.Attribute)
        and shaped.func.attr in _SHAPING
    ):
        shaped = shaped.func.value
    named = isinstance(shaped, (ast.Name, ast.Attribute))
    return shaped if named and shaped is not node else None


def _indexed(raw: Raw) -> ast.expr | None:
    """Return the mask that a finding indexes by, or selects by as `torch.masked_select` does."""
    site = raw.site
    if site.kind is not SiteKind.MASK_INDEX:
        return None
    match site.node:
        case ast.Call(func=ast.Attribute(), args=[_, mask] | [mask], keywords=[]):
            return mask
        case ast.Call():
            return None
    return site.operand_node if isinstance(site.operand_node, ast.expr) else None


def _counted(raw: Raw) -> ast.expr | None:
    """Return the mask of which a test asks if any element is set, or how many are."""
    if raw.site.kind is not SiteKind.BRANCH:
        return None
    node = raw.site.operand_node
    if isinstance(node, ast.Compare):
        node = node.left
    match node:
        case ast.Call(func=ast.Attribute(value=mask, attr=name), args=[]) if name in _COUNTING:
            return mask
    return None


def _bound_once(roots: Sequence[ast.AST]) -> dict[str, ast.Assign]:
    """Return the assignments to names that nothing else binds."""
    counts: Counter[str] = Counter()
    found: dict[str, ast.Assign] = {}
    for node in walk(list(roots)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = node
        counts.update([node.arg] if isinstance(node, ast.arg) else bound_by(node))
    return {name: node for name, node in found.items() if counts[name] == 1}


def _position(raw: Raw) -> tuple[int, int]:
    node = raw.site.node
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _leads(
    leader: tuple[list[Raw], _Mask],
    row: list[Raw],
    mask: _Mask,
    paths: dict[int, Path],
    changes: Sequence[tuple[tuple[int, int], str]],
) -> bool:
    """True if a wait runs before another whenever that does, for the same mask."""
    first, second = leader[0][0], row[0]
    one, other = paths.get(id(first.site.node)), paths.get(id(second.site.node))
    if one is None or other is None or len(one) > len(other):
        return False
    (block, index), (there, later) = one[-1], other[len(one) - 1]
    if one[:-1] != other[: len(one) - 1] or block != there or index > later:
        return False
    if len(first.site.loops) != len(second.site.loops):
        return False
    parts = ast.walk(mask.node)
    names = {_last(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute))}
    start, end = min(leader[1].since, mask.since), _position(second)
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
