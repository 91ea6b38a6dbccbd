"""``math.exp(t)`` -> ``torch.exp(t)``: the result stays on the device, as a tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

# Functions of one number that torch has under another name, and under the same name. Those that
# return an int in Python, such as `floor`, are left out.
_RENAMED = {"fabs": "abs", "degrees": "rad2deg", "radians": "deg2rad"}
_SAME = frozenset(("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc",
                   "exp", "exp2", "expm1", "lgamma", "log", "log10", "log1p", "log2", "sin", "sinh",
                   "sqrt", "tan", "tanh"))  # fmt: skip


def plan(place: FixPlace) -> Edit | None:
    """Apply to a function of `math` that is called with one tensor."""
    match place.site.node:
        case ast.Call(func=func, args=[_], keywords=[]) as call:
            module, _, name = place.around.qualified(func).rpartition(".")
        case _:
            return None
    made = _RENAMED.get(name) or (name if name in _SAME else "")
    if module != "math" or not made:
        return None
    torch = place.around.name_of("torch")
    return Edit((call,), {"name": f"{torch or 'torch'}.{made}"}, () if torch else ("torch",))


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Call the function of torch."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    func = build.expression(edit.facts["name"])
    return [cst.ensure_type(call, cst.Call).with_changes(func=func)]
