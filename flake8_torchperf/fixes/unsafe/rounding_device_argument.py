"""``torch.linspace(0, 1, n).to(d)`` -> ``torch.linspace(0, 1, n, device=d)``: made there.

Each device rounds in its own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.safe.device_argument import planned, rewrite
from flake8_torchperf.fixes.shared.factories import Repeated

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

__all__ = ["plan", "rewrite"]


def plan(place: FixPlace) -> Edit | None:
    """Apply to numbers that each device rounds in its own way."""
    return planned(place, Repeated.ROUNDED)
