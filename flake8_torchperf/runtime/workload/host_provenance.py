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


class _Reference(weakref.ref[torch.Tensor]):
    """A weak reference that knows its key, so that one callback serves all."""

    __slots__ = ("firm", "key")
    key: int
    firm: bool


class Origins:
    """Remembers the host's tensors by identity, without touching them or keeping them alive."""

    def __init__(self) -> None:
        # By id; `firm` where the device was left out, not handed over as None.
        self._host: dict[int, _Reference] = {}
        self._gone = self._forget
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
        return known is not None and known() is tensor and (known.firm or not firmly)

    def mark_host(self, tensor: Any, firmly: bool = True) -> None:
        """This tensor lives on the host."""
        for one in (tensor,) if isinstance(tensor, torch.Tensor) else tensors_in(tensor):
            reference = _Reference(one, self._gone)
            reference.key, reference.firm = id(one), firmly
            self._host[reference.key] = reference

    def _forget(self, reference: weakref.ref[torch.Tensor]) -> None:
        # The address may be a younger tensor's by now.
        if isinstance(reference, _Reference) and self._host.get(reference.key) is reference:
            del self._host[reference.key]

    def mark_device(self, tensor: Any) -> None:
        """This tensor moves with a module, or was moved: it is the device's."""
        self._host.pop(id(tensor), None)

    def follow(self, name: str, args: Any, kwargs: Any, out: Any, owned_factory: bool) -> None:
        """Mark what a call returned by what went in."""
        if name in FACTORIES and next(tensors_in(args), None) is None:
            if owned_factory and kwargs.get("device") in (None, "cpu"):
                self.mark_host(out, kwargs.get("device", "cpu") == "cpu")
        elif name == "cpu" or (name == "to" and names_host(args, kwargs)):
            self._copied_down(args[0], out)
        elif self._host and not self._moved_away(name, args, kwargs):
            firm = self._only_host(args)
            if firm is not None:
                self.mark_host(out, firm)

    def _only_host(self, args: Any) -> bool | None:
        """Whether all tensors among these are the host's, and firmly so; None where not or none.

        Runs for each call of the workload's, so it looks into containers only where there are any.
        """
        firm: bool | None = None
        for one in args:
            if isinstance(one, torch.Tensor):
                known = self._host.get(id(one))
                if known is None or known() is not one:
                    if not self.is_host(one):
                        return None
                    firm = False
                else:
                    firm = known.firm if firm is None else firm and known.firm
            elif isinstance(one, (tuple, list, dict)):
                for inner in tensors_in(one):
                    if not self.is_host(inner):
                        return None
                    firm = self.is_host(inner, firmly=True) and firm is not False
        return firm

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
