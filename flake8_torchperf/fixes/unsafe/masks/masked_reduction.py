"""``x[mask].mean()`` -> ``torch.where(mask, x, 0).sum() / mask.sum()``, and the same for others."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.brackets import needs_brackets
from flake8_torchperf.fixes.shared.masks import has_shape_of, may_repeat, selection
from flake8_torchperf.fixes.unsafe.masks.dimensions import is_lower, known_mask
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

# The values for elements that are not selected.
_NEUTRAL = {"sum": "0", "mean": "0", "any": "0", "all": "1"}
# The quotient that replaces a mean.
_QUOTIENT = ast.BinOp(ast.Name("total"), ast.Div(), ast.Name("count"))
_COUNTS = methods_of("counts-elements")


def plan(place: FixPlace) -> Edit | None:
    """Apply where the mask surely has the shape of the tensor that it selects from."""
    return planned(place, certain=True)


def planned(place: FixPlace, *, certain: bool) -> Edit | None:
    """Return the edit for a selection that is reduced directly.

    ``certain`` selects between reductions whose shapes surely agree and those where they may not.
    """
    node, operand, around = place.site.node, place.site.operand, place.around
    chosen = selection(node, around)
    if chosen is None or not isinstance(node, ast.expr) or not isinstance(operand, Tensor):
        return None
    tensor, mask = chosen
    is_call = isinstance(node, ast.Call)
    if not is_call and (mask is not place.site.operand_node or operand.dtype != "bool"):
        return None
    if not may_repeat(mask) or not (is_call or repeatable(tensor)):
        return None
    found = reduced_by(node, place.around)
    where = place.around.reach("torch.where", node)
    if found is None or where is None:
        return None
    call, name = found
    counts = name in _COUNTS
    # `masked_select` broadcasts mask and tensor, and so does `where`.
    whole = name not in ("mean", *_COUNTS) if is_call else counts
    if (whole or has_shape_of(mask, tensor, around)) != certain:
        return None
    if not certain and is_lower(mask, tensor, known_mask(place.site), around):
        return None
    facts = {"name": name, "where": where[0], "neutral": _NEUTRAL.get(name, ""),
             "within": needs_brackets(_QUOTIENT, call, around.parent(call))}  # fmt: skip
    return Edit((call,), facts, () if counts else where[1])


def reduced_by(node: ast.expr, around: Surroundings) -> tuple[ast.Call, str] | None:
    """Return the call around a selection that reduces all of it to one value, and the reduction."""
    above = around.parent(node)
    if isinstance(above, ast.Attribute):
        call = around.parent(above)
        if isinstance(call, ast.Call) and call.func is above and not (call.args or call.keywords):
            return (call, above.attr) if above.attr in (*_NEUTRAL, *_COUNTS) else None
    if isinstance(above, ast.Call) and above.args == [node] and not above.keywords:
        name = around.qualified(above.func).removeprefix("torch.")
        return (above, name) if name in _NEUTRAL else None
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Keep the shape, with the neutral element where nothing is selected."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import reductions

    (call,) = nodes
    assert isinstance(call, cst.Call)
    return [reductions.of_selection(call, edit.facts)]
