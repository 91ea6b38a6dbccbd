"""``x.to(d)`` -> ``x.to(d, non_blocking=True)``, whether or not the memory of ``x`` is pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.safe.non_blocking import queueable, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

__all__ = ["plan", "rewrite"]


def plan(place: FixPlace) -> Edit | None:
    """Apply to a copy to the device from memory that is not known to be pinned."""
    if {"non-blocking", "pinned"} & place.site.traits:
        return None
    call = queueable(place.site.node)
    return None if call is None else Edit((call,))
