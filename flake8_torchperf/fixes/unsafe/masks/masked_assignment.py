"""``a[mask] = b[mask] * 2`` -> ``a.copy_(torch.where(mask, b * 2, a))``: nothing is counted."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.masks import has_shape_of, is_elementwise, may_repeat, selected
from flake8_torchperf.fixes.unsafe.masks.dimensions import is_lower, known_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply where the mask surely has the shape of the tensor that it selects from."""
    return planned(place, certain=True)


def planned(place: FixPlace, *, certain: bool) -> Edit | None:
    """Return the edit for a statement that reads and writes through one mask."""
    around, node = place.around, place.site.node
    statement = around.statement(node)
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            operator = ""
        case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value):
            operator = type(op).__name__
        case _:
            return None
    mask = target.slice
    if not isinstance(mask, ast.expr) or isinstance(mask, (ast.Tuple, ast.Slice, ast.Constant)):
        return None
    key = ast.dump(mask)
    if not isinstance(node, ast.expr) or selected(node, key, around) is None:
        return None
    if not may_repeat(mask) or not repeatable(target.value) or operator == "MatMult":
        return None
    if not is_elementwise(value, key, around):
        return None
    owners = [one for part in ast.walk(value) if isinstance(part, ast.expr)
              and (one := selected(part, key, around)) is not None]  # fmt: skip
    where = around.reach("torch.where", node)
    if not owners or where is None:
        return None
    shaped = any(has_shape_of(mask, one, around) for one in (target.value, *owners))
    if shaped != certain:
        return None
    known = known_mask(place.site)
    if not shaped and any(is_lower(mask, one, known, around) for one in (target.value, *owners)):
        return None
    return Edit((statement,), {"where": where[0], "augmented": bool(operator)}, where[1])


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Compute the value everywhere, and keep the elements that the mask leaves out."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import assignments

    (line,) = nodes
    assert isinstance(line, cst.SimpleStatementLine)
    return [assignments.without_mask(line, edit.facts)]
