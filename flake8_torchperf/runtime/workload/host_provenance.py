"""Tracks which tensors were made on the host, for runs on a machine without an accelerator.

A tensor counts as the device's unless this module sees it made on the host: by a factory that an
owned line calls without a device (`device=None` does not count) or with the text "cpu"; by one that
torch's own Python code calls in this way (there None is a device that the caller may pass on); or
from such tensors alone. Three things cannot be seen: tensors that C++ makes without a call
(gradients), legacy constructors (`torch.FloatTensor(...)`), and plain attributes that are moved
later by hand. The first two count as the device's.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import torch
from torch.utils._device import _device_constructors

DEVICE_FACTORIES: frozenset[str] = frozenset(one.__name__ for one in _device_constructors()) | {
    "from_numpy",
    "frombuffer",
    "from_file",
}
"""Functions that make a tensor on a device of the caller's choice; torch keeps their list itself
for `torch.device` as a context (torch/utils/_device.py)."""

_MOVES = frozenset({"to", "cuda", "cpu", "type_as", "xpu", "mps"})


class Maker(IntEnum):
    """The maker of a host tensor, from the least certain to the most."""

    CALLER = 0
    """A factory got `device=None`, which would be a device where its caller has one, or a test
    called it, which stands in for such a caller."""
    PROGRAM = 1
    """An owned line left the device out, or named the host."""
    TORCH = 2
    """torch's own code did, for itself: the step counters of an optimizer."""


class _Reference(weakref.ref[torch.Tensor]):
    """A weak reference that knows its key, so that one callback serves all."""

    __slots__ = ("key", "maker")
    key: int
    maker: Maker


class Origins:
    """Remembers the host's tensors by identity, without changing them or keeping them alive."""

    def __init__(self) -> None:
        # By id.
        self._host: dict[int, _Reference] = {}
        self._gone = self._forget
        self._copy: weakref.ref[torch.Tensor] | None = None
        self._alone = 0

    @property
    def marked(self) -> bool:
        """True if a tensor of the host is known, so that results can be."""
        return bool(self._host)

    def calibrate(self) -> None:
        """Measure reference counts; to be called where the workload's calls are, counters open."""
        self._alone = _references_to_a_temporary()

    def is_host(self, tensor: Any, *, firmly: bool = False) -> bool:
        """True if reading this tensor does not wait.

        With ``firmly``, only if that holds on every machine: a `device=None` that a function passes
        on is a device if its caller has one.
        """
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "cpu":
            return False
        if self._copy is not None and self._copy() is tensor:
            return True
        known = self._host.get(id(tensor))
        if known is None or known() is not tensor:
            return False
        return known.maker is not Maker.CALLER or not firmly

    def mark_host(self, tensor: Any, maker: Maker = Maker.PROGRAM) -> None:
        """Record that these tensors lie on the host."""
        for one in (tensor,) if isinstance(tensor, torch.Tensor) else tensors_in(tensor):
            reference = _Reference(one, self._gone)
            reference.key, reference.maker = id(one), maker
            self._host[reference.key] = reference

    def _forget(self, reference: weakref.ref[torch.Tensor]) -> None:
        # The address may be a younger tensor's by now.
        if isinstance(reference, _Reference) and self._host.get(reference.key) is reference:
            del self._host[reference.key]

    def mark_device(self, tensor: Any) -> None:
        """Record that this tensor is the device's: it moves with a module, or was moved."""
        self._host.pop(id(tensor), None)

    def follow(self, name: str, args: Any, kwargs: Any, out: Any, by: Maker | None) -> None:
        """Mark a call's result by its arguments; ``by`` says whose line called a factory."""
        if name in DEVICE_FACTORIES and next(tensors_in(args), None) is None:
            device = kwargs.get("device", "cpu")
            if by is not None and device == "cpu":
                self.mark_host(out, by)
            elif by in (Maker.PROGRAM, Maker.CALLER) and device is None:
                self.mark_host(out, Maker.CALLER)
        elif name == "cpu" or (name == "to" and names_host(args, kwargs)):
            self._copied_down(args[0], out)
        elif not self._host:
            return
        elif self._moved_away(name, args, kwargs):
            self.mark_device(out)  # On the host `to(device)` returns its operand.
        elif (maker := self._only_host(args)) is not None:
            self.mark_host(out, maker)

    def _only_host(self, args: Any) -> Maker | None:
        """Return the least certain maker where all tensors among these are the host's; else None.

        Runs for each call of the workload, so it looks into containers only where there are any.
        """
        least: Maker | None = None
        for one in args:
            if isinstance(one, torch.Tensor):
                maker = self._maker(one)
                if maker is None:
                    return None
                least = maker if least is None or maker < least else least
            elif isinstance(one, (tuple, list, dict)):
                for inner in tensors_in(one):
                    maker = self._maker(inner)
                    if maker is None:
                        return None
                    least = maker if least is None or maker < least else least
        return least

    def _maker(self, tensor: torch.Tensor) -> Maker | None:
        known = self._host.get(id(tensor))
        if known is not None and known() is tensor:
            return known.maker
        return Maker.CALLER if self.is_host(tensor) else None

    def _moved_away(self, name: str, args: Any, kwargs: Any) -> bool:
        if name not in _MOVES:
            return kwargs.get("device") not in (None, "cpu")
        target = kwargs.get("device", args[1] if len(args) > 1 else None)
        return name in ("cuda", "xpu", "mps") or isinstance(target, (str, torch.device, int))

    def _copied_down(self, source: torch.Tensor, out: Any) -> None:
        """Note the result of `cpu()`, which returns the same tensor if that is on the host.

        If nothing else refers to that tensor (`x.detach().cpu()`), it is the copy. Otherwise it is
        both original and copy; only the last result counts as the copy, which is the one that a
        chain of calls uses.
        """
        if out is not source or sys.getrefcount(source) <= self._alone:
            self.mark_host(out)
        elif isinstance(out, torch.Tensor):
            self._copy = weakref.ref(out)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments or results, in containers too."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from tensors_in(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_in(one)


def names_host(args: Any, kwargs: Any) -> bool:
    """True if `to(...)` names the host as a literal; see `counting.interceptors`."""
    device = kwargs.get("device", args[1] if len(args) > 1 else None)
    return isinstance(device, str) and device.startswith("cpu")


def _references_to_a_temporary() -> int:
    """Return how many references `_copied_down` sees to a tensor that only the call itself holds.

    The number is measured, since it depends on how this Python and this torch pass arguments.
    """
    seen: list[int] = []

    class Probe(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            if getattr(func, "__name__", "") == "cpu":
                _judge(seen, args, out)
            return out

    with Probe():
        torch.zeros(1).detach().cpu()
    return seen[0]


# As deep as `Witness._judge`, `Origins.follow` and `Origins._copied_down`: each call on the way
# holds references.


def _judge(seen: list[int], args: Any, out: Any) -> None:
    _follow(seen, args, out)


def _follow(seen: list[int], args: Any, out: Any) -> None:
    _copied_down(seen, args[0], out)


def _copied_down(seen: list[int], source: torch.Tensor, out: Any) -> None:
    seen.append(sys.getrefcount(source))
