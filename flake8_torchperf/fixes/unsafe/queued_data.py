"""``torch.tensor(v).to(d)`` -> its copy is queued, whatever the device.

For devices other than that of a tensor at hand, whose ``is_cuda`` the code could test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.safe.queued_if_cuda import planned, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to new data, whatever device it is copied to."""
    call = planned(place)
    return None if call is None else Edit((call,), {"flag": "True"})
