"""``DataLoader(data)`` -> ``DataLoader(data, num_workers=2, pin_memory=True)``: batches ahead.

Only the user knows how many workers a program needs; two are a start.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.keyword_options import options_set, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

__all__ = ["plan", "rewrite"]

# `num_workers` is the sixth parameter of `DataLoader`.
_POSITION = 5


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loader without workers, or without pinned memory."""
    call, traits = place.site.node, place.site.traits
    if not isinstance(call, ast.Call):
        return None
    options: dict[str, str] = {}
    if "no-workers" in traits:
        if len(call.args) > _POSITION:
            return None
        if _may_set(call, "num_workers") and not _collates_by_lambda(call):
            options["num_workers"] = "2"
    if "no-pin" in traits and _may_set(call, "pin_memory"):
        options["pin_memory"] = "True"
    return options_set(call, options) if options else None


def _may_set(call: ast.Call, option: str) -> bool:
    """True unless a setting of the program decides on an option."""
    given = [one.value for one in call.keywords if one.arg == option]
    return all(isinstance(value, ast.Constant) for value in given)


def _collates_by_lambda(call: ast.Call) -> bool:
    """True for ``collate_fn=lambda ...``, which a worker that is spawned cannot be given."""
    return any(
        one.arg == "collate_fn" and isinstance(one.value, ast.Lambda) for one in call.keywords
    )
