"""The origin of tensors on the host: the data they were made from, and the memory they lie in."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.values.devices import MADE, SOMETIMES
from flake8_torchperf.values.values import UNKNOWN, NDArray, Sequence, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

# A tensor made of numbers alone could be made on the device; data has to be copied.
FACTORY, PYTHON, NUMPY = NAMED = MADE  # these have traits
EMPTY = "empty"  # no elements: there is nothing to make or to copy
CHOSEN = "chosen"  # made on the host on purpose: by a generator of the host, or `device="cpu"`
PINNED, PAGEABLE = "pinned", "pageable"
# A view of pinned memory with gaps: torch gathers it into pageable memory before the copy, which
# then waits (aten/src/ATen/native/cuda/Copy.cu, `copy_requires_temporaries`).
STRIDED = "strided"


def common_origin(tensors: Iterable[Tensor]) -> str:
    """Return the origin of a result computed from these tensors; "" if one of theirs is unknown."""
    origins = {tensor.origin for tensor in tensors}
    if "" in origins:
        return ""
    kinds = (SOMETIMES, NUMPY, PYTHON, CHOSEN, FACTORY)
    return next((kind for kind in kinds if kind in origins), "")


def cast(tensor: Tensor, *, smaller: bool = False) -> Tensor:
    """Return the tensor in another dtype: its memory may be the same or new.

    A cast to a ``smaller`` dtype is written to change it, so it makes new memory.
    """
    if tensor.memory not in (PINNED, STRIDED):
        return tensor
    return replace(tensor, memory=PAGEABLE if smaller else "")


def part(tensor: Tensor, index: ast.expr) -> str:
    """Return the memory of ``tensor[index]``, a view that may have gaps."""
    if tensor.memory != PINNED:
        return tensor.memory
    sliced = False
    for one in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(one, ast.Slice):
            whole = one.lower is None and one.upper is None
            if one.step is not None or (sliced and not whole):
                return STRIDED
            sliced = True
        elif sliced:
            return STRIDED
    return PINNED


def pinned(tensor: Tensor) -> Tensor:
    """Return the result of ``tensor.pin_memory()``: a host copy that the device can fetch."""
    return replace(tensor, device="host", origin="", memory=PINNED, arrives=0)


def data_origin(data: Value, short: str) -> str:
    """Return the origin of ``torch.tensor(data)``; "" if ``data`` may be a tensor already."""
    if isinstance(data, NDArray):
        return NUMPY
    if isinstance(data, Sequence) and data.items == ():
        return EMPTY
    if isinstance(data, Sequence) and isinstance(data.element, NDArray):
        return NUMPY
    # torch.tensor takes data; given a tensor, it warns.
    return PYTHON if data is not UNKNOWN or short in ("tensor", "new_tensor") else ""
