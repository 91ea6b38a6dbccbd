"""``torch.tensor(x, device=d)`` -> ``torch.full((), x, device=d)`` for a number of unknown type.

`torch.tensor` keeps the dtype of numpy's numbers, and `torch.full` refuses numbers that float32
cannot hold.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.safe.fill_on_device import filled, rewrite
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Edit
    from flake8_torchperf.fixes.engine.surroundings import Place

__all__ = ["plan", "rewrite"]


def plan(place: Place) -> Edit | None:
    """Apply to a tensor of one Python number."""
    return filled(place, _is_one_number)


def _is_one_number(made: ast.Call, moved: dict[str, str], place: Place) -> bool:
    operand = place.site.operand
    known = isinstance(operand, Tensor) and operand.scalar is True
    return known and not isinstance(made.args[0], (ast.List, ast.Tuple))
