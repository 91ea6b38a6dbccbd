"""``torch.tensor(v).to(d)`` -> its copy is queued, wherever it goes.

For devices that are not those of a tensor at hand, which could be asked whether it is on CUDA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.safe.queued_if_cuda import planned, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to new data, wherever it goes."""
    call = planned(place)
    return None if call is None else Edit((call,), {"flag": "True"})
