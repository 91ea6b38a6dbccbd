"""The operator registry: flags from tags and aliasing, and signatures that no stub has.

Takes torch.ops.aten; returns flag letters and `Signature` lists by operator name.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import torch

from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    HostReturn,
    ListReturn,
    Return,
    ScalarReturn,
    TensorReturn,
    TupleReturn,
)
from torch_table.model import Parameter, Signature

_TYPES = {
    "Tensor": "T",
    "List[Tensor]": "Tl",
    "int": "i",
    "SymInt": "i",
    "bool": "b",
    "float": "f",
    "number": "n",
    "Scalar": "n",
    "complex": "n",
    "str": "s",
    "List[int]": "Z",
    "List[SymInt]": "Z",
    "Device": "D",
}


@cache
def overloads(name: str) -> tuple[Any, ...]:
    """Return the overloads of aten::name without the `out` forms, in the registry's order."""
    packet = getattr(torch.ops.aten, name, None) if name in _names() else None
    if packet is None:
        return ()
    chosen = (getattr(packet, overload) for overload in packet.overloads())
    return tuple(op for op in chosen if not any(arg.is_out for arg in op._schema.arguments))


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    schemas = torch._C._jit_get_all_schemas()
    return frozenset(s.name.removeprefix("aten::") for s in schemas if s.name.startswith("aten::"))


def _takes_tensor(op: Any) -> bool:
    return any("Tensor" in str(arg.type) for arg in op._schema.arguments)


def flags(name: str) -> set[str]:
    """Return the flags of aten::name by its tags and schemas; empty for an unknown name."""
    found: set[str] = set()
    with_tensors = [op for op in overloads(name) if _takes_tensor(op)]
    for op in with_tensors:
        found |= tag_flags([op])
        first = op._schema.arguments[0]
        for result in op._schema.returns:
            alias = result.alias_info
            if alias is not None and not alias.is_write:
                found.add("v")
        if first.alias_info is not None and first.alias_info.is_write and name.endswith("_"):
            found.add("m")
        arguments = {arg.name for arg in op._schema.arguments}
        if {"dtype", "device"} <= arguments and (name.endswith("_like") or name.startswith("new_")):
            found.add("n")
    if any(_creates(op) for op in overloads(name)):
        found.add("c")
    return found


def tag_flags(ops: Iterable[Any]) -> set[str]:
    """Return the letters d, y, p and r of the tags of these operators."""
    letters = {
        torch.Tag.data_dependent_output: "d",
        torch.Tag.dynamic_output_shape: "y",
        torch.Tag.pointwise: "p",
        torch.Tag.reduction: "r",
    }
    return {letter for op in ops for tag, letter in letters.items() if tag in op.tags}


def _creates(op: Any) -> bool:
    arguments = {arg.name for arg in op._schema.arguments}
    return not _takes_tensor(op) and "device" in arguments and _returns_tensor(op)


def _returns_tensor(op: Any) -> bool:
    return [str(result.type) for result in op._schema.returns] == ["Tensor"]


def signatures(name: str) -> list[Signature]:
    """Return the signatures of aten::name, for builtins without a stub (linalg, fft, special)."""
    return [_signature(op._schema) for op in overloads(name)]


def _signature(schema: Any) -> Signature:
    parameters = [
        Parameter(
            "input" if arg.name == "self" else arg.name,
            (_letter(arg),),
            arg.has_default_value(),
            "keyword" if arg.kwarg_only else "positional",
        )
        for arg in schema.arguments
    ]
    parameters.append(Parameter("out", ("x",), True, "keyword"))
    results = [(result.name, _return_of(str(result.type))) for result in schema.returns]
    if len(results) == 1:
        return Signature(tuple(parameters), results[0][1])
    names = tuple(name for name, _ in results if name)
    items = tuple(value for _, value in results)
    return Signature(
        tuple(parameters), TupleReturn(items, names if len(names) == len(items) else None)
    )


def _letter(arg: Any) -> str:
    text = str(arg.type)
    if text.startswith("Optional["):
        text = text[len("Optional[") : -1]
    if arg.name == "dtype":  # the registry writes a dtype as an int
        return "Y"
    return _TYPES.get(text, "x")


def _return_of(text: str) -> Return:
    if text == "Tensor":
        return TensorReturn()
    if text == "List[Tensor]":
        return ListReturn(TensorReturn())
    if text in {"List[int]", "List[SymInt]"}:
        return HostReturn("Z")
    letter = _TYPES.get(text, "x")
    return ScalarReturn(letter) if letter in "bifns" else UNKNOWN
