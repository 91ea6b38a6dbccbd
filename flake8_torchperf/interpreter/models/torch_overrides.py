"""Functions of torch whose result or cost depends on more than their signature.

Functions that torch's table describes completely are handled in ``torch_functions``.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import apply
from flake8_torchperf.interpreter.events import debug_switches, transfers
from flake8_torchperf.interpreter.events.recording import early, emit, emit_read, tells
from flake8_torchperf.interpreter.models.torch_signatures import (
    device_argument,
    device_of,
    legacy_dtype,
    of_data,
    on_device,
    resolve,
    result_device,
    shown_tensor,
    with_dtype,
)
from flake8_torchperf.interpreter.models.torch_waits import must_be_tensors
from flake8_torchperf.values import host_data
from flake8_torchperf.values.arguments import Argument, Arguments
from flake8_torchperf.values.combining import held_tensor
from flake8_torchperf.values.devices import CHOSEN
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.from_signature import value_of_return
from flake8_torchperf.values.rank import ranked
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BOOL,
    COMPARED,
    LOADED,
    NONE,
    SHAPE,
    UNKNOWN,
    Closure,
    Device,
    Instance,
    NDArray,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    join_all,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Context


def _tensor(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the tensor of ``torch.tensor(data)`` or ``as_tensor``: new, on the host by default."""
    data = arguments.value(0, "data")
    given = tensor_of(data)
    device = device_argument(arguments)
    short = name.rpartition(".")[2]
    reason = Reason(f"`{name}` returns it", arguments.node)
    _tensor_of_tensors(data, arguments, ctx)
    if given is not None:
        result = replace(given, device=device or given.device, chain=(*given.chain, short)[-4:])
        if given.device == "host" and device not in (None, "host"):
            transfers.to_device(given, short, arguments, None, ctx)
        if result.device != given.device:
            result = replace(result, origin="", memory="")
        return with_dtype(result, arguments)
    made = of_data(data, short, reason, arguments)
    if device == "host":
        return with_dtype(made, arguments)
    if device is not None:
        if made.origin:
            transfers.to_device(made, short, arguments, None, ctx)
        made = on_device(made, device)
    elif made.origin and transfers.factory_device(ctx) == "device":
        transfers.to_device(made, short, arguments, None, ctx)
        made = on_device(made)
    elif not made.origin or transfers.factory_device(ctx) != "host":
        # `as_tensor` returns a tensor unchanged, so the residence of unknown data is unknown.
        made = on_device(made, "unknown")
    return with_dtype(made, arguments)


def _tensor_of_tensors(data: Value, arguments: Arguments, ctx: Context) -> None:
    """Record that ``torch.tensor([t1, t2])`` reads each element of the list separately."""
    if isinstance(data, Union) and data.met:
        data = next((option for option in data.options if isinstance(option, Sequence)), data)
    if not isinstance(data, Sequence) or data.kind not in ("list", "tuple") or data.items == ():
        return
    held = held_tensor(data)
    first = arguments.get(0, "data")
    if held is None or first is None:
        return
    # `stack` makes a tensor of a list of tensors. Code that uses `tensor` instead has numbers in
    # the list, even if the list is declared to hold tensors.
    if held.chain or isinstance(first.node, (ast.List, ast.Tuple)):
        emit_read(
            ctx,
            SiteKind.NUMBER_USE,
            "tensor-of-tensors",
            _read_in(data, first.node) or arguments.node,
            held,
            operand_node=first.node,
        )


def _read_in(data: Sequence, node: ast.AST) -> ast.expr | None:
    """Return the first tensor in a list with known items, which is read as a number."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return None if tensor_of(data.element) is None else node.elt
    return shown_tensor(data, node)


def _from_numpy(name: str, arguments: Arguments, ctx: Context) -> Value:
    return Tensor(
        Reason(f"`{name}` returns it", arguments.node),
        device="host",
        chain=("from_numpy",),
        origin=host_data.NUMPY,
        memory=host_data.PAGEABLE,
    )


def _device_of(name: str, arguments: Arguments, ctx: Context) -> Value:
    kind = device_of(arguments.value(0, "type"))
    return Device(kind or CHOSEN)


def _comparison(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Record the wait of ``torch.equal`` or ``torch.allclose``, which return a Python bool."""
    short = name.rpartition(".")[2]
    tensors = arguments.tensors()
    # Both tensors have to lie on one device, so if one is on the host, the other is too. But
    # `allclose` accepts a 0-d host tensor with a tensor on a device.
    on_host = any(t.device == "host" and not (short == "allclose" and t.scalar) for t in tensors)
    if ctx.compiled:
        on_host = False
    tensors = tensors if on_host else [t for t in tensors if tells(t, ctx)]
    operand = None if on_host or not tensors else tensors[0]
    first = arguments.get(0, "input")
    if operand is not None:
        emit_read(
            ctx,
            SiteKind.HOST_COMPARISON,
            short,
            arguments.node,
            operand,
            operand_node=None if first is None else first.node,
        )
    elif (
        not tensors
        and arguments.positional
        and all(a.value is UNKNOWN for a in arguments.positional[:2])
    ):
        # torch accepts only tensors here, so two unknown values are tensors.
        reason = Reason(f"passed to `{name}`", arguments.node)
        emit(
            ctx,
            SiteKind.HOST_COMPARISON,
            short,
            arguments.node,
            Tensor(reason),
            operand_node=None if first is None else first.node,
        )
    return BOOL


def _checked(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Record the wait of ``torch._check_tensor_all(mask)``.

    torch/__init__.py, _check_tensor_all_with: the mask is reduced, and read by ``item()``.
    """
    given = arguments.get(1 if name.endswith("_with") else 0, "cond")
    if given is not None:
        reason = Reason(f"passed to `{name}`", arguments.node)
        mask = tensor_of(given.value) or Tensor(reason, "bool")
        if tells(mask, ctx):
            short = name.rpartition(".")[2]
            emit(ctx, SiteKind.TORCH_CALL, short, arguments.node, mask, operand_node=given.node)
    return NONE


def _synchronize(name: str, arguments: Arguments, ctx: Context) -> Value:
    if name.endswith(".synchronize") and any(map(ctx.module.says, (".Stream(", ".stream("))):
        ctx = ctx.mark("uses-streams")
    emit(ctx, SiteKind.SYNCHRONIZE, name, arguments.node)
    return NONE


def _exchange(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Record the wait of a collective of Python objects, which reads the sizes of the pickles.

    In a group of a module that makes groups for the host, the sizes stay on the host.
    """
    if "group" in arguments.keywords and ctx.module.says(HOST_BACKEND):
        return NONE
    emit(ctx, SiteKind.SYNCHRONIZE, name.rpartition(".")[2], arguments.node)
    return NONE


def _jagged(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return a nested tensor, whose longest row is read from its offsets if it is not given.

    torch/nested/_internal/nested_tensor.py, `_max_seqlen`: attention and padding ask for it.
    """
    values, offsets = arguments.value(0, "values"), arguments.get(1, "offsets")
    read = None if offsets is None else tensor_of(offsets.value)
    given = arguments.open or "max_seqlen" in arguments.keywords or len(arguments.positional) > 5
    if read is not None and offsets is not None and not given and tells(read, ctx):
        operation = name.rpartition(".")[2]
        emit(
            ctx,
            SiteKind.DYNAMIC_SHAPE,
            operation,
            arguments.node,
            read,
            operand_node=offsets.node,
        )
    held = tensor_of(values)
    reason = Reason(f"`{name}` returns it", arguments.node, None if held is None else held.reason)
    return Tensor(reason) if held is None else replace(held, reason=reason, chain=(), rank=None)


def _stream(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return a stream of a backend that the table of torch does not have."""
    return Instance("torch.Stream")


def _event(name: str, arguments: Arguments, ctx: Context) -> Value:
    return Instance("torch.Event")


def _where(name: str, arguments: Arguments, ctx: Context) -> Value:
    op = ctx.analysis.table.function("torch.where")
    tensors = arguments.tensors()
    reason = Reason(f"`{name}` returns it", arguments.node, tensors[0].reason if tensors else None)
    if len(arguments.positional) + len(arguments.keywords) == 1 and not arguments.open:
        if op is not None:
            tensors = tensors or must_be_tensors(op, name, arguments)
        if tensors and tensors[0].device != "host":
            emit(
                ctx,
                SiteKind.DYNAMIC_SHAPE,
                "where",
                arguments.node,
                tensors[0],
                operand_node=arguments.positional[0].node if arguments.positional else None,
            )
        device = tensors[0].device if tensors else "unknown"
        return Sequence("tuple", Tensor(reason, "int", device, False, ("where",), rank=1))
    if op is None:
        return UNKNOWN
    branches = [t for a in arguments.positional[1:] if (t := tensor_of(a.value))]
    transfers.chosen_on_host(arguments, tensors, ctx)
    returned = resolve(op, arguments)
    device = result_device(op, tensors) if tensors else "unknown"
    value = value_of_return(returned, reason, branches or tensors, device, "where")
    if isinstance(value, Tensor):
        dtypes = {t.dtype for t in branches}
        full = len(branches) == 2 and len(dtypes) == 1
        return replace(value, dtype=dtypes.pop() if full else "unknown")
    return Tensor(reason, device=device)


def _parameter(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return ``nn.Parameter(data)``; it lies where its module is moved to."""
    data = tensor_of(arguments.value(0, "data"))
    reason = Reason(f"`{name}` makes it", arguments.node)
    made = Tensor(reason, "float", CHOSEN, data.scalar if data else None, role="parameter")
    return made if data is None else ranked(made, data.rank)


def _save(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Record that ``torch.save`` copies tensors to the host, or reads a copy before it arrived."""
    for argument in arguments.positional[:1]:
        held = held_tensor(argument.value)
        if held is not None and held.device == "host":
            early(ctx, "save", arguments.node, held, argument.node)
        elif held is not None and held.reason.strength >= Strength.INFERRED:
            emit_read(
                ctx,
                SiteKind.TRANSFER,
                "save",
                arguments.node,
                held,
                operand_node=argument.node,
                traits=("to-host",),
            )
    return NONE


def _run(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the result of ``checkpoint(block, x)``, which is that of ``block(x)``."""
    function = arguments.get(0, "function")
    rest = arguments.positional if "function" in arguments.keywords else arguments.positional[1:]
    if function is None or arguments.open:
        return UNKNOWN
    given = replace(arguments, positional=rest, keywords={})
    return apply(function.value, given, {}, ctx)


def _autograd_grad(name: str, arguments: Arguments, ctx: Context) -> Value:
    reason = Reason(f"`{name}` returns it", arguments.node)
    inputs = arguments.value(1, "inputs")
    device = "unknown"
    found = tensor_of(inputs) or tensor_of(element_of(inputs))
    if found is not None:
        device = found.device
    gradient = Tensor(reason, "float", device, role="gradient")
    if tensor_of(inputs) is not None:
        return Sequence("tuple", gradient, (gradient,))
    return Sequence("tuple", gradient)


def _unknown(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return UNKNOWN: the result depends on data that no source shows."""
    return UNKNOWN


def _load(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the value of ``torch.load(file, map_location="cpu")``, which lies on the host."""
    where = arguments.value(1, "map_location")
    stays = isinstance(where, Closure) and _gives_back(where.node)
    return LOADED if stays or device_of(where) == "host" else UNKNOWN


def _gives_back(function: ast.AST) -> bool:
    """True for ``lambda storage, location: storage``, which leaves the storage on the host."""
    match function:
        case ast.Lambda(args=ast.arguments(args=[ast.arg(arg=first), *_]), body=ast.Name(id=name)):
            return first == name
    return False


def _size(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Record the reads of ``torch.Size((n, t))``, which calls ``__index__`` of each length."""
    given = arguments.value(0)
    lengths = given.items or (given.element,) if isinstance(given, Sequence) else (given,)
    for length in lengths:
        if tensor_of(length) is not None:
            node = arguments.positional[0].node
            emit_read(ctx, SiteKind.NUMBER_USE, "size", node, length, operand_node=node)
            break
    return SHAPE


def _vmap(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Interpret the lambda of ``vmap(lambda row: ...)`` with tensors as its arguments.

    The result of the function that ``vmap`` makes is unknown.
    """
    given = arguments.value(0, "func")
    if isinstance(given, Closure) and isinstance(given.node, ast.Lambda):
        reason = Reason(f"`{name}` gives it", arguments.node, None, Strength.INFERRED)
        row = Argument(arguments.node.func, Tensor(reason))
        rows = (row,) * len(given.node.args.args)
        each = Arguments(arguments.node, rows, {})
        apply(given, each, dict(given.env), ctx.mark("vmap"))
    return UNKNOWN


def _broadcast(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the results of ``torch.broadcast_tensors(a, b)``; each keeps its dtype and device."""
    made: list[Value] = []
    for argument in arguments.positional:
        reason = Reason(f"`{name}` returns it", argument.node)
        dtype = "bool" if argument.value is COMPARED else "unknown"
        tensor = tensor_of(argument.value) or Tensor(reason, dtype)
        made.append(replace(tensor, reason=reason, scalar=None, role="", rank=None))
    return Sequence("tuple", join_all(made), None if arguments.open else tuple(made))


def _is_tensor(name: str, arguments: Arguments, ctx: Context) -> Value:
    return BOOL


def legacy_tensor(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the tensor of ``torch.FloatTensor([...])`` or ``torch.cuda.LongTensor(n)``.

    A `torch.Size` is the size of uninitialised memory, as numbers are.
    """
    dtype = legacy_dtype(name) or "unknown"
    device = "device" if ".cuda." in name else "host"
    reason = Reason(f"`{name}` makes it", arguments.node)
    data = arguments.value(0)
    _tensor_of_tensors(data, arguments, ctx)
    sized = _is_size(data) or (data is UNKNOWN and bool(arguments.positional))
    origin = "" if sized else host_data.data_origin(data, "tensor")
    if arguments.positional and all(_is_size(one.value) for one in arguments.positional):
        origin = host_data.FACTORY  # uninitialised memory of this size
    if not arguments.positional and not arguments.keywords and not arguments.open:
        origin = host_data.EMPTY
    made = Tensor(
        reason, dtype, "host", False, ("tensor",), origin=origin, memory=host_data.PAGEABLE
    )
    if device == "host":
        return made
    if isinstance(data, (Sequence, NDArray)) and not _is_size(data):
        transfers.to_device(made, name.rpartition(".")[2], arguments, None, ctx)
    return on_device(made)


def _is_size(value: Value) -> bool:
    return isinstance(value, Scalar) or value == SHAPE


def _tensor_class(name: str, arguments: Arguments, ctx: Context) -> Value:
    given = tensor_of(arguments.value(0))
    if given is not None:
        return given
    return legacy_tensor("torch.FloatTensor", arguments, ctx)


# The backend of process groups on the host.
HOST_BACKEND = "gloo"
# Modules of torch, and of libraries that add one to it, for a kind of device each.
BACKENDS = ("cuda", "xpu", "mps", "accelerator", "npu", "hpu", "mtia", "musa", "mlu")
STREAMS = ("current_stream", "default_stream", "Stream")
# torch/distributed/distributed_c10d.py: each reads the sizes of the pickled objects with item().
EXCHANGES = (
    "all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list",
    "send_object_list", "recv_object_list",
)  # fmt: skip
SYNCHRONIZE = (
    *(f"torch.{module}.{call}" for module in BACKENDS for call in ("synchronize", "empty_cache")),
    "torch.distributed.barrier",
    "torch.distributed.monitored_barrier",
)


def _rng_state(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return a ByteTensor on the host, for any device (torch/random.py, torch/cuda/random.py)."""
    return Tensor(Reason(f"`{name}` returns it", arguments.node), "int", "host", False)


# torch.random.get_rng_state and torch.get_rng_state are one function.
RNG_STATES = [
    f"torch.{place}get_rng_state" for place in ("", "random.", "cuda.", "cuda.random.", "xpu.")
]
# Backends whose streams the table lacks.
OTHERS = ("npu", "hpu", "musa", "mlu")
SPECIAL: dict[str, Callable[[str, Arguments, Context], Value]] = {
    "torch.tensor": _tensor,
    "torch.as_tensor": _tensor,
    "torch.asarray": _tensor,
    "torch.from_numpy": _from_numpy,
    "torch.frombuffer": _from_numpy,
    "torch.from_dlpack": _unknown,
    "torch.device": _device_of,
    "torch.equal": _comparison,
    "torch.allclose": _comparison,
    "torch.is_nonzero": _comparison,
    "torch._check_tensor_all": _checked,
    "torch._check_tensor_all_with": _checked,
    "torch.where": _where,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.nn.Buffer": _parameter,
    "torch.Size": _size,
    "torch.broadcast_tensors": _broadcast,
    "torch.Tensor": _tensor_class,
    "torch.is_tensor": _is_tensor,
    "torch.save": _save,
    "torch.load": _load,
    "torch.utils.checkpoint.checkpoint": _run,
    "torch.autograd.grad": _autograd_grad,
    "torch.vmap": _vmap,
    **dict.fromkeys(RNG_STATES, _rng_state),
    **dict.fromkeys(SYNCHRONIZE, _synchronize),
    **{f"torch.distributed.{name}": _exchange for name in EXCHANGES},
    "torch.nested.nested_tensor_from_jagged": _jagged,
    **{f"torch.{one}.{name}": _stream for one in OTHERS for name in STREAMS},
    **{f"torch.{one}.Event": _event for one in OTHERS},
    **dict.fromkeys(debug_switches.DEBUG_SWITCHES, debug_switches.switch),
}
