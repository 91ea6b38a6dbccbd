"""``a = f(x.min().item())``, ``b = g(x.min().item())`` -> ``x_min_value = x.min().item()`` before.

One read, not two, where nothing between the two can change the tensor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import fresh_name, named_after, names_in
from flake8_torchperf.fixes.shared.effects import acting_before, is_pure, place_of_end, stored_by
from flake8_torchperf.fixes.shared.evaluation import is_lazy
from flake8_torchperf.fixes.shared.siblings import around_in_block, block_of, index_of
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.traversal import once
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
# Expressions that cost nothing and cannot fail before a read is evaluated.
_IDLE = (ast.Name, ast.Constant, ast.Load, ast.operator, ast.unaryop, ast.keyword)


def plan(place: FixPlace) -> Edit | None:
    """Apply to the first of several equal reads in one statement, or in consecutive ones."""
    read, around = place.site.node, place.around
    first = around.statement(read)
    if place.site.kind is not SiteKind.HOST_READ or not isinstance(read, ast.Call):
        return None
    if not isinstance(first, _SIMPLE) or not is_pure(read, around):
        return None
    if any(isinstance(one, ast.Attribute) and not _is_called(one, place) for one in ast.walk(read)):
        return None  # a property may do anything
    if not _is_read_twice(place, read, first) or _is_read_before(place, read, first):
        return None
    lines, reads = _read_again(place, read, first)
    if len(reads) < 2 or reads[0] is not read or not _comes_first(read, first):
        return None
    if acting_before(lines, place_of_end(reads[-1]), around):
        return None
    stored = stored_by(lines[:-1], around)
    if stored is None or stored & names_in([read]):
        return None
    match first:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
            value is read and name not in all_bound_by(lines[1:])
        ):
            return Edit(tuple(reads[1:]), {"name": name})
    base = named_after(_source(read), around)
    name = fresh_name(place, read, (f"{base}_value", f"{base}_number", f"{base}_read"))
    return Edit((first, *reads), {"name": name, "read": ast.unparse(read)}) if name else None


def _is_called(node: ast.Attribute, place: FixPlace) -> bool:
    """True for the method of a call."""
    above = place.around.parent(node)
    return isinstance(above, ast.Call) and above.func is node


def _source(read: ast.Call) -> ast.expr:
    """Return the tensor of ``x.item()`` and ``float(x)``."""
    if isinstance(read.func, ast.Attribute):
        return read.func.value
    return read.args[0] if read.args else read


def _is_read_twice(place: FixPlace, read: ast.Call, first: ast.stmt) -> bool:
    """True if the statement, or the next one, holds an equal read."""
    _, behind = around_in_block(place, first)
    again = _equal(read, behind) if isinstance(behind, _SIMPLE) else []
    return len(_equal(read, first)) > 1 or bool(again)


def _is_read_before(place: FixPlace, read: ast.Call, first: ast.stmt) -> bool:
    """True if the statement before, or an earlier part of this one, begins the equal reads."""
    if _equal(read, first)[:1] != [read]:
        return True
    block, at = block_of(place, first), index_of(first, place.around)
    above = block[at - 1] if at > 0 else None
    if not isinstance(above, _SIMPLE) or not _equal(read, above):
        return False
    stored = stored_by([above], place.around)
    acting = acting_before([above, first], place_of_end(read), place.around)
    return stored is not None and not acting and not stored & names_in([read])


def _equal(read: ast.Call, statement: ast.stmt) -> list[ast.Call]:
    """Return the reads of a statement that are written as one is, in their order."""
    return _calls_by_text(statement).get(ast.dump(read), [])


@once
def _calls_by_text(statement: ast.AST) -> dict[str, list[ast.Call]]:
    """Return the calls of a statement that may read, by their dump, as they are evaluated."""
    found: dict[str, list[ast.Call]] = {}
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)]
    for one in sorted(calls, key=place_of_end):
        if _may_read(one):
            found.setdefault(ast.dump(one), []).append(one)
    return found


def _may_read(call: ast.Call) -> bool:
    match call.func:
        case ast.Name():
            return not call.keywords
        case ast.Attribute(attr=name):
            return name in methods_of("reads") and not call.keywords
    return False


def _read_again(
    place: FixPlace, read: ast.Call, first: ast.stmt
) -> tuple[list[ast.stmt], list[ast.Call]]:
    """Return the statements from the first on that read the same, and their reads in order."""
    block, start = block_of(place, first), index_of(first, place.around)
    lines: list[ast.stmt] = []
    reads: list[ast.Call] = []
    for line in block[max(start, 0) :]:
        same = _equal(read, line) if isinstance(line, _SIMPLE) else []
        if not same:
            break
        if any(is_lazy(place, one, line) for one in same):
            break
        lines.append(line)
        reads += same
        if all_bound_by([line]) & names_in([read]) or not is_pure(line, place.around):
            break
    return lines, reads


def _comes_first(read: ast.Call, statement: ast.stmt) -> bool:
    """True if a statement evaluates nothing that could fail before it reads."""
    start = (read.lineno, read.col_offset)
    value = getattr(statement, "value", None)
    before = [
        one
        for one in ast.walk(value if isinstance(value, ast.expr) else statement)
        if isinstance(one, ast.expr) and place_of_end(one) <= start
    ]
    return all(isinstance(one, _IDLE) for one in before)


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel]:
    """Read once, and use the number in place of each read."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build
    from flake8_torchperf.fixes.shared.nodes.row_reads import read_once

    name = cst.Name(edit.facts["name"])
    if "read" not in edit.facts:
        return [build.in_place_of(cst.ensure_type(one, cst.Call), name) for one in nodes]
    first, *reads = nodes
    assert isinstance(first, cst.SimpleStatementLine)
    return [read_once(first, reads, edit.facts["name"]), *(name for _ in reads)]
