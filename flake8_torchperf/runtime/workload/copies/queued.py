"""Recognises copies with `non_blocking=True`, and those of them that only look asynchronous.

torch hands such a copy to the driver as it is if both tensors lie in memory in the same order. If
not, it first copies the host's tensor to new, pageable memory (aten/src/ATen/native/cuda/Copy.cu,
`copy_requires_temporaries` and `copy_kernel_cuda`; pinned or not, which vLLM found to wait in its
pull requests 51841 and 53491). Of pageable memory the driver makes a pinned copy, for which it may
wait for the stream, and into pageable memory it returns only when the copy is complete (CUDA driver
API, "API synchronization behavior"). torch's sync debug mode reports none of these waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

from flake8_torchperf.runtime.counting.interceptors import names_host
from flake8_torchperf.runtime.workload.copies.to_device import IsHost
from flake8_torchperf.runtime.workload.exchange import IN_ONE_PIECE, NON_BLOCKING
from flake8_torchperf.runtime.workload.sync_kinds import is_non_blocking

IsPinned: TypeAlias = "Callable[[torch.Tensor], bool]"

QUEUED_CALLS = frozenset({"to", "cuda", "copy_"})
"""The calls that take `non_blocking`."""

_ONE_PIECE = 64 * 1024
"""Up to so many bytes, the driver takes a copy of pageable memory at once (CUDA programming guide,
"Concurrent execution between host and device"; an H100 did not wait for 5 numbers behind a busy
queue: tests/data/forms-h100.json)."""


def pinned_of_this_machine() -> IsPinned | None:
    """Return the test for pinned memory; None without CUDA, where no memory can be pinned."""
    return _is_pinned if torch.cuda.is_available() else None


def _is_pinned(tensor: torch.Tensor) -> bool:
    with torch._C._DisableTorchDispatch():  # a dispatch that an open counter must not count
        return tensor.is_pinned()


def queued(
    name: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    out: Any,
    is_host: IsHost,
    is_pinned: IsPinned | None,
) -> str:
    """Return the kind of a copy between host and device that is not to wait; "" for other calls."""
    if not is_non_blocking(name, args, kwargs) or not isinstance(out, torch.Tensor):
        return ""
    if name == "copy_":
        source, target = args[1] if len(args) > 1 else kwargs.get("src"), args[0]
    else:
        source, target = args[0], out
    if not isinstance(source, torch.Tensor) or not source.nbytes:
        return ""
    crossed = _crosses(source, target)
    if name == "copy_":
        up = source.device.type == "cpu" if crossed else is_host(source)
        crosses = crossed or up != is_host(target)
    else:
        up = source.device.type == "cpu" if crossed else True
        crosses = crossed or (is_host(source) and _names_device(name, args, kwargs))
    return _kind(source, target, up, is_pinned) if crosses else ""


def _crosses(source: torch.Tensor, target: torch.Tensor) -> bool:
    types = {source.device.type, target.device.type}
    return len(types) == 2 and "cpu" in types and "meta" not in types


def _names_device(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """True if a call names a device that the host stands in for."""
    if name == "cuda":
        return True
    device = kwargs.get("device", args[1] if len(args) > 1 else None)
    return isinstance(device, (str, torch.device, int)) and not names_host(device)


def _kind(source: torch.Tensor, target: torch.Tensor, up: bool, is_pinned: IsPinned | None) -> str:
    host, side = (source, "source") if up else (target, "target")
    if _needs_copy(source, target, up):
        why = "not-dense"
    elif is_pinned is not None and not is_pinned(host):
        why = "pageable"
    else:
        return NON_BLOCKING
    small = IN_ONE_PIECE if up and source.nbytes <= _ONE_PIECE else ""
    return f"{small}{side}-{why}"


def _needs_copy(source: torch.Tensor, target: torch.Tensor, up: bool) -> bool:
    """True if torch copies the host's tensor to pageable memory before or after the real copy."""
    order = _order(source)
    # Where the host stands in for the device, a moved tensor may be the source itself: on a device
    # it would have the order of a dense source.
    if source.dtype == target.dtype and order == _order(target) and _is_dense(order):
        return False
    if up:
        return _sizes(order) != _sizes(_order(target)) or not source.is_contiguous()
    return not target.is_contiguous()


_Order: TypeAlias = "list[tuple[int, int]]"


def _order(tensor: torch.Tensor) -> _Order:
    """Return size and stride of each dimension that matters."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [(size, stride) for size, stride in pairs if size != 1]


def _sizes(order: _Order) -> list[int]:
    return [size for size, _ in order]


def _is_dense(order: _Order) -> bool:
    """True if the elements fill their memory, in whatever order, without gaps or overlaps."""
    filled = 1
    for size, stride in sorted(order, key=lambda one: one[1]):
        if stride != filled:
            return False
        filled *= size
    return True
