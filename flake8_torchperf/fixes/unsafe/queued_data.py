"""``torch.tensor(v).to(d)`` -> its copy is queued, on any device.

For devices that are not the device of a known tensor, whose ``is_cuda`` the code could test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.safe.queued_if_cuda import planned, rewrite
from flake8_torchperf.fixes.shared.kinds import has_float64

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to new data that is copied to any device, in a project that does not name MPS.

    MPS may copy memory that is freed by then (pytorch/pytorch issue 139550).
    """
    call = planned(place) if has_float64(place.around) else None
    return None if call is None else Edit((call,), {"flag": "True"})
