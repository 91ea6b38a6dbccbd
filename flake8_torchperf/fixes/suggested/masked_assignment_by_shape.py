"""Assignments through a mask that is not known to have the shape of the tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.unsafe.masks.masked_assignment import planned, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Edit
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply where the mask may have fewer dimensions than the tensor that it selects from."""
    return planned(place, certain=False)
