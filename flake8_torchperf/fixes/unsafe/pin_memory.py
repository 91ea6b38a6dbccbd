"""``DataLoader(data)`` -> ``DataLoader(data, pin_memory=True)``: batches a device can fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.options import option_set, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Edit
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to a loader that does not pin, whatever its workers."""
    if "no-pin" not in place.site.traits:
        return None
    return option_set(place.site.node, "pin_memory", "True")
