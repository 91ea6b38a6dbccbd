"""``a = a[mask]``, ``b = b[mask]`` -> ``positions = torch.where(mask)``, ``a[positions]`` ...

``b[mask, :]`` and ``torch.masked_select(b, mask)`` select by the same positions. Each index by a
mask counts its true elements; the positions are found once and used by all.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import fresh_name, names_in, writes_into
from flake8_torchperf.fixes.shared.evaluation import is_lazy
from flake8_torchperf.fixes.shared.masks import (
    has_shape_of,
    masked_select,
    may_repeat,
    selection,
)
from flake8_torchperf.fixes.shared.siblings import block_of
from flake8_torchperf.fixes.unsafe.masks import masked_assignment
from flake8_torchperf.fixes.unsafe.masks.dimensions import has_dimensions, known_mask
from flake8_torchperf.fixes.unsafe.masks.masked_reduction import reduced_by
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings
    from flake8_torchperf.judgement.judged_site import JudgedSite

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
# Names for the positions of masks that have no name.
_UNNAMED = ("kept", "selected", "chosen", "taken", "picked")
_MASK = re.compile(r"ma?sks?(?=\d*$)")


def plan(place: FixPlace) -> Edit | None:
    """Apply to the indices by one mask in consecutive statements."""
    node, around = place.site.node, place.around
    first = around.statement(node)
    mask = _mask(place.site, around)
    if mask is None or not isinstance(first, _SIMPLE) or not may_repeat(mask):
        return None
    if not has_dimensions(mask, known_mask(place.site), around):
        return None  # the positions of one without dimensions would select the first element
    uses = _uses(block_of(place, first), first, mask, place)
    if len(uses) < 2 or uses[0].line is not first:
        return None
    if uses[-1].line is first and masked_assignment.planned(place, certain=False) is not None:
        return None  # this rewriting could as well
    alone = any(use.among for use in uses)
    name = _name(place, mask, "indices" if alone else "positions")
    where = around.reach("torch.where", first)
    if not name or where is None:
        return None
    facts = {
        "name": name,
        "where": where[0],
        "mask": ast.unparse(mask),
        "alone": alone,
        "calls": {
            ast.dump(use.node): has_shape_of(mask, use.tensor, around)
            for use in uses
            if isinstance(use.node, ast.Call)
        },
    }
    return Edit(tuple(dict.fromkeys(use.line for use in uses)), facts, where[1])


def _mask(site: JudgedSite, around: Surroundings) -> ast.expr | None:
    """Return the mask that a place reads or writes through; None where none is known."""
    node, found, operand = site.node, site.operand, site.operand_node
    chosen = masked_select(node, around)
    if chosen is not None:
        return chosen[1]
    if not isinstance(node, ast.Subscript) or not isinstance(found, Tensor):
        return None
    if found.dtype != "bool":
        return None
    if not isinstance(node.slice, ast.Tuple):
        return node.slice
    return next((one for one in node.slice.elts if one is operand), None)


def _name(place: FixPlace, mask: ast.expr, called: str) -> str:
    """Return a name for the positions of a mask that no other mask gets; "" if none is free."""
    around, function = place.around, place.around.function(mask)
    masks = {
        ast.dump(found): found
        for site in around.reported(SiteKind.MASK_INDEX)
        if (found := _mask(site, around)) is not None and around.function(found) is function
    }
    used = names_in([function or around.tree])
    words = {word for name in used for word in name.split("_")}
    given: set[str] = set()
    name = ""
    for key, one in masks.items():
        wanted = (_after(one, called), *(each for each in _UNNAMED if each not in words))
        free = [each for each in wanted if each and each not in given]
        name = fresh_name(place, mask, free)
        if key == ast.dump(mask):
            break
        given.add(name)
    return name


def _after(mask: ast.expr, called: str) -> str:
    """Return a name after that of a mask: "landscape_positions" for ``is_landscape``.

    The word "mask" in it becomes "positions". "" for an expression without a name.
    """
    match mask:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(value=ast.Name(id=name)):
            words = name.strip("_").lower().split("_")
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            inner = _after(operand, called)
            return inner and ("other_" if inner.startswith(called) else "not_") + inner
        case _:
            return ""
    if words[0] in ("is", "has") and len(words) > 1:
        del words[0]
    named = [_MASK.sub(called, word) if _MASK.match(word) else word for word in words]
    return "_".join(named if named != words else [*words, called])


@dataclass(frozen=True, slots=True)
class _Use:
    """A place where a mask selects; ``among`` other indices it must be one tensor of positions."""

    line: ast.stmt
    node: ast.expr
    tensor: ast.expr
    among: bool = False


def _uses(
    block: Sequence[ast.stmt], first: ast.stmt, mask: ast.expr, place: FixPlace
) -> list[_Use]:
    """Return the selections by a mask from a statement on, until something may change the mask."""
    start = next((at for at, one in enumerate(block) if one is first), len(block))
    names = names_in([mask])
    attribute = any(isinstance(one, ast.Attribute) for one in ast.walk(mask))
    found: list[_Use] = []
    for line in block[start:]:
        if isinstance(line, _SIMPLE):
            here = _uses_in(line, mask, place)
            if any(is_lazy(place, u.node, line) or _is_reduced(u.node, place) for u in here):
                break  # a reduction needs no count at all
            found += [use for use in here if not _is_store_alone(use.node, line)]
        if names & all_bound_by([line]) or writes_into(line, names):
            break
        if attribute and any(isinstance(one, ast.Call) for one in ast.walk(line)):
            break  # the call may bind it to another mask
    return found


def _uses_in(line: ast.stmt, mask: ast.expr, place: FixPlace) -> list[_Use]:
    """Return the places in a statement where a mask selects and positions can replace it."""
    key = ast.dump(mask)
    found = place.site.operand
    one_dimension = (
        isinstance(found, Tensor) and found.rank == 1 and place.site.operand_node is mask
    )
    uses: list[_Use] = []
    for node in ast.walk(line):
        if not isinstance(node, ast.expr):
            continue
        chosen = selection(node, place.around)
        if chosen is None:
            continue
        tensor, index = chosen
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if ast.dump(index) == key or (ast.dump(parts[0]) == key and all(map(_is_full, parts[1:]))):
            uses.append(_Use(line, node, tensor))
        elif one_dimension and any(ast.dump(one) == key for one in parts):
            uses.append(_Use(line, node, tensor, among=True))
    return uses


def _is_full(part: ast.expr) -> bool:
    """True for ``:``."""
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)


def _is_store_alone(node: ast.expr, line: ast.stmt) -> bool:
    """True for ``a[mask] = 0``, which fills in without counting."""
    match line:
        case ast.Assign(
            targets=[target], value=ast.Constant() | ast.UnaryOp(operand=ast.Constant())
        ):
            return target is node
    return False


def _is_reduced(node: ast.expr, place: FixPlace) -> bool:
    """True for ``a[mask].sum()``, but not for a mask among other indices."""
    among = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
    return not among and reduced_by(node, place.around) is not None


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]]:
    """Find the positions before the first statement, and index with them."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build
    from flake8_torchperf.fixes.shared.nodes.assignments import with_positions

    facts = edit.facts
    lines = [
        with_positions(node, facts["mask"], facts["name"], facts["alone"], facts["calls"])
        for node in nodes
    ]
    first = lines[0]
    assert isinstance(first, cst.SimpleStatementLine)
    found: cst.BaseExpression = cst.Call(
        build.expression(facts["where"]), [cst.Arg(build.expression(facts["mask"]))]
    )
    if facts["alone"]:
        found = cst.Subscript(found, [cst.SubscriptElement(cst.Index(cst.Integer("0")))])
    target = cst.AssignTarget(cst.Name(facts["name"]))
    above = cst.SimpleStatementLine(
        [cst.Assign([target], found)], leading_lines=first.leading_lines
    )
    return [cst.FlattenSentinel([above, first.with_changes(leading_lines=[])]), *lines[1:]]
