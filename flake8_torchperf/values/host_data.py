"""Data on the host: what it was made from, the memory it lies in, and what only lies there.

Of the last, data read from a file and a tokenizer's batches are known to lie on the host, no more.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.values.devices import MADE, SOMETIMES
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    LOADED,
    STR,
    UNKNOWN,
    BoundMethod,
    NDArray,
    Reason,
    Sequence,
    Strength,
    Tensor,
    Value,
)

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


# Methods of a checkpoint's dicts.
OF_DICTS = frozenset(("items", "keys", "values", "get", "pop", "setdefault", "copy"))
_PAIR = Sequence("tuple", LOADED, (STR, LOADED))
_RESULTS: dict[str, Value] = {
    "items": Sequence("list", _PAIR),
    "keys": Sequence("list", STR),
    "values": Sequence("list", LOADED),
}


def member(name: str, of_tensor: Value) -> Value:
    """Return ``loaded.name``, given the same attribute of a tensor."""
    if name in OF_DICTS:
        return BoundMethod(LOADED, name)
    return of_tensor if isinstance(of_tensor, BoundMethod) else LOADED


def call_method(name: str) -> Value:
    """Return the value of ``loaded.items()``, ``loaded.get("model", loaded)`` and others."""
    return _RESULTS.get(name, LOADED)


# Methods of a batch after which its tensors no longer lie on the host.
MOVES = ("to", "cuda", "pin_memory", "convert_to_tensors")


def host_batch_item(node: ast.AST | None) -> Tensor:
    """Return a tensor of a tokenizer's batch."""
    told = 'part of what `return_tensors="pt"` asks for'
    reason = Reason(told, node, None, Strength.INFERRED, Source.TOKENIZER)
    return Tensor(reason, device="host")
