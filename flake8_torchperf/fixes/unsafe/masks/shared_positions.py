"""``a = a[mask]``, ``b = b[mask]`` -> ``kept = torch.where(mask)``, ``a[kept]``, ``b[kept]``.

A mask is counted for each index that it is; its positions are found once and used by all.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.values import Tensor
from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.pieces.code import bound_by, fresh_name, names_in
from flake8_torchperf.fixes.pieces.evaluation import is_lazy
from flake8_torchperf.fixes.pieces.siblings import block_of
from flake8_torchperf.fixes.shared.masks import may_repeat
from flake8_torchperf.fixes.unsafe.masks import masked_assignment
from flake8_torchperf.fixes.unsafe.masks.masked_reduction import reduced_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
_NAMES = ("kept", "positions", "selected")


def plan(place: Place) -> Edit | None:
    """Apply to the indices by one mask in statements that follow each other."""
    node, around, found = place.site.node, place.around, place.site.operand
    first = around.statement(node)
    if not isinstance(node, ast.Subscript) or not isinstance(first, _SIMPLE):
        return None
    if not isinstance(found, Tensor) or found.dtype != "bool":
        return None
    mask = node.slice
    if not may_repeat(mask):
        return None
    block = block_of(place, first)
    uses = _uses(block, first, mask, place)
    if len(uses) < 2 or uses[0][0] is not first:
        return None
    if uses[-1][0] is first and masked_assignment.planned(place, certain=False) is not None:
        return None  # so can this
    name = fresh_name(place, first, _NAMES)
    where = around.reach("torch.where", first)
    if not name or where is None:
        return None
    lines = list(dict.fromkeys(line for line, _ in uses))
    facts = {"name": name, "where": where[0], "mask": ast.unparse(mask)}
    return Edit(tuple(lines), facts, where[1])


def _uses(
    block: Sequence[ast.stmt], first: ast.stmt, mask: ast.expr, place: Place
) -> list[tuple[ast.stmt, ast.Subscript]]:
    """The indices by a mask from a statement on, as long as nothing may change the mask."""
    start = next((at for at, one in enumerate(block) if one is first), len(block))
    names, key = names_in([mask]), ast.dump(mask)
    attribute = any(isinstance(one, ast.Attribute) for one in ast.walk(mask))
    found: list[tuple[ast.stmt, ast.Subscript]] = []
    for line in block[start:]:
        if not isinstance(line, _SIMPLE):
            break
        here = [one for one in ast.walk(line)
                if isinstance(one, ast.Subscript) and ast.dump(one.slice) == key]  # fmt: skip
        if any(is_lazy(place, one, line) or reduced_by(one, place.around) for one in here):
            break  # what is reduced can do without a count at all
        found += [(line, one) for one in here if not _is_store_alone(one, line)]
        if names & bound_by([line]) or _writes_into(line, names):
            break
        if attribute and any(isinstance(one, ast.Call) for one in ast.walk(line)):
            break  # what is called may bind it to another mask
    return found


def _is_store_alone(node: ast.Subscript, line: ast.stmt) -> bool:
    """``a[mask] = 0`` fills in without counting."""
    match line:
        case ast.Assign(targets=[target], value=value) if target is node:
            return isinstance(value, (ast.Constant, ast.UnaryOp))
    return False


def _writes_into(line: ast.stmt, names: frozenset[str]) -> bool:
    """Does a statement change a part of what is called by one of the names, or call its method?"""
    for node in ast.walk(line):
        match node:
            case (
                ast.Subscript(value=owner, ctx=ast.Store())
                | ast.Attribute(value=owner, ctx=ast.Store())
            ):
                if names & names_in([owner]):
                    return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
                if name in names and attr.endswith("_"):
                    return True
    return False


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]]:
    """Find the positions before the first statement, and index with them."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build
    from flake8_torchperf.fixes.shared.assignments import with_index

    facts = edit.facts
    lines = [with_index(node, facts["mask"], facts["name"]) for node in nodes]
    first = lines[0]
    assert isinstance(first, cst.SimpleStatementLine)
    found = cst.Call(build.expression(facts["where"]), [cst.Arg(build.expression(facts["mask"]))])
    target = cst.AssignTarget(cst.Name(facts["name"]))
    above = cst.SimpleStatementLine(
        [cst.Assign([target], found)], leading_lines=first.leading_lines
    )
    return [cst.FlattenSentinel([above, first.with_changes(leading_lines=[])]), *lines[1:]]
