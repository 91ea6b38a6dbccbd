"""``zero_grad(set_to_none=False)`` -> ``zero_grad()``: slow options are removed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_OPTIONS = {"zero_grad": "set_to_none", "foreach": "foreach", "fused": "fused"}


def plan(place: FixPlace) -> Edit | None:
    """Apply to an option that is written as False in the call."""
    call, option = place.site.node, _OPTIONS.get(place.site.operation)
    if not isinstance(call, ast.Call) or option is None:
        return None
    for index, one in enumerate(call.keywords):
        if one.arg == option and isinstance(one.value, ast.Constant) and one.value.value is False:
            return Edit((call,), {"index": len(call.args) + index})
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Remove the option."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    return [build.without_argument(cst.ensure_type(call, cst.Call), edit.facts["index"])]
