"""Methods called on tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.dropped_flags import drops_flag
from flake8_torchperf.idioms.repeated_moves import repeats_move
from flake8_torchperf.interpreter.events import transfers
from flake8_torchperf.interpreter.events.guards import HOST_ONLY
from flake8_torchperf.interpreter.events.recording import early, emit_read, tells
from flake8_torchperf.interpreter.models.torch_signatures import (
    device_argument,
    device_of,
    dtype_of,
    legacy_dtype,
    of_data,
    on_device,
    on_host,
    resolve,
    result_device,
    with_dtype,
)
from flake8_torchperf.interpreter.models.torch_waits import parameter_operation, sites_of
from flake8_torchperf.knowledge.methods import kinds_of, methods_of
from flake8_torchperf.syntax.names import called_a_device
from flake8_torchperf.values import host_data
from flake8_torchperf.values.devices import CHOSEN, OPEN, SOMETIMES
from flake8_torchperf.values.from_signature import value_of_return
from flake8_torchperf.values.provenance import Strength
from flake8_torchperf.values.rank import with_rank
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BOOL,
    INT,
    NDARRAY,
    NONE,
    SHAPE,
    STR,
    UNKNOWN,
    Device,
    DType,
    External,
    NDArray,
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Argument, Arguments

_READS = kinds_of("reads-a-number")
_COPIES = methods_of("copies-to-host")
_CASTS = kinds_of("casts")
# Methods whose result still stands for the same parameter or gradient.
# Operations whose result is sparse.
SPARSE_MAKERS = frozenset((
    "coalesce", "to_sparse", "to_sparse_coo", "to_sparse_csr", "sparse_coo_tensor",
    "sparse_csr_tensor", "sparse_mask",
))  # fmt: skip
KEEP_ROLE = {"detach", "float", "view", "data", "to", "flatten", "double", "half"}


def call_method(
    tensor: Tensor,
    owner: ast.expr | None,
    name: str,
    arguments: Arguments,
    ctx: Context,
) -> Value:
    """Return the value of ``tensor.name(arguments)``; ``owner`` is the tensor's expression."""
    if name == "item" and (arguments.positional or arguments.keywords):
        return UNKNOWN  # torch's takes no arguments, numpy's does
    if name == "values" and SPARSE_MAKERS.isdisjoint(tensor.chain):
        # Only sparse tensors have values: this is a dict of tensors, whatever is declared.
        return Sequence("list", replace(tensor, role=""))
    if name in _READS:
        return _read(tensor, owner, name, arguments, ctx)
    if name in _COPIES:
        return _copy(tensor, owner, name, arguments, ctx)
    match name:
        case "to":
            return _to(tensor, owner, arguments, ctx)
        case "cuda" | "xpu" | "npu" | "hpu" | "mps":
            again = _may_move(tensor) and _repeats(owner, arguments, ctx)
            if tensor.device == "host" or again:
                transfers.to_device(tensor, name, arguments, owner, ctx)
            return on_device(tensor)
        case "pin_memory":
            return host_data.pinned(tensor)
        case "type_as":
            return _type_as(tensor, owner, arguments, ctx)
        case "new_tensor":
            return _new_tensor(tensor, arguments, ctx)
        case "new" if isinstance(arguments.value(0), Sequence) and arguments.value(0) != SHAPE:
            return _new_tensor(tensor, arguments, ctx)
        case "type":
            return _type(tensor, owner, arguments, ctx)
        case "size":
            return INT if arguments.positional or arguments.keywords else SHAPE
        case "equal" | "allclose":
            return _compare(tensor, owner, name, arguments, ctx)
        case "__len__" | "dim" | "numel" | "nelement" | "ndimension":
            return INT
        case "__repr__" | "__str__" | "__format__":
            emit_read(ctx, SiteKind.FORMAT, "repr", arguments.node, tensor, operand_node=owner)
            return STR
        case "item_" | "backward":
            return NONE
    if name in methods_of("of-distributed-tensors"):
        return replace(tensor, chain=(), role="")
    if name in _CASTS:
        early(ctx, name, arguments.node, tensor, owner)
        smaller = name in ("half", "bfloat16")
        return host_data.cast(replace(tensor, dtype=_CASTS[name], arrives=0), smaller=smaller)
    return _by_table(tensor, owner, name, arguments, ctx)


def _read(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    kind = SiteKind.HOST_COMPARISON if name == "is_nonzero" else SiteKind.HOST_READ
    read = emit_read(ctx, kind, name, arguments.node, tensor, operand_node=owner)
    return Scalar(_READS[name], read=None if read is None else arguments.node, tensor=read)


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
        traits=("to-host", HOST_ONLY)
        if name == "numpy" and _must_be_host(tensor, arguments)
        else ("to-host",),
    )
    if name == "numpy":
        return NDArray(tensor) if tensor.arrives else NDARRAY
    if name == "tolist":
        number = Scalar(
            {"int": "int", "bool": "bool"}.get(tensor.dtype, "number"),
            read=None if read is None else arguments.node,
            tensor=read,
        )
        return number if tensor.scalar else Sequence("list", number)
    if tensor.device == "host":
        return replace(tensor, role="")
    return on_host(tensor)


def _must_be_host(tensor: Tensor, arguments: Arguments) -> bool:
    """True for ``x.numpy()``, which fails on a device tensor, unless it has ``force=True``."""
    return tensor.device != "device" and not (arguments.positional or arguments.keywords)


def _to(tensor: Tensor, owner: ast.expr | None, arguments: Arguments, ctx: Context) -> Value:
    """Return the result of ``.to(device)``, ``.to(dtype)``, ``.to(other)`` or a combination."""
    result = tensor
    named = arguments.keywords.get("device")
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
                device = device_of(value)
                if device is not None and (position == 0 or "device" in arguments.keywords):
                    result = replace(result, device=device)
                elif value is UNKNOWN and (position == 0 or argument is named):
                    # The argument is a device or a dtype. If its name shows neither, both the
                    # device and the dtype become unknown.
                    moved = argument is named or called_a_device(argument.node)
                    dtype = result.dtype if moved else "unknown"
                    result = replace(
                        result, device=CHOSEN if moved else _moved(tensor), dtype=dtype
                    )
    told = not any(map(_says_nothing_of_host, arguments.all()))
    if result.device == "host" and tensor.device != "host":
        if not told:
            return replace(result, origin="", memory="")
        return _to_host(tensor, result, owner, arguments, ctx)
    if result.device != "host" and (tensor.device == "host" or tensor.origin == SOMETIMES):
        if result.device == "device" or _device_given(arguments):
            transfers.to_device(tensor, "to", arguments, owner, ctx)
        return on_device(result, result.device)
    if _may_move(tensor) and _device_given(arguments) and _is_needless(owner, arguments, ctx):
        transfers.to_device(tensor, "to", arguments, owner, ctx)
    return host_data.cast(result) if result.dtype != tensor.dtype else result


def _may_move(tensor: Tensor) -> bool:
    """True if a tensor that its declaration or a call shows may lie anywhere."""
    return tensor.device in OPEN and tensor.reason.strength >= Strength.STATED


def _is_needless(owner: ast.expr | None, arguments: Arguments, ctx: Context) -> bool:
    """True for a move that each round repeats, or whose caller may have asked not to wait."""
    dropped = ctx.node is not None and drops_flag(ctx.node)
    return dropped or _repeats(owner, arguments, ctx)


def _repeats(owner: ast.expr | None, arguments: Arguments, ctx: Context) -> bool:
    """True if each round of the loop moves the same tensor to the same device."""
    return repeats_move(arguments.node, owner, [place.node for place in ctx.loops])


def _says_nothing_of_host(argument: Argument) -> bool:
    """True for a tensor or a device that is the host only because the code names no other."""
    value = argument.value
    return isinstance(value, Tensor) or (isinstance(value, Device) and not value.stated)


def _to_host(
    tensor: Tensor, result: Tensor, owner: ast.expr | None, arguments: Arguments, ctx: Context
) -> Tensor:
    waits = transfers.not_waiting(arguments)
    traits = ("to-host",) if waits is False else ("to-host", "non-blocking")
    emit_read(
        ctx, SiteKind.TRANSFER, "to", arguments.node, tensor, operand_node=owner, traits=traits
    )
    copied = replace(on_host(tensor), dtype=result.dtype)
    return transfers.queued(copied, ctx) if waits else copied


def _device_given(arguments: Arguments) -> bool:
    """True if ``to`` is given a device or a tensor, not just an unknown value."""
    if "device" in arguments.keywords or "other" in arguments.keywords:
        return True
    first = arguments.get(0)
    if first is None:
        return False
    if first.value is UNKNOWN:
        return called_a_device(first.node)
    return tensor_of(first.value) is not None or device_of(first.value) is not None


def _moved(tensor: Tensor) -> str:
    """Return where a tensor lies that may have been moved somewhere else."""
    return "unknown" if tensor.device == "host" else tensor.device


def _type_as(tensor: Tensor, owner: ast.expr | None, arguments: Arguments, ctx: Context) -> Value:
    """Return ``x.type_as(y)``, with the dtype and the device of ``y``."""
    other = tensor_of(arguments.value(0, "other"))
    if other is None:
        return replace(tensor, device=_moved(tensor), dtype="unknown", origin="", memory="")
    if tensor.device == "host" and other.device != "host":
        transfers.to_device(tensor, "type_as", arguments, owner, ctx)
        return on_device(replace(tensor, dtype=other.dtype), other.device)
    return replace(tensor, dtype=other.dtype, device=other.device)


def _new_tensor(tensor: Tensor, arguments: Arguments, ctx: Context) -> Value:
    """Return ``x.new_tensor(data)``: host data, copied to the place of ``x``."""
    data = arguments.value(0, "data")
    device = device_argument(arguments) or tensor.device
    reason = Reason("`new_tensor` returns it", arguments.node)
    if tensor_of(data) is not None:
        return Tensor(reason, device=device, chain=("new_tensor",))
    made = of_data(data, "new_tensor", reason, arguments)
    if device == "host":
        return made
    transfers.to_device(made, "new_tensor", arguments, None, ctx)
    return on_device(replace(made, dtype=tensor.dtype), device)


def _type(tensor: Tensor, owner: ast.expr | None, arguments: Arguments, ctx: Context) -> Value:
    """Return ``.type()``, which is text, or ``.type(torch.LongTensor)``, which is a host copy."""
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
    dtype = legacy_dtype(name)
    if dtype is None:
        return replace(tensor, dtype="unknown")
    if name.startswith("torch.cuda."):
        if tensor.device == "host":
            transfers.to_device(tensor, "type", arguments, owner, ctx)
        return on_device(replace(tensor, dtype=dtype))
    emit_read(
        ctx,
        SiteKind.TRANSFER,
        "type",
        arguments.node,
        tensor,
        operand_node=owner,
        traits=("to-host",),
    )
    return replace(on_host(tensor), dtype=dtype)


def _compare(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    other = tensor_of(arguments.value(0, "other"))
    if other is None or tells(other, ctx):
        emit_read(ctx, SiteKind.HOST_COMPARISON, name, arguments.node, tensor, operand_node=owner)
    return BOOL


# Origins of host tensors that the code makes of numbers, which may be few.
MADE_OF_NUMBERS = (host_data.FACTORY, host_data.PYTHON)
# Methods that write an argument into a tensor, whatever its residence, with that argument.
WRITTEN_ARGUMENT = {"copy_": (0, "src"), "index_put_": (1, "values"), "index_put": (1, "values")}


def _copied_into(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> None:
    """Record the copy between host and device of ``x.copy_(host)`` and ``host.copy_(x)``.

    A copy into a tensor that is known to lie on the host is a read, unless it is queued. A copy
    from pageable memory waits although it is queued, but not one of a few numbers.
    """
    given = arguments.get(*WRITTEN_ARGUMENT[name])
    source = None if given is None else tensor_of(given.value)
    queued = transfers.not_waiting(arguments)
    staged = source is not None and (
        source.memory == host_data.STRIDED
        or (source.memory == host_data.PAGEABLE and source.origin not in MADE_OF_NUMBERS)
    )
    if source is None or (queued is not False and not (queued and staged)):
        return
    if source.device == "host":
        traits = ("non-blocking", host_data.PAGEABLE) if queued else ()
        transfers.fetched(source, tensor, name, arguments.node, ctx, traits)
    elif not queued and tensor.device == "host" and source.device == "device":
        emit_read(
            ctx,
            SiteKind.TRANSFER,
            name,
            arguments.node,
            source,
            operand_node=owner,
            traits=("to-host",),
        )


def _by_table(
    tensor: Tensor, owner: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    op = ctx.analysis.table.method(name)
    if op is None:
        return UNKNOWN
    others = arguments.tensors()
    tensors = [tensor, *others]
    sites_of(op, name, arguments, tensors, ctx, owner=owner)
    if name in WRITTEN_ARGUMENT:
        _copied_into(tensor, owner, name, arguments, ctx)
    if name == "where":
        transfers.chosen_on_host(arguments, tensors, ctx)
    if any(late.arrives for late in tensors):
        transfers.used_by(op, name, arguments, tensors, ctx, owner)
    returned = resolve(op, arguments)
    reason = tensor.reason
    if reason.strength < max((t.reason.strength for t in others), default=reason.strength):
        reason = max((t.reason for t in others), key=lambda r: r.strength)
    device = device_argument(arguments) or result_device(op, tensors)
    value = value_of_return(returned, reason, tensors, device, name)
    value = with_rank(value, op, name, arguments, tensors, method=True)
    if not isinstance(value, Tensor):
        return transfers.pieces(value, op, tensors, arguments) if op.view else value
    value = with_dtype(value, arguments)
    if name == "view" and isinstance(arguments.value(0), DType):
        value = replace(value, dtype=dtype_of(arguments.value(0)))
    value = transfers.computed(value, op, tensors, arguments)
    if name == "copy_" and tensor.device == "host" and transfers.fills_later(arguments):
        return transfers.queued(tensor, ctx)
    if op.in_place:
        parameter_operation(tensor, name, arguments, owner, ctx)
        same = replace(value, role=tensor.role, scalar=tensor.scalar, dtype=tensor.dtype)
        if name in methods_of("reshapes-in-place"):
            return replace(same, scalar=None)
        return replace(same, rank=tensor.rank)
    if name == "norm":
        parameter_operation(tensor, name, arguments, owner, ctx)
    if name in KEEP_ROLE:
        value = replace(value, role=tensor.role)
    return value
