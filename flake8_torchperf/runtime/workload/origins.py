"""Which tensors were made on the host: what a run on a machine without an accelerator can tell.

A tensor counts as the device's unless it was seen being made on the host: by a factory that was
called from an owned line without a device (None is none) or with the text "cpu", or from such
tensors alone. It cannot tell what C++ makes without a call (gradients), what a legacy constructor
makes (`torch.FloatTensor(...)`), nor that a plain attribute is moved later by hand; those count as
the device's, except the last.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.utils._device import _device_constructors

FACTORIES: frozenset[str] = frozenset(one.__name__ for one in _device_constructors()) | {
    "from_numpy",
    "frombuffer",
    "from_file",
}
"""Functions that make a tensor on a device of the caller's choice; torch keeps their list itself
for `torch.device` as a context (torch/utils/_device.py)."""

_MOVES = frozenset({"to", "cuda", "cpu", "type_as", "xpu", "mps"})


class Origins:
    """Remembers the host's tensors by identity, without touching them or keeping them alive."""

    def __init__(self) -> None:
        # id -> reference and whether the device was left out, not handed over as None.
        self._host: dict[int, tuple[weakref.ref[torch.Tensor], bool]] = {}
        self._copy: weakref.ref[torch.Tensor] | None = None
        self._alone = 0

    def calibrate(self) -> None:
        """Measure; to be called where the workload's calls will be made, counters open."""
        self._alone = _references_to_a_temporary()

    def is_host(self, tensor: Any, *, firmly: bool = False) -> bool:
        """Whether reading this tensor waits for nothing.

        ``firmly``: wherever the program runs. A `device=None` that a function passes on would be a
        device where its caller has one.
        """
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "cpu":
            return False
        if self._copy is not None and self._copy() is tensor:
            return True
        known = self._host.get(id(tensor))
        return known is not None and known[0]() is tensor and (known[1] or not firmly)

    def mark_host(self, tensor: Any, firmly: bool = True) -> None:
        """This tensor lives on the host."""
        for one in tensors_in(tensor):
            key = id(one)
            # The reference's end removes the entry, so that a new tensor at this address is new.
            self._host[key] = weakref.ref(one, partial(self._forget, key)), firmly

    def _forget(self, key: int, reference: weakref.ref[torch.Tensor]) -> None:
        # The address may be a younger tensor's by now.
        if key in self._host and self._host[key][0] is reference:
            del self._host[key]

    def mark_device(self, tensor: Any) -> None:
        """This tensor moves with a module, or was moved: it is the device's."""
        self._host.pop(id(tensor), None)

    def follow(self, name: str, args: Any, kwargs: Any, out: Any, owned_factory: bool) -> None:
        """Mark what a call returned by what went in."""
        if name in FACTORIES and not any(True for _ in tensors_in(args)):
            if owned_factory and kwargs.get("device") in (None, "cpu"):
                self.mark_host(out, kwargs.get("device", "cpu") == "cpu")
        elif name == "cpu" or (name == "to" and names_host(args, kwargs)):
            self._copied_down(args[0], out)
        elif self._host and not self._moved_away(name, args, kwargs):
            sources = list(tensors_in(args))
            if sources and all(self.is_host(one) for one in sources):
                self.mark_host(out, all(self.is_host(one, firmly=True) for one in sources))

    def _moved_away(self, name: str, args: Any, kwargs: Any) -> bool:
        if name not in _MOVES:
            return kwargs.get("device") not in (None, "cpu")
        target = kwargs.get("device", args[1] if len(args) > 1 else None)
        return name in ("cuda", "xpu", "mps") or isinstance(target, (str, torch.device, int))

    def _copied_down(self, source: torch.Tensor, out: Any) -> None:
        """`cpu()` of a tensor that is on the host returns the very tensor.

        Where nobody else holds it (`x.detach().cpu()`), what is left is the copy. Otherwise it
        stands for both; the last one counts as the copy, as what a chain goes on with.
        """
        if out is not source or sys.getrefcount(source) <= self._alone:
            self.mark_host(out)
        elif isinstance(out, torch.Tensor):
            self._copy = weakref.ref(out)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors among arguments or results, in containers too."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from tensors_in(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_in(one)


def names_host(args: Any, kwargs: Any) -> bool:
    """Whether `to(...)` names the host itself, as a literal would; see `runtime.patches`."""
    device = kwargs.get("device", args[1] if len(args) > 1 else None)
    return isinstance(device, str) and device.startswith("cpu")


def _references_to_a_temporary() -> int:
    """How many references `_copied_down` sees to a tensor that only the call itself holds.

    Measured, since it depends on how this Python and this torch pass arguments along.
    """
    seen: list[int] = []

    class Probe(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            if getattr(func, "__name__", "") == "cpu":
                _follow(seen, args, out)
            return out

    with Probe():
        torch.zeros(1).detach().cpu()
    return seen[0]


# As deep as `Origins.follow` and `Origins._copied_down`: each call on the way holds references.


def _follow(seen: list[int], args: Any, out: Any) -> None:
    _copied_down(seen, args[0], out)


def _copied_down(seen: list[int], source: torch.Tensor, out: Any) -> None:
    seen.append(sys.getrefcount(source))
