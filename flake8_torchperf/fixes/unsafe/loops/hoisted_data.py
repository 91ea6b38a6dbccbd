"""``for ...: std = torch.tensor([low, 1.0], device=device)`` -> made once, before the loop.

For names as numbers, and for devices that are not those of a tensor at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.safe.hoisted_constant import hoisted, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Edit
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to data that no statement of the loop changes, where no safe fix moves it."""
    return hoisted(place, for_all=False) if hoisted(place, for_all=True) is None else None
