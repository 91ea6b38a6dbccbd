"""``pinned.to(d)`` -> ``pinned.to(d, non_blocking=True)``: the memory must then be left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.safe.non_blocking import planned, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to every copy from memory that is known to be pinned."""
    call = planned(place)
    return None if call is None else Edit((call,))
