"""``x[:, [2]]`` -> ``x[:, 2:3]``: a slice needs no index on the device.

Also for literal numbers that follow each other, as in ``x[[0, 1]]``. A slice is a view.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.texts import is_number_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_INTS = frozenset(("builtins.int",))


def plan(place: FixPlace) -> Edit | None:
    """Apply to an index that is a list, beside slices alone."""
    node: ast.AST | None = place.site.node
    while isinstance(node, (ast.List, ast.Tuple)):
        node = place.around.parent(node)
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    lists = [one for one in parts if isinstance(one, ast.List)]
    if len(lists) != 1 or not all(one is lists[0] or _is_basic(one) for one in parts):
        return None
    text = _slice(lists[0], place)
    return Edit((node,), {"text": text, "at": parts.index(lists[0])}) if text else None


def _is_basic(part: ast.expr) -> bool:
    """True for slices, None and ``...``."""
    return isinstance(part, ast.Slice) or (
        isinstance(part, ast.Constant) and part.value in (None, ...)
    )


def _slice(index: ast.List, place: FixPlace) -> str:
    """Return the slice with the same elements as a list; "" if there is none."""
    numbers = [_literal(one) for one in index.elts]
    known = [one for one in numbers if one is not None]
    if known and len(known) == len(numbers):
        first, last = known[0], known[-1]
        if known != list(range(first, last + 1)) or first < 0 <= last:
            return ""
        start = "" if first == 0 else str(first)
        return f"{start}:" if last == -1 else f"{start}:{last + 1}"
    match index.elts:
        case [ast.Name(id=name) as one]:
            if is_whole(one, place.around) or is_number_parameter(one, place.around, _INTS):
                return f"{name} : {name} + 1"
    return ""


def _literal(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Write the slice in place of the list."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (node,) = nodes
    assert isinstance(node, cst.Subscript)
    written = build.expression(f"x[{edit.facts['text']}]")
    assert isinstance(written, cst.Subscript)
    at = edit.facts["at"]
    parts = list(node.slice)
    parts[at] = parts[at].with_changes(slice=written.slice[0].slice)
    return [node.with_changes(slice=parts)]
