"""``torch.rand(n).to(d)`` -> ``torch.rand(n, device=d)``: other numbers, made where they are used.

Each device has its own random generator.
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
    """Apply to random numbers."""
    return planned(place, Repeated.RANDOM)
