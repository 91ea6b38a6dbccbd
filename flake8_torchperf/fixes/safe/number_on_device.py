"""``x[ids] = 1.0`` -> ``x[ids] = x.new_full((), 1.0)``: the number becomes a tensor where ``x`` is.

An assignment makes the same tensor, of the same dtype, but on the host.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.safe.fill_element import assignment, is_number, is_view
from flake8_torchperf.fixes.safe.fill_on_device import plain_name
from flake8_torchperf.values.values import Strength, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply to a number assigned to positions, or to an element, of a stated tensor."""
    statement, operand = assignment(place), place.site.operand
    if statement is None or place.site.operation not in ("positions", "element"):
        return None
    if place.site.operation == "element" and is_view(place.site.node, place.around):
        return None  # `fill_` writes the number without making a tensor
    if not isinstance(operand, Tensor) or operand.reason.strength < Strength.STATED:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript) or not repeatable(target.value):
        return None
    if not is_number(statement.value, place.around):
        return None
    facts = {"tensor": ast.unparse(target.value), "plain": plain_name(statement.value)}
    return Edit((statement.value,), facts)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Make a tensor of the number."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (number,) = nodes
    assert isinstance(number, cst.BaseExpression)
    if edit.facts["plain"]:
        return [build.expression(f"{edit.facts['tensor']}.new_{edit.facts['plain']}(())")]
    call = build.expression(f"{edit.facts['tensor']}.new_full((), 0)")
    made = cst.ensure_type(call, cst.Call)
    value = made.args[1].with_changes(value=build.bare(number))
    return [made.with_changes(args=[made.args[0], value])]
