"""``Normal(mean, std)`` -> ``Normal(mean, std, validate_args=False)``: arguments are not tested.

A program may rely on these tests to stop when its numbers are wrong. Only the user can decide.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.keyword_options import options_set, rewrite
from flake8_torchperf.fixes.shared.tensors import only_value

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

__all__ = ["plan", "rewrite"]

_OPTION = "validate_args"


def plan(place: FixPlace) -> Edit | None:
    """Apply to a distribution that is made here, or once in the function that uses it."""
    call = place.site.node
    if "option" not in place.site.traits or not isinstance(call, ast.Call):
        return None
    made: ast.expr | None = call
    if isinstance(call.func, ast.Attribute) and not _is_distribution(call, place.around):
        made = call.func.value
        if isinstance(made, ast.Name):
            made = only_value(made, place.around)
    if not isinstance(made, ast.Call) or not _is_distribution(made, place.around):
        return None
    if any(one.arg == _OPTION for one in made.keywords):
        return None  # the user wants them tested
    return options_set(made, {_OPTION: "False"})


def _is_distribution(call: ast.Call, around: Surroundings) -> bool:
    """True for a call of one of the classes of `torch.distributions`."""
    name = around.qualified(call.func)
    last = name.rpartition(".")[2]
    known = name.startswith("torch.distributions.") and not name.startswith(
        "torch.distributions.transforms."
    )
    return known and last[:1].isupper() and not last.endswith("Transform")
