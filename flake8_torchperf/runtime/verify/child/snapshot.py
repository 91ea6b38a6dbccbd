"""In the child: the results and changes of a call, as plain data that two processes can compare.

A node is a list that begins with its kind: "number", "text", "tensor", "sequence", "mapping",
"object", "same" (met before in the same snapshot) or "opaque" (only its type is known).
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import torch

from flake8_torchperf.runtime.confirm.child.builder import AutogradContext, Builder, UnknownObject
from flake8_torchperf.runtime.confirm.child.made_objects import BARE

Node: TypeAlias = "list[Any]"

MAX_DEPTH = 8
MOST_ITEMS = 2_000
# Larger tensors than inputs of these sizes lead to; the file that holds them is bounded too.
MOST_NUMBERS = 100_000
# Of tensors beyond that many in all, such as the parameters of a large module, so many are kept.
FEW_NUMBERS = 500
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_PLAIN = (torch.dtype, torch.device, torch.layout, torch.memory_format, bytes, complex, slice)


def worded(text: object) -> str:
    """Return a text without the addresses that objects print of themselves."""
    return _ADDRESS.sub("0x", str(text))


class Taker:
    """Takes the snapshots of one call; shared objects and memory get numbers that count from 0."""

    def __init__(self) -> None:
        self._objects: dict[int, int] = {}
        self._storages: dict[int, int] = {}
        self._numbers = 0
        self._kept: list[Any] = []  # an address is one object's while that is alive

    def take(self, value: Any, depth: int = 0) -> Node:
        """Return the node for a value."""
        match value:
            case None | bool() | int() | float():
                return ["number", type(value).__name__, _plain_number(value)]
            case str():
                return ["text", worded(value)]
        if isinstance(value, _OPAQUE) or depth > MAX_DEPTH:
            return ["opaque", type(value).__qualname__]
        if isinstance(value, _PLAIN):
            return ["text", worded(repr(value))]
        known = self._objects.get(id(value))
        if known is not None:
            return ["same", known]
        self._objects[id(value)] = len(self._objects)
        self._kept.append(value)
        return self._composed(value, depth + 1)

    def _composed(self, value: Any, depth: int) -> Node:
        name = type(value).__qualname__
        if isinstance(value, torch.Tensor):
            return self._tensor(value, depth)
        if type(value).__module__ == "numpy" and hasattr(value, "__array__"):
            return self._array(value, depth)
        if isinstance(value, Mapping):
            pairs = list(value.items())[:MOST_ITEMS]
            return ["mapping", name, [[self._key(k), self.take(v, depth)] for k, v in pairs]]
        if isinstance(value, (list, tuple)):
            return ["sequence", name, [self.take(one, depth) for one in value[:MOST_ITEMS]]]
        if isinstance(value, (set, frozenset)):
            items = sorted((self.take(one, depth) for one in value), key=repr)
            return ["sequence", name, items]
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Node:
        if isinstance(value, (Builder, torch.Generator)):
            return ["opaque", type(value).__qualname__]
        if is_dataclass(value):
            names = [one.name for one in fields(value) if hasattr(value, one.name)]
            inside = {name: getattr(value, name) for name in names}
        else:
            inside = dict(getattr(value, "__dict__", {}))
        lazy = isinstance(value, (UnknownObject, AutogradContext)) or hasattr(type(value), BARE)
        inside.pop("_torchperf", None)
        taken = {str(name): self.take(one, depth) for name, one in inside.items()}
        return ["object", type(value).__qualname__, taken, lazy]

    def _key(self, key: Any) -> str:
        return worded(repr(key)) if isinstance(key, (str, int, float, tuple)) else str(type(key))

    def _array(self, value: Any, depth: int) -> Node:
        try:
            return ["sequence", type(value).__qualname__, [self._tensor(_of_array(value), depth)]]
        except TypeError:
            return ["text", worded(repr(value))]

    def _tensor(self, value: torch.Tensor, depth: int) -> Node:
        told: dict[str, Any] = {
            "type": type(value).__qualname__,
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "device": value.device.type,
            "layout": str(value.layout),
            "requires_grad": value.requires_grad,
        }
        plain = value.layout is torch.strided and value.device.type != "meta"
        if plain and not value.is_quantized:
            told["stride"] = list(value.stride())
            told["storage"] = self._storage(value)
        if value.device.type != "meta":
            wanted = min(value.numel(), MOST_NUMBERS)
            most = MOST_NUMBERS if self._numbers + wanted <= MOST_NUMBERS else FEW_NUMBERS
            told["data"] = _numbers_of(value, most)
            self._numbers += min(value.numel(), most)
        if value.is_leaf and value.grad is not None:
            told["grad"] = self.take(value.grad, depth)
        return ["tensor", told]

    def _storage(self, value: torch.Tensor) -> list[int]:
        """Return the number of a tensor's memory, and its offset in that memory."""
        memory = value.untyped_storage()
        self._kept.append(memory)
        number = self._storages.setdefault(memory._cdata, len(self._storages))
        return [number, int(value.storage_offset())]


def _of_array(value: Any) -> torch.Tensor:
    """Return a numpy array's numbers as a tensor. Raises TypeError if torch has no such dtype."""
    import numpy

    return torch.from_numpy(numpy.array(value, copy=True))


def _numbers_of(value: torch.Tensor, most: int) -> Any:
    """Return a copy on the host; of a large tensor, its sum and its first elements."""
    with torch.no_grad():
        plain = value.detach().as_subclass(torch.Tensor)
        if plain.layout is not torch.strided:
            plain = plain.to_dense()
        if plain.is_quantized:
            plain = plain.dequantize()
        if plain.numel() > most:
            flat = plain.reshape(-1)
            plain = torch.cat((flat[:most], flat[most:].sum(dtype=flat.dtype)[None]))
        return plain.resolve_conj().resolve_neg().cpu().clone(memory_format=torch.contiguous_format)


def _plain_number(value: Any) -> Any:
    """Return a number that a file of weights may hold: large integers become text."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 2**62 else str(int(value))
    return float(value)  # noqa: TPF101 - a number
