"""``torch.tensor(v, device=d)`` -> made on the host, and its copy queued, wherever it goes.

For devices that are not those of a tensor at hand, which could be asked whether it is on CUDA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.values import Tensor
from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.safe.queued_if_cuda import is_python, planned, rewrite

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to new data, wherever it goes."""
    found = planned(place)
    if found is None:
        return None
    call, index = found
    operand = place.site.operand
    stated = isinstance(operand, Tensor) and operand.dtype != "unknown"
    names = index < 0 or stated or is_python(call.args[0], place)
    return Edit((call,), {"device": index, "flag": "True", "names": names})
