"""Recognises the calls that copy from the host to the device and wait, in a run without a device.

The waits were measured on an H100, form by form (`tools/torch_table/forms.py`,
tests/data/forms-h100.json).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any

import torch

from flake8_torchperf.runtime.counting.interceptors import names_host
from flake8_torchperf.runtime.workload.sync_kinds import has_mask, is_non_blocking

IsHost = Callable[[Any], bool]
"""True for a tensor that was made on the host; others count as the device's."""

ASSIGNED, INDEX = "assign-from-host", "host-index"
MADE, MOVED = "new-from-host", "copy-to-device"


def copied(
    name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, is_host: IsHost
) -> str:
    """Return the kind of copy to the device that this call waits for; "" where it does not."""
    look = _LOOKS.get(name)
    return look(args, kwargs, out, is_host) if look is not None else ""


def _assigned(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    """Recognise `v[i] = 1.0`: a number is passed to `fill_` where a slice is left, else copied."""
    target, index, value = args[:3]
    if is_host(target):
        return ""
    parts = index if isinstance(index, tuple) else (index,)
    if _on_host_index(parts, is_host):
        return INDEX
    if isinstance(value, torch.Tensor):
        fills = has_mask(index) and not value.dim()  # masked_fill_ takes a 0-d host tensor
        return ASSIGNED if is_host(value) and not fills else ""
    if not isinstance(value, Number):
        return ASSIGNED  # a list or an array becomes a tensor of the host first
    positions = any(isinstance(one, torch.Tensor) and one.dim() for one in parts)
    whole = all(_is_integer(one) for one in parts) and len(parts) == target.dim()
    return ASSIGNED if (positions and not has_mask(index)) or whole else ""


def _put(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    if len(args) < 3 or is_host(args[0]):
        return ""
    if _on_host_index(args[1], is_host):
        return INDEX
    return ASSIGNED if is_host(args[2]) and not has_mask(tuple(args[1])) else ""


def _read(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    target, index = args[:2]
    if is_host(target):
        return ""
    parts = index if isinstance(index, tuple) else (index,)
    return INDEX if _on_host_index(parts, is_host) else ""


def _on_host_index(parts: Any, is_host: IsHost) -> bool:
    """True for a list, or a tensor of the host that holds more than one position."""
    return any(
        isinstance(one, list) or (isinstance(one, torch.Tensor) and one.dim() and is_host(one))
        for one in parts
    )


def _is_integer(part: Any) -> bool:
    return isinstance(part, int) and not isinstance(part, bool)


def _made(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    device = kwargs.get("device")
    if device is None or names_host(device) or not out.numel():
        return ""
    return _made_of(args[0] if args else kwargs.get("data", kwargs.get("obj")), is_host)


def _made_like(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    if is_host(args[0]) or names_host(kwargs.get("device")) or not out.numel():
        return ""
    return _made_of(args[1] if len(args) > 1 else kwargs.get("data"), is_host)


def _made_of(data: Any, is_host: IsHost) -> str:
    if isinstance(data, torch.Tensor):
        return MOVED if is_host(data) else ""
    return MADE


def _moved(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    """Recognise `to(...)`, also of pinned and small tensors, although these need no wait."""
    target = kwargs.get("device", kwargs.get("other", args[1] if len(args) > 1 else None))
    if is_non_blocking("to", args, kwargs) or not is_host(args[0]):
        return ""
    if isinstance(target, torch.Tensor):
        return "" if is_host(target) else MOVED
    is_device = isinstance(target, (str, torch.device)) and not names_host(target)
    return MOVED if is_device else ""


def _copied_into(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    waits = not is_non_blocking("copy_", args, kwargs)
    down = is_host(args[0]) or not is_host(args[1] if len(args) > 1 else kwargs.get("src"))
    return MOVED if waits and not down else ""


def _chosen(args: Any, kwargs: Any, out: Any, is_host: IsHost) -> str:
    """Recognise `torch.where(m, x, host)`; other operations take a host number as it is."""
    if is_host(args[0]):
        return ""
    return MOVED if any(isinstance(one, torch.Tensor) and is_host(one) for one in args[1:]) else ""


_LOOKS: dict[str, Callable[[Any, Any, Any, IsHost], str]] = {
    "__setitem__": _assigned,
    "index_put_": _put,
    "index_put": _put,
    "__getitem__": _read,
    "tensor": _made,
    "as_tensor": _made,
    "asarray": _made,
    "new_tensor": _made_like,
    "to": _moved,
    "copy_": _copied_into,
    "where": _chosen,
}
COPY_CALLS = frozenset(_LOOKS)
"""The calls that may copy to the device."""
