"""Methods called on tensors.

Enters a tensor, a method name and arguments; leaves the result's value and the sites of methods
that read, copy or wait. Must not know statements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpret import torch_calls
from flake8_torchperf.interpret.emit import emit, emit_read
from flake8_torchperf.interpret.returned import value_of_return
from flake8_torchperf.interpret.values import (
    BOOL,
    INT,
    NDARRAY,
    SHAPE,
    UNKNOWN,
    Device,
    DType,
    External,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)
from flake8_torchperf.sites.model import SiteKind

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.interpret.arguments import Arguments
    from flake8_torchperf.interpret.machine import Context

READS = {
    "item": "number", "__bool__": "bool", "__int__": "int", "__float__": "float",
    "__index__": "int", "__complex__": "complex", "is_nonzero": "bool",
}  # fmt: skip
COPIES = {"tolist", "numpy", "cpu"}
CASTS = {
    "float": "float", "double": "float", "half": "float", "bfloat16": "float", "int": "int",
    "long": "int", "short": "int", "char": "int", "byte": "int", "bool": "bool",
}  # fmt: skip
# Methods after which it is still the same parameter or gradient that is worked on.
KEEP_ROLE = {"detach", "float", "view", "data", "to", "flatten", "double", "half"}


def call_method(
    tensor: Tensor,
    owner: ast.expr | None,
    name: str,
    arguments: Arguments,
    ctx: Context,
) -> Value:
    """``tensor.name(arguments)``; ``owner`` is the tensor's expression."""
    if name in READS:
        return _read(tensor, owner, name, arguments, ctx)
    if name in COPIES:
        return _copy(tensor, owner, name, arguments, ctx)
    match name:
        case "to":
            return _to(tensor, owner, arguments, ctx)
        case "cuda" | "xpu" | "npu" | "hpu" | "mps":
            if tensor.device == "host":
                _to_device(tensor, name, arguments, owner, ctx)
            return replace(tensor, device="device")
        case "type":
            return _type(tensor, owner, arguments, ctx)
        case "size":
            return INT if arguments.positional or arguments.keywords else SHAPE
        case "equal" | "allclose":
            return _compare(tensor, owner, name, arguments, ctx)
        case "__len__" | "dim" | "numel" | "nelement" | "ndimension":
            return INT
        case "item_" | "backward":
            return NoneValue()
    if name in CASTS:
        return replace(tensor, dtype=CASTS[name])
    return _by_table(tensor, owner, name, arguments, ctx)


def _read(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    kind = SiteKind.HOST_COMPARISON if name == "is_nonzero" else SiteKind.HOST_READ
    read = emit_read(ctx, kind, name, arguments.node, tensor, operand_node=owner)
    return Scalar(READS[name], read=None if read is None else arguments.node, tensor=read)


def _copy(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    read = emit_read(
        ctx,
        SiteKind.TRANSFER,
        name,
        arguments.node,
        tensor,
        operand_node=owner,
        traits=("to-host",),
    )
    if name == "numpy":
        return NDARRAY
    if name == "tolist":
        number = Scalar(
            {"int": "int", "bool": "bool"}.get(tensor.dtype, "number"),
            read=None if read is None else arguments.node,
            tensor=read,
        )
        return number if tensor.scalar else Sequence("list", number)
    return replace(tensor, device="host", role="")


def _to(tensor: Tensor, owner: ast.expr | None, arguments: Arguments, ctx: Context) -> Value:
    """``.to(device)``, ``.to(dtype)``, ``.to(other)`` and their combinations."""
    result = tensor
    for position, argument in enumerate(arguments.all()):
        value = argument.value
        other = tensor_of(value)
        if other is not None:
            result = replace(result, device=other.device, dtype=other.dtype)
            continue
        match value:
            case DType(kind=kind):
                result = replace(result, dtype=kind)
            case External(name=dtype) if position == 0 and dtype.startswith("builtins."):
                result = replace(result, dtype=dtype.removeprefix("builtins."))
            case _:
                device = torch_calls.device_of(value)
                if device is not None and (position == 0 or "device" in arguments.keywords):
                    result = replace(result, device=device)
                elif value == UNKNOWN and position == 0:
                    # A device or a dtype: neither is known any longer.
                    result = replace(result, device=_moved(tensor), dtype="unknown")
    told = not any(isinstance(a.value, Device) and not a.value.stated for a in arguments.all())
    if result.device == "host" and tensor.device != "host" and told:
        traits = ("to-host", "non-blocking") if _asked(arguments, "non_blocking") else ("to-host",)
        emit_read(
            ctx,
            SiteKind.TRANSFER,
            "to",
            arguments.node,
            tensor,
            operand_node=owner,
            traits=traits,
        )
    elif result.device != "host" and tensor.device == "host":
        _to_device(tensor, "to", arguments, owner, ctx)
    return result


def _asked(arguments: Arguments, keyword: str) -> bool:
    """Is an option given, and not as False?"""
    given = arguments.keywords.get(keyword)
    return given is not None and not (
        isinstance(given.value, Scalar) and given.value.value is False
    )


def _moved(tensor: Tensor) -> str:
    return "unknown" if tensor.device == "host" else tensor.device


def _to_device(
    tensor: Tensor,
    name: str,
    arguments: Arguments,
    owner: ast.expr | None,
    ctx: Context,
) -> None:
    traits = {"to-device"}
    if "non_blocking" in arguments.keywords:
        traits.add("non-blocking")
    if tensor.chain and tensor.chain[-1] in torch_calls.FACTORIES:
        traits.add("from-factory")
    emit(ctx, SiteKind.TRANSFER, name, arguments.node, tensor, operand_node=owner, traits=traits)


def _type(tensor: Tensor, owner: ast.expr | None, arguments: Arguments, ctx: Context) -> Value:
    """``.type()`` names the type; ``.type(torch.LongTensor)`` converts, and copies to the host."""
    if not arguments.positional and not arguments.keywords:
        return Scalar("str")
    wanted = arguments.value(0, "dtype")
    if isinstance(wanted, DType):
        return replace(tensor, dtype=wanted.kind)
    name = ""
    match wanted:
        case External(name=qualified):
            name = qualified
        case Scalar(value=str(text)):
            name = text
    dtype = torch_calls.legacy_dtype(name)
    if dtype is None:
        return replace(tensor, dtype="unknown")
    if name.startswith("torch.cuda."):
        return replace(tensor, dtype=dtype, device="device")
    emit_read(
        ctx,
        SiteKind.TRANSFER,
        "type",
        arguments.node,
        tensor,
        operand_node=owner,
        traits=("to-host",),
    )
    return replace(tensor, dtype=dtype, device="host")


def _compare(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    other = tensor_of(arguments.value(0, "other"))
    if other is None or other.device != "host":
        emit_read(ctx, SiteKind.HOST_COMPARISON, name, arguments.node, tensor, operand_node=owner)
    return BOOL


def _by_table(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    op = ctx.machine.table.method(name)
    if op is None:
        return UNKNOWN
    others = arguments.tensors()
    tensors = [tensor, *others]
    torch_calls.sites_of(op, name, arguments, tensors, ctx, owner=owner)
    returned = torch_calls.resolve(op, arguments)
    reason = tensor.reason
    if reason.strength < max((t.reason.strength for t in others), default=reason.strength):
        reason = max((t.reason for t in others), key=lambda r: r.strength)
    device = torch_calls.device_argument(arguments) or torch_calls.result_device(op, tensors)
    value = value_of_return(returned, reason, tensors, device, name)
    if not isinstance(value, Tensor):
        return value
    value = torch_calls.with_dtype(value, arguments)
    if op.in_place:
        torch_calls.parameter_operation(tensor, name, arguments, owner, ctx)
        return replace(value, role=tensor.role, scalar=tensor.scalar, dtype=tensor.dtype)
    if name == "norm":
        torch_calls.parameter_operation(tensor, name, arguments, owner, ctx)
    if name in KEEP_ROLE:
        value = replace(value, role=tensor.role)
    return value
