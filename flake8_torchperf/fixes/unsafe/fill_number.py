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
    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

__all__ = ["plan", "rewrite"]


def plan(place: FixPlace) -> Edit | None:
    """Apply to a tensor of one Python number."""
    return filled(place, _is_one_number)


def _is_one_number(made: ast.Call, moved: dict[str, str], place: FixPlace) -> bool:
    operand = place.site.operand
    if not isinstance(operand, Tensor):
        return False
    match made.args[0]:
        case ast.List(elts=[_]) | ast.Tuple(elts=[_]):
            return operand.rank == 1 and _has_dtype(made)
        case ast.BinOp(left=ast.List(elts=[ast.Constant()])):
            return True
        case ast.List() | ast.Tuple():
            return False
    return operand.scalar is True


def _has_dtype(made: ast.Call) -> bool:
    return any(one.arg == "dtype" for one in made.keywords)
