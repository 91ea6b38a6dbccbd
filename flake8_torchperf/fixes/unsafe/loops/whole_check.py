"""``for row in t: if isnan(row).any(): ...`` -> ``if isnan(t).any(): ...``: one check for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.unsafe.loops.whole_tensor import planned, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

__all__ = ["plan", "rewrite"]


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loop that ends at a row for which a condition holds."""
    return planned(place, leaves=True)
