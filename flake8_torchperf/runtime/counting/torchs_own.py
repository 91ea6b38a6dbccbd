"""Recognises, on a machine without a device, what torch does for itself that would not wait on one.

Optimizers keep their step counters on the host, and torch's functions move tensors to the device
where they are already. Neither is the program's read or copy.
"""

from __future__ import annotations

import dis
import os
import weakref
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import torch

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OPTIM = os.path.join(_TORCH, "optim") + os.sep
# It makes its counters where the parameters are, and reads them there (torch/optim/asgd.py,
# _init_group). All others make them on the host unless they never read them (capturable, fused).
_ON_DEVICE = os.path.join(_OPTIM, "asgd.py")
# Functions of torch's own classes through which a program moves its tensors: `Module.to`.
_MOVES = frozenset({"to", "cuda", "convert"})

_counters: weakref.WeakKeyDictionary[Any, frozenset[int]] = weakref.WeakKeyDictionary()


def reads_own_counter(frame: FrameType | None, tensor: torch.Tensor) -> bool:
    """True if an optimizer of torch's reads a number that it keeps in its state."""
    if tensor.dim():
        return False
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        own = frame.f_locals.get("self")
        if isinstance(own, torch.optim.Optimizer):
            path = frame.f_code.co_filename
            return path.startswith(_OPTIM) and path != _ON_DEVICE and _is_counter(own, tensor)
        frame = frame.f_back
    return False


def _is_counter(optimizer: torch.optim.Optimizer, tensor: torch.Tensor) -> bool:
    if id(tensor) not in _counters.get(optimizer, ()):
        _counters[optimizer] = frozenset(
            id(one)
            for state in getattr(optimizer, "state", {}).values()
            for one in state.values()
            if isinstance(one, torch.Tensor)
        )
    return id(tensor) in _counters[optimizer]


def stays(frame: FrameType, tensor: torch.Tensor) -> bool:
    """True if a call of `to` with a device names the one where its tensor is: nothing is copied.

    That is so where torch's own functions call it, for a result of operations that autograd
    recorded, and in `x.to(x.device)`.
    """
    if frame.f_code.co_filename.startswith(_TORCH):
        return frame.f_code.co_name not in _MOVES
    if tensor.grad_fn is not None:
        return True
    name = _named_device(frame.f_code, frame.f_lasti)
    return bool(name) and _value(frame, name) is tensor


def _value(frame: FrameType, name: str) -> Any:
    found = frame.f_locals.get(name)
    return frame.f_globals.get(name) if found is None else found


@lru_cache(maxsize=4096)
def _named_device(code: CodeType, offset: int) -> str:
    """Return the x of the argument `x.device` of the call at this offset; "" if it is another."""
    before = [
        one
        for one in dis.get_instructions(code)
        if one.offset <= offset and one.opname not in ("PRECALL", "KW_NAMES", "LOAD_CONST", "CACHE")
    ][-3:]  # The last is the call itself, whose offset the caches behind it share.
    if len(before) < 3 or not before[0].opname.startswith("LOAD_"):
        return ""
    variable, attribute, _ = before
    is_device = attribute.opname == "LOAD_ATTR" and attribute.argval == "device"
    return str(variable.argval) if is_device else ""
