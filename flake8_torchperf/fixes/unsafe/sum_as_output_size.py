"""``repeat_interleave(x, r, dim=0)`` -> ``..., output_size=n)`` where ``n`` is the sum of ``r``.

For repeats that may be one number for all rows: the size then differs, which is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.safe.known_output_size import planned, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Edit
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to repeats whose sum has a name."""
    return planned(place)
