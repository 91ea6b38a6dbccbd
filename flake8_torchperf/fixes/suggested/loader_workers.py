"""``DataLoader(data)`` -> ``DataLoader(data, num_workers=2)``: the next batches are prepared ahead.

How many workers a program needs is for a person to say; two are where to begin.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.options import option_set, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Edit
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]

# `num_workers` is the sixth parameter of `DataLoader`.
_POSITION = 5


def plan(place: Place) -> Edit | None:
    """Apply to a loader without workers."""
    call = place.site.node
    if "no-workers" not in place.site.traits or not isinstance(call, ast.Call):
        return None
    if len(call.args) > _POSITION:
        return None
    return option_set(call, "num_workers", "2")
