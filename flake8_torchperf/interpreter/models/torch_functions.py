"""Functions of torch: their results by the torch table, and the sites that they make."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events import transfers
from flake8_torchperf.interpreter.events.recording import emit, waits
from flake8_torchperf.interpreter.inference import combined
from flake8_torchperf.interpreter.models import torch_classes, torch_overrides, wrappers
from flake8_torchperf.interpreter.models.torch_signatures import (
    KIND_DTYPES,
    device_argument,
    resolve,
    result_device,
    with_dtype,
)
from flake8_torchperf.interpreter.models.torch_waits import (
    COSTLY,
    must_be_tensors,
    parameter_operation,
    sites_of,
)
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.suspects.words import PER_PARAMETER
from flake8_torchperf.values.arguments import Arguments, kind_of
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.from_signature import value_of_return
from flake8_torchperf.values.named_types import LEGACY_TENSORS
from flake8_torchperf.values.rank import FIXED_DIMENSIONS, with_rank
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.knowledge.table import Op


def call_torch(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Call the function or class of torch with this qualified name."""
    table = ctx.analysis.table
    for known in (table.canonical(name), name):
        special = torch_overrides.SPECIAL.get(known)
        if special is not None:
            return special(known, arguments, ctx)
    if name.rpartition(".")[2] in LEGACY_TENSORS:
        return torch_overrides.legacy_tensor(name, arguments, ctx)
    inside = wrappers.wrap(name, arguments)
    if inside is not None:
        return inside
    op = table.function(name)
    if op is None:
        return torch_classes.construct_torch(name, arguments, ctx)
    short = name.rpartition(".")[2]
    tensors = arguments.tensors() or must_be_tensors(op, name, arguments)
    if not COSTLY & op.flags or not _source_is_linted(name, ctx):
        sites_of(op, _operation(name, short), arguments, tensors, ctx)
    if any(tensor.arrives for tensor in tensors):
        transfers.used_by(op, short, arguments, tensors, ctx)
    if short in HOST_LENGTHS:
        _lengths(short, arguments, ctx)
    if short in ("pack_padded_sequence", "pad_packed_sequence"):
        _order_copied(short, arguments, tensors, ctx)
    if len(tensors) > 1:
        combined.note_arguments(short, arguments, ctx)
    device = _device(name, op, arguments, tensors, ctx)
    reason = Reason(f"`{name}` returns it", arguments.node, _because(tensors))
    returned = resolve(op, arguments)
    value = value_of_return(returned, reason, tensors, device, short)
    value = with_rank(value, op, short, arguments, tensors, method=False)
    if short == "pad_packed_sequence":
        value = _lengths_beside_host(value)
    if op.view:
        value = transfers.pieces(value, op, tensors, arguments)
    if isinstance(value, Tensor):
        value = with_dtype(value, arguments)
        if short == "full" and "dtype" not in arguments.keywords:
            filled = KIND_DTYPES.get(kind_of(arguments.value(1, "fill_value")))
            value = replace(value, dtype=filled or value.dtype)
        if short in ("arange", "randint") and "dtype" not in arguments.keywords:
            value = replace(value, dtype=_counted(arguments) if short == "arange" else "int")
        value = transfers.computed(value, op, tensors, arguments)
        if op.factory and value.scalar is None:
            value = replace(value, scalar=_made_without_size(short, arguments))
        if short in PER_PARAMETER and tensors and arguments.positional:
            parameter_operation(tensors[0], short, arguments, arguments.positional[0].node, ctx)
    return value


def _counted(arguments: Arguments) -> str:
    """Return the dtype of ``torch.arange(n)``; an unknown bound is taken for an integer."""
    bounds = [kind_of(a.value) for a in arguments.positional]
    bounds += [kind_of(a.value) for n, a in arguments.keywords.items() if n in ("start", "end")]
    return "float" if "f" in bounds else "int"


# Factories whose result always has at least one dimension, beside those of `rank`.
ROW_FACTORIES = frozenset((
    "range", "hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window",
))  # fmt: skip


def _made_without_size(short: str, arguments: Arguments) -> bool | None:
    """True if a factory makes a tensor without dimensions; None if its size is unknown."""
    if short in FIXED_DIMENSIONS or short in ROW_FACTORIES:
        return False
    size = arguments.keywords.get("size")
    given = arguments.positional if size is None else (size,)
    for argument in given:
        if isinstance(argument.value, Sequence):
            items = argument.value.items
            return None if items is None else not items
    # The numbers of `zeros(n, m)` are sizes; those of `randint(low, high, size)` are not.
    numbers = bool(given) and all(isinstance(a.value, Scalar) for a in given)
    return False if numbers and short in methods_of("fills-a-size") else None


def _source_is_linted(name: str, ctx: Context) -> bool:
    """True if the function's Python source is in the linted package: its own waits are reported."""
    if ctx.module.package.partition(".")[0] != name.partition(".")[0]:
        return False
    found = ctx.analysis.project.find(name)
    return found is not None and len(found[1]) == 1 and found[1][0] in found[0].functions


def _operation(name: str, short: str) -> str:
    """Return the operation's name on rule pages: ``linalg.inv``, ``unique``, ``one_hot``."""
    return f"linalg.{short}" if name.startswith("torch.linalg.") else short


def _because(tensors: list[Tensor]) -> Reason | None:
    return tensors[0].reason if tensors else None


def _device(name: str, op: Op, arguments: Arguments, tensors: list[Tensor], ctx: Context) -> str:
    given = device_argument(arguments)
    if given is not None:
        return given
    made = "" if op.factory else _made_of_numbers(arguments)
    if made and transfers.factory_device(ctx) == "host":
        return made
    if tensors:
        return result_device(op, tensors)
    if op.factory or name.startswith("torch.signal.windows."):
        return transfers.factory_device(ctx)
    return "unknown"


def _made_of_numbers(arguments: Arguments) -> str:
    """Return where the result of ``torch.div(height, 2)`` lies: on the host, if made of numbers.

    What divides a number is most likely a number too: the operator says it shorter for a tensor.
    The result is "" if the first argument is no number.
    """
    values = [argument.value for argument in arguments.positional]
    if arguments.open or not values or arguments.tensors():
        return ""
    if not isinstance(values[0], Scalar):
        return ""
    return "host" if all(isinstance(value, Scalar) for value in values) else BESIDE_HOST


def _lengths_beside_host(value: Value) -> Value:
    """Return the result of ``pad_packed_sequence``; its lengths come from sizes, on the host."""
    if isinstance(value, Sequence) and value.items is not None and len(value.items) > 1:
        padded, lengths, *more = value.items
        if isinstance(lengths, Tensor):
            return replace(value, items=(padded, replace(lengths, device=BESIDE_HOST), *more))
    return value


# Functions that need lengths on the host, with their positions and names. `pack_padded_sequence` of
# torch up to 1.6 copies them from a device, and refuses them since. `ctc_loss` copies them
# (aten/src/ATen/native/LossCTC.cpp, ctc_loss), unless cuDNN computes it.
HOST_LENGTHS = {
    "pack_padded_sequence": ((1, "lengths"),),
    "ctc_loss": ((2, "input_lengths"), (3, "target_lengths")),
}


def _lengths(short: str, arguments: Arguments, ctx: Context) -> None:
    """Record that a function of `HOST_LENGTHS` reads lengths that lie on a device.

    Their residence is mostly unknown; they belong on the host.
    """
    for position, name in HOST_LENGTHS[short]:
        given = arguments.get(position, name)
        lengths = None if given is None else tensor_of(given.value)
        if given is not None and lengths is not None and lengths.device == "device":
            kind = SiteKind.DYNAMIC_SHAPE
            emit(ctx, kind, short, arguments.node, lengths, operand_node=given.node)
            return


def _order_copied(short: str, arguments: Arguments, tensors: list[Tensor], ctx: Context) -> None:
    """Record the copies of the order in which ``enforce_sorted=False`` sorts the rows.

    torch/nn/utils/rnn.py: packing copies the order to the device, and padding copies it back.
    """
    given = arguments.positional[0].node if arguments.positional else None
    node, packs = arguments.node, short == "pack_padded_sequence"
    if packs and _sorts(node) and tensors and waits(tensors[0]):
        name = "nn.utils.rnn.pack_padded_sequence"
        emit(ctx, SiteKind.TORCH_CALL, name, node, tensors[0], operand_node=given)
    elif not packs and not tensors and ctx.node is not None:
        packed = Tensor(Reason("the order of its rows lies on the device", node))
        if any(map(_sorts, ctx.module.nodes(ctx.node).of(ast.Call))):
            kind, traits = SiteKind.DYNAMIC_SHAPE, ("syncs",)
            emit(ctx, kind, short, node, packed, operand_node=given, traits=traits)


def _sorts(call: ast.AST) -> bool:
    """True for a call with ``enforce_sorted=False``."""
    return isinstance(call, ast.Call) and any(
        keyword.arg == "enforce_sorted"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is False
        for keyword in call.keywords
    )
