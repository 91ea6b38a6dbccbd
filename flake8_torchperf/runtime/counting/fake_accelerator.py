"""Runs code that names an accelerator on a machine without one, on the host instead.

While the mode is open, `to("cuda")`, `cuda()` and `device="cuda"` use the host, where a counter
that counts the host as a device sees the copy that they would make. Nothing changes if the named
accelerator exists. Features without a counterpart on the host (streams, events, memory statistics)
still raise torch's own errors.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# Device types of tensors without any accelerator.
HOST_DEVICE_TYPES = ("cpu", "meta")
_HOST = torch.device("cpu")
_DEVICE = torch.device  # looked up once: the mode sees each call
# Methods that move a tensor and name the device by their own name.
_MOVES = ("cuda", "xpu", "hpu", "ipu", "mtia")


def standing_in() -> contextlib.AbstractContextManager[Any]:
    """Return the mode where this machine has no accelerator, else a context that does nothing."""
    if torch.accelerator.is_available():
        return contextlib.nullcontext()
    return HostStandsIn()


class HostStandsIn(TorchFunctionMode):
    """Replaces every accelerator that a call names by the host."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call through, with the host for accelerators that this machine lacks."""
        name = getattr(func, "__name__", "")
        if name == "__get__":  # an attribute, which most calls ask for, names no device
            return func(*args)
        if name in _MOVES and args and isinstance(args[0], torch.Tensor):
            return args[0].to(_HOST)
        if name == "pin_memory":
            return args[0].clone()  # pinned memory is memory of its own
        if name == "to" and len(args) > 1:
            args = (args[0], _host_for(args[1]), *args[2:])
        elif _DEVICE in map(type, args):
            args = tuple(_host_for(one) if isinstance(one, torch.device) else one for one in args)
        if not kwargs:
            return func(*args)
        if "device" in kwargs:
            kwargs = {**kwargs, "device": _host_for(kwargs["device"])}
        return func(*args, **kwargs)


def _host_for(device: Any) -> Any:
    """Return the host for an accelerator; anything else, such as a dtype, unchanged."""
    if isinstance(device, int) and not isinstance(device, bool):
        return _HOST
    if isinstance(device, (str, torch.device)) and _kind(device) not in HOST_DEVICE_TYPES:
        return _HOST
    return device


def _kind(device: str | torch.device) -> str:
    return device.type if isinstance(device, torch.device) else device.partition(":")[0]
