"""The kinds of waits, by the name of the function called.

The kinds are those of the labels in `benchmarks/labels`. `knowledge/sync_kinds.py` derives from the
table of torch which calls wait; here are those of which more than the types of arguments decides.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import torch

from flake8_torchperf.knowledge.sync_kinds import load

_KINDS = load()
DIRECT: dict[str, str] = _KINDS.direct()
"""Calls that always wait for the value or the size of their operand."""

MASK_FILL = "mask-fill"
"""A Python number assigned through one mask: no wait, though `__setitem__` with a mask is called.

`__setitem__` makes a number a CPU tensor where the target is on CUDA (torch 2.13,
torch/csrc/autograd/python_variable_indexing.cpp, THPVariable_setitem: `value = valueToTensor(
self_.options(), py_value, at::Device(kCPU))`), and `index_put_` hands one CPU element and one mask
to `masked_fill_` (aten/src/ATen/native/TensorAdvancedIndexing.cpp, canDispatchToMaskedFill). On
this machine's CPU a 0-d tensor of the device looks the same by then, so Python's argument decides.
"""

KERNEL_KINDS = _KINDS.in_kernel
"""Kinds that no rewriting of the caller avoids."""


def may_wait(name: str) -> bool:
    """True if a call of this name waits with some arguments."""
    return name in DIRECT or name in LOOKS or name in _KINDS.calls


def waiting_kind(name: str, args: tuple[Any, ...], kwargs: Any) -> str:
    """Return the kind of wait of this call; "" where its arguments show that it does not wait."""
    kind = DIRECT.get(name)
    if kind is not None:
        return kind
    look = LOOKS.get(name)
    if look is not None:
        return look(args, kwargs)
    call = _KINDS.calls.get(name)
    if call is None:
        return ""
    keywords = {name: _kind_of(value) for name, value in kwargs.items()}
    return call.kind if call.waits([_kind_of(one) for one in args], keywords) else ""


def _kind_of(value: Any) -> str:
    """Return the kind of an argument, in the words of the table's overloads."""
    match value:
        case bool():
            return "1" if value else "0"
        case list() | tuple():
            items = {_kind_of(one) for one in value}
            return {"T": "Tl", "i": "Z"}.get("".join(items), "x")
    return next((kind for type_, kind in _ARGUMENTS.items() if isinstance(value, type_)), "x")


_ARGUMENTS: dict[type, str] = {
    torch.Tensor: "T",
    int: "i",
    float: "f",
    str: "s",
    type(None): "-",
    torch.dtype: "Y",
    torch.device: "D",
}


def _read_index(args: tuple[Any, ...], kwargs: Any) -> str:
    return "mask-index" if len(args) > 1 and has_mask(args[1]) else ""


def _assigned_index(args: tuple[Any, ...], kwargs: Any) -> str:
    if len(args) < 2 or not has_mask(args[1]):
        return ""
    fills = len(args) > 2 and isinstance(args[2], Number) and alone(args[1])
    return MASK_FILL if fills else "mask-assign"


def alone(index: Any) -> bool:
    """True if a mask with dimensions is the only tensor, list or array among the indices."""
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [one for one in parts if isinstance(one, list) or hasattr(one, "__array__")]
    return len(arrays) == 1 and getattr(arrays[0], "ndim", 1) > 0


def has_mask(index: Any) -> bool:
    """True if an index selects by truth values held in a tensor."""
    if isinstance(index, torch.Tensor):
        return index.dtype in (torch.bool, torch.uint8)
    return isinstance(index, (tuple, list)) and any(has_mask(one) for one in index)


def _cpu(args: tuple[Any, ...], kwargs: Any) -> str:
    return "cpu"


def is_non_blocking(name: str, args: tuple[Any, ...], kwargs: Any) -> bool:
    """True if `to`, `cuda` or `copy_` is called with `non_blocking=True`, by name or by position.

    `Module.to` passes it by position (torch/nn/modules/module.py, `convert`).
    """
    if "non_blocking" in kwargs:
        return bool(kwargs["non_blocking"])
    place = 2  # to(dtype), to(other), cuda(device), copy_(src)
    if name == "to" and len(args) > 1 and isinstance(args[1], (str, int, torch.device, type(None))):
        place = 3  # to(device, dtype)
    return len(args) > place and args[place] is True


def _to(args: tuple[Any, ...], kwargs: Any) -> str:
    if is_non_blocking("to", args, kwargs):
        return ""  # torch copies into pinned memory then, and nothing waits
    device = kwargs.get("device", args[1] if len(args) > 1 else None)
    if isinstance(device, str) and device.startswith("cpu"):
        return "cpu"
    here = args[0].device.type
    return "cpu" if isinstance(device, torch.device) and device.type == "cpu" != here else ""


def _copy(args: tuple[Any, ...], kwargs: Any) -> str:
    return "" if is_non_blocking("copy_", args, kwargs) else "copy-to-host"


def _repeat_interleave(args: tuple[Any, ...], kwargs: Any) -> str:
    if kwargs.get("output_size") is not None:
        return ""
    repeats = kwargs.get("repeats", args[1] if len(args) > 1 else args[0] if args else None)
    return "repeat-interleave" if isinstance(repeats, torch.Tensor) else ""


def _one_hot(args: tuple[Any, ...], kwargs: Any) -> str:
    classes = kwargs.get("num_classes", args[1] if len(args) > 1 else -1)
    return "one-hot" if isinstance(classes, int) and classes < 0 else ""


def _masked_fill(args: tuple[Any, ...], kwargs: Any) -> str:
    return _number_or_read(kwargs.get("value", args[2] if len(args) > 2 else None))


def _index_fill(args: tuple[Any, ...], kwargs: Any) -> str:
    return _number_or_read(kwargs.get("value", args[3] if len(args) > 3 else None))


def _number_or_read(value: Any) -> str:
    """Return the kind for kernels that take a number: a tensor in its place is read."""
    return "scalar-arg" if isinstance(value, torch.Tensor) else ""


def _matrix_power(args: tuple[Any, ...], kwargs: Any) -> str:
    exponent = kwargs.get("n", args[1] if len(args) > 1 else 0)
    return "linalg" if isinstance(exponent, int) and exponent < 0 else ""


def _made_of(args: tuple[Any, ...], kwargs: Any) -> str:
    """Return the kind for `torch.tensor([s, t])`, which reads each tensor in its list."""
    data = args[0] if args else kwargs.get("data", kwargs.get("obj"))
    if not isinstance(data, (list, tuple)):
        return ""
    return "tensor-of-tensors" if any(isinstance(one, torch.Tensor) for one in data) else ""


def _where(args: tuple[Any, ...], kwargs: Any) -> str:
    return "nonzero" if len(args) + len(kwargs) == 1 else ""


LOOKS = {
    "__getitem__": _read_index,
    "__setitem__": _assigned_index,
    "index": _read_index,
    "index_put": _assigned_index,
    "index_put_": _assigned_index,
    "cpu": _cpu,
    "to": _to,
    "copy_": _copy,
    "repeat_interleave": _repeat_interleave,
    "one_hot": _one_hot,
    "where": _where,
    "masked_fill": _masked_fill,
    "masked_fill_": _masked_fill,
    "index_fill": _index_fill,
    "index_fill_": _index_fill,
    "matrix_power": _matrix_power,
    "linalg_matrix_power": _matrix_power,
    "tensor": _made_of,
    "as_tensor": _made_of,
    "asarray": _made_of,
}
"""Calls whose arguments decide."""
