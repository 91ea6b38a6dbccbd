"""A call by torch's signatures: the dtype and device of its result, and its parameters."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events import transfers
from flake8_torchperf.knowledge.returns import Return, UnknownReturn, common_return
from flake8_torchperf.values import host_data
from flake8_torchperf.values.arguments import Arguments, kind_of, kinds
from flake8_torchperf.values.combining import combine_device
from flake8_torchperf.values.devices import CHOSEN
from flake8_torchperf.values.named_types import LEGACY_TENSORS
from flake8_torchperf.values.rank import of_data as of_lists
from flake8_torchperf.values.values import (
    Device,
    DType,
    External,
    NoneValue,
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.knowledge.overloads import Param
    from flake8_torchperf.knowledge.table import Op


def resolve(op: Op, arguments: Arguments) -> Return:
    """Return the result of a call; if no overload fits, the result that all of them share."""
    positional, keywords = kinds(arguments)
    if not arguments.open:
        found = op.resolve(positional, keywords)
        if not isinstance(found, UnknownReturn):
            return found
    return common_return(overload.returns for overload in op.overloads)


def result_device(op: Op, tensors: list[Tensor]) -> str:
    """Return a result's device: the first tensor's for ``*_like`` and views, else that of all."""
    if op.like or op.view or op.in_place:
        return tensors[0].device
    return combine_device(tensors)


def device_argument(arguments: Arguments) -> str | None:
    """Return the device an explicit ``device=`` names; None where there is none or it is None."""
    given = arguments.keywords.get("device")
    if given is None or isinstance(given.value, NoneValue):
        return None
    return device_of(given.value) or CHOSEN


def device_of(value: Value) -> str | None:
    """Return the residence that a device, or its name, stands for; None for any other value."""
    match value:
        case Device(kind=kind):
            return kind
        case Scalar(kind="str", value=str(text)):
            return "host" if text.partition(":")[0] == "cpu" else "device"
        case Scalar(kind="int"):
            return "device"  # an index of an accelerator
        case Scalar(kind="str"):
            return CHOSEN
        case Union(options=options):
            found = {device_of(o) for o in options if not isinstance(o, NoneValue)}
            return found.pop() if len(found) == 1 else CHOSEN
    return None


def with_dtype(value: Tensor, arguments: Arguments) -> Tensor:
    """Return the tensor with the dtype of an explicit ``dtype=``."""
    given = arguments.keywords.get("dtype")
    if given is None or isinstance(given.value, NoneValue):
        return value
    kind = dtype_of(given.value)
    return replace(value, dtype=kind)


def dtype_of(value: Value) -> str:
    """Return the dtype class a value names: a ``torch.dtype`` or a Python number type."""
    match value:
        case DType(kind=kind):
            return kind
        case External(name="builtins.bool" | "builtins.int" | "builtins.float" as name):
            return name.removeprefix("builtins.")
    return "unknown"


def legacy_dtype(name: str) -> str | None:
    """Return the dtype class of a name as ``torch.LongTensor``; None for other names."""
    head, _, last = name.rpartition(".")
    return LEGACY_TENSORS.get(last) if head in ("torch", "torch.cuda") else None


def shown_tensor(data: Sequence, node: ast.AST) -> ast.expr | None:
    """Return the first tensor in a tuple or list as written; None if its items are not shown."""
    values = data.items or ()
    if not isinstance(node, (ast.Tuple, ast.List)) or len(node.elts) != len(values):
        return None
    pairs = zip(node.elts, values, strict=True)
    return next((written for written, value in pairs if tensor_of(value) is not None), None)


def types_at(op: Op, position: int) -> set[str]:
    """Return the types that the overloads take at a position."""
    return {slot.type for slot in slots_at(op, position)}


def slots_at(op: Op, position: int) -> list[Param]:
    """Return the overloads' parameters at a position."""
    found: list[Param] = []
    for overload in op.overloads:
        slots = [p for p in overload.params if p.form in ("positional", "variadic")]
        if not slots:
            continue
        if position < len(slots):
            found.append(slots[position])
        elif slots[-1].form == "variadic":
            found.append(slots[-1])
    return found


KIND_DTYPES = {"i": "int", "f": "float", "b": "bool", "1": "bool", "0": "bool"}


def of_data(data: Value, short: str, reason: Reason, arguments: Arguments) -> Tensor:
    """Return a tensor on the host that is made from data on the host."""
    origin = host_data.data_origin(data, short)
    # `as_tensor` shares the memory of arrays and tensors, whatever that memory is.
    memory = transfers.allocated(arguments) if origin else ""
    return Tensor(
        reason,
        _data_dtype(data),
        "host",
        _data_scalar(data),
        (short,),
        origin=origin,
        memory=memory,
        rank=of_lists(data),
    )


def _data_dtype(data: Value) -> str:
    if isinstance(data, Sequence):
        return _data_dtype(data.element)
    return KIND_DTYPES.get(kind_of(data), "unknown")


def _data_scalar(data: Value) -> bool | None:
    if isinstance(data, Scalar):
        return True
    return False if isinstance(data, Sequence) else None


def on_device(tensor: Tensor, device: str = "device") -> Tensor:
    """Return the tensor, copied to a device or to an unknown place."""
    return replace(tensor, device=device, origin="", memory="", arrives=0)


def on_host(tensor: Tensor) -> Tensor:
    """Return the tensor on the host; its memory is unknown if it may have been there before."""
    memory = host_data.PAGEABLE if tensor.device == "device" else ""
    return replace(tensor, device="host", role="", origin="", memory=memory, arrives=0)
