"""Functions of torch: what they return by the torch table, and the sites that they make.

Enters a qualified name and arguments; leaves the result's value. Must not know statements.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.absint.calls import instances
from flake8_torchperf.absint.domain.from_signature import value_of_return
from flake8_torchperf.absint.domain.named_types import LEGACY_TENSORS
from flake8_torchperf.absint.domain.rank import FIXED, with_rank
from flake8_torchperf.absint.domain.values import (
    BESIDE_HOST,
    COMPARED,
    UNKNOWN,
    Device,
    DType,
    External,
    NDArray,
    NoneValue,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    tensor_of,
)
from flake8_torchperf.absint.engine.call_arguments import Argument, Arguments, kind_of, kinds
from flake8_torchperf.absint.models import torch_overrides
from flake8_torchperf.absint.transfer.operators import combine_device
from flake8_torchperf.candidates.nominate import PER_PARAMETER
from flake8_torchperf.events import transfers
from flake8_torchperf.events.recording import emit, emit_read
from flake8_torchperf.events.site import SiteKind
from flake8_torchperf.hotness.branch_frequency import offers_foreach
from flake8_torchperf.hotness.model import Cause
from flake8_torchperf.knowledge.returns import Return, UnknownReturn, common_return
from flake8_torchperf.syntax.traversal import changes_in

if TYPE_CHECKING:
    from flake8_torchperf.absint.engine.analysis import Context
    from flake8_torchperf.knowledge.overloads import Param
    from flake8_torchperf.knowledge.table import Op

# The table's flags of what makes the host wait: reads, dynamic shapes, known synchronisations.
COSTLY = frozenset("hys")
# Operations that wait only where they copy between host and device, or by a mask among their
# indices: their sites are made where devices and indices are known.
COPYING = {"copy_", "to", "cuda", "xpu", "cpu", "new_tensor"}
NUMBER_TYPES = {"i", "f", "n", "Z", "b"}
# Types of parameters for which no tensor is ever given: dtypes, devices, strings.
NO_TENSOR = {"Y", "D", "s"}


def call_torch(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Call the function or class of torch with this qualified name."""
    table = ctx.analysis.table
    special = torch_overrides.SPECIAL.get(table.canonical(name)) or torch_overrides.SPECIAL.get(
        name
    )
    if special is not None:
        return special(name, arguments, ctx)
    if name.rpartition(".")[2] in LEGACY_TENSORS:
        return torch_overrides.legacy_tensor(name, arguments, ctx)
    op = table.function(name)
    if op is None:
        return instances.construct_torch(name, arguments, ctx)
    short = name.rpartition(".")[2]
    tensors = arguments.tensors() or must_be_tensors(op, name, arguments)
    if not COSTLY & op.flags or not _source_is_linted(name, ctx):
        sites_of(op, _operation(name, short), arguments, tensors, ctx)
    if any(tensor.arrives for tensor in tensors):
        transfers.used_by(op, short, arguments, tensors, ctx)
    if short == "pack_padded_sequence":
        _lengths(arguments, ctx)
    device = _device(name, op, arguments, tensors, ctx)
    reason = Reason(f"`{name}` returns it", arguments.node, _because(tensors))
    returned = resolve(op, arguments)
    value = value_of_return(returned, reason, tensors, device, short)
    value = with_rank(value, op, short, arguments, tensors, method=False)
    if short == "pad_packed_sequence":
        value = _lengths_beside_host(value)
    if isinstance(value, Tensor):
        value = with_dtype(value, arguments)
        if short == "full" and "dtype" not in arguments.keywords:
            filled = torch_overrides.KIND_DTYPES.get(kind_of(arguments.value(1, "fill_value")))
            value = replace(value, dtype=filled or value.dtype)
        value = transfers.computed(value, op, tensors, arguments)
        if op.factory and value.scalar is None:
            value = replace(value, scalar=_made_without_size(short, arguments))
        if short in PER_PARAMETER and tensors and arguments.positional:
            parameter_operation(tensors[0], short, arguments, arguments.positional[0].node, ctx)
    return value


# Factories of what has one dimension or more, whatever they are given, beside those of `rank`.
ROWS = frozenset((
    "range", "hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window",
))  # fmt: skip
# Factories that take sizes as separate numbers (torch/_C/_VariableFunctions.pyi: `*size: _int`).
SIZED_BY_NUMBERS = frozenset(("zeros", "ones", "empty", "rand", "randn"))


def _made_without_size(short: str, arguments: Arguments) -> bool | None:
    """Does a factory make a tensor without dimensions? None where its size is not known."""
    if short in FIXED or short in ROWS:
        return False
    size = arguments.keywords.get("size")
    given = arguments.positional if size is None else (size,)
    for argument in given:
        if isinstance(argument.value, Sequence):
            items = argument.value.items
            return None if items is None else not items
    # `zeros(n, m)`; the numbers of others, as of `randint(low, high, size)`, are no sizes.
    numbers = bool(given) and all(isinstance(a.value, Scalar) for a in given)
    return False if numbers and short in SIZED_BY_NUMBERS else None


def _source_is_linted(name: str, ctx: Context) -> bool:
    """Is a function written in Python in the package that is linted? What waits is shown there."""
    if ctx.module.package.partition(".")[0] != name.partition(".")[0]:
        return False
    found = ctx.analysis.project.find(name)
    return found is not None and len(found[1]) == 1 and found[1][0] in found[0].functions


def must_be_tensors(op: Op, name: str, arguments: Arguments) -> list[Tensor]:
    """The first argument, not known to be a tensor, where every overload takes one there.

    Not of torch.linalg: what stands in for a matrix by `__torch_function__` is given to it.
    """
    if not COSTLY & op.flags or name.startswith("torch.linalg."):
        return []
    if arguments.open or not arguments.positional:
        return []
    first = arguments.positional[0].value
    array = isinstance(first, NDArray)  # so it was declared; an array is not taken there
    if not (array or first in (UNKNOWN, COMPARED)) or _types_at(op, 0) != {"T"}:
        return []
    reason = Reason(f"passed to `{name}`", arguments.node, None, Strength.INFERRED)
    return [Tensor(reason, "bool" if first is COMPARED else "unknown")]


def _operation(name: str, short: str) -> str:
    """What rule pages call it: ``linalg.inv``, ``unique``, ``one_hot``."""
    return f"linalg.{short}" if name.startswith("torch.linalg.") else short


def _because(tensors: list[Tensor]) -> Reason | None:
    return tensors[0].reason if tensors else None


def resolve(op: Op, arguments: Arguments) -> Return:
    """What the call returns; where no overload fits what is known, what all of them share."""
    positional, keywords = kinds(arguments)
    if not arguments.open:
        found = op.resolve(positional, keywords)
        if not isinstance(found, UnknownReturn):
            return found
    return common_return(overload.returns for overload in op.overloads)


def _device(name: str, op: Op, arguments: Arguments, tensors: list[Tensor], ctx: Context) -> str:
    given = device_argument(arguments)
    if given is not None:
        return given
    if tensors:
        return result_device(op, tensors)
    if op.factory or name.startswith("torch.signal.windows."):
        return transfers.factory_device(ctx)
    if _of_numbers(arguments) and transfers.factory_device(ctx) == "host":
        return BESIDE_HOST  # for who counts all reads it is one
    return "unknown"


def _of_numbers(arguments: Arguments) -> bool:
    """``torch.div(height, 2)``: of numbers alone a tensor is made first, where factories do."""
    values = [argument.value for argument in arguments.positional]
    return bool(values) and not arguments.open and all(isinstance(v, Scalar) for v in values)


def result_device(op: Op, tensors: list[Tensor]) -> str:
    """Where the result lies: with the tensor it is made like, else where all of them meet."""
    if op.like or op.view or op.in_place:
        return tensors[0].device
    return combine_device(tensors)


def device_argument(arguments: Arguments) -> str | None:
    """The device an explicit ``device=`` names; None where there is none or it is None."""
    given = arguments.keywords.get("device")
    if given is None or isinstance(given.value, NoneValue):
        return None
    return device_of(given.value) or "unknown"


def device_of(value: Value) -> str | None:
    """ "host", "device" or "unknown" for a value that names a device, None for any other."""
    match value:
        case Device(kind=kind):
            return kind
        case Scalar(kind="str", value=str(text)):
            return "host" if text.partition(":")[0] == "cpu" else "device"
        case Scalar(kind="int"):
            return "device"  # an index of an accelerator
        case Scalar(kind="str"):
            return "unknown"
        case Union(options=options):
            found = {device_of(o) for o in options if not isinstance(o, NoneValue)}
            return found.pop() if len(found) == 1 else "unknown"
    return None


def with_dtype(value: Tensor, arguments: Arguments) -> Tensor:
    """The tensor with the dtype that an explicit ``dtype=`` asks for."""
    given = arguments.keywords.get("dtype")
    if given is None or isinstance(given.value, NoneValue):
        return value
    kind = dtype_of(given.value)
    return replace(value, dtype=kind)


def dtype_of(value: Value) -> str:
    """The dtype class a value names: a ``torch.dtype`` or a Python number type."""
    match value:
        case DType(kind=kind):
            return kind
        case External(name="builtins.bool" | "builtins.int" | "builtins.float" as name):
            return name.removeprefix("builtins.")
    return "unknown"


def legacy_dtype(name: str) -> str | None:
    """The dtype class of ``torch.LongTensor`` and its kin; None for other names."""
    head, _, last = name.rpartition(".")
    return LEGACY_TENSORS.get(last) if head in ("torch", "torch.cuda") else None


def sites_of(
    op: Op,
    name: str,
    arguments: Arguments,
    tensors: list[Tensor],
    ctx: Context,
    owner: ast.expr | None = None,
) -> None:
    """The sites that an operation makes by its flags and by the tensors given for numbers."""
    if ctx.sink is None:
        return
    numbers_read(op, arguments, ctx)
    if not tensors or not COSTLY & op.flags:
        return
    flags = _certain_flags(op, arguments)
    if name == "repeat_interleave" and len(tensors) < 2 and (owner or _several(arguments)):
        flags -= {"y"}  # aten/src/ATen/native/Repeat.cpp: a number of repeats needs no count
    operand = next((t for t in tensors[_counted(name, tensors) :] if t.device != "host"), None)
    if operand is None:
        return
    if _beside_host(name, tensors):
        ctx = ctx.demote(Cause.BESIDE_HOST)
    node = owner if owner is not None else _first_node(arguments)
    if name == "masked_select":
        emit(ctx, SiteKind.MASK_INDEX, "read", arguments.node, operand, operand_node=node)
    elif name in ("index_put", "index_put_"):
        _masked_put(name, arguments, ctx)
    elif name in COPYING:
        return
    elif "y" in flags or ("s" in flags and "h" not in flags):
        traits = () if "y" in flags else ("syncs",)
        emit(
            ctx,
            SiteKind.DYNAMIC_SHAPE,
            name,
            arguments.node,
            operand,
            operand_node=node,
            traits=traits,
        )
    elif "h" in flags:
        emit(ctx, SiteKind.HOST_READ, name, arguments.node, operand, operand_node=node)


def _beside_host(name: str, tensors: list[Tensor]) -> bool:
    """Is one of several tensors, and no index or number, on the host? Then they all are."""
    if name.startswith("index_put"):
        return False
    return len(tensors) > 1 and any(t.device == "host" and not t.scalar for t in tensors)


def _several(arguments: Arguments) -> bool:
    """More than the repeats alone: of ``torch.repeat_interleave(repeats)`` they are the data."""
    return len(arguments.positional) + len(arguments.keywords) > 1 or arguments.open


def _lengths_beside_host(value: Value) -> Value:
    """The lengths that ``pad_packed_sequence`` returns are made of sizes, which the host has."""
    if isinstance(value, Sequence) and value.items is not None and len(value.items) > 1:
        padded, lengths, *more = value.items
        if isinstance(lengths, Tensor):
            return replace(value, items=(padded, replace(lengths, device=BESIDE_HOST), *more))
    return value


def _lengths(arguments: Arguments, ctx: Context) -> None:
    """``pack_padded_sequence(x, lengths)`` reads the lengths on the host.

    Where they lie is mostly not known, and the host is where they belong; torch up to 1.6 copies
    them from a device, newer ones refuse that.
    """
    given = arguments.get(1, "lengths")
    lengths = None if given is None else tensor_of(given.value)
    if given is not None and lengths is not None and lengths.device == "device":
        name = "pack_padded_sequence"
        emit(ctx, SiteKind.DYNAMIC_SHAPE, name, arguments.node, lengths, operand_node=given.node)


def _masked_put(name: str, arguments: Arguments, ctx: Context) -> None:
    """``x.index_put_((mask,), values)``: the mask's ones are counted on the host first."""
    for argument in arguments.all():
        indices = argument.value
        found = indices.element if isinstance(indices, Sequence) else None
        if isinstance(found, Tensor) and found.dtype == "bool" and found.device != "host":
            values = [a.value for a in arguments.all() if a is not argument]
            if any(tensor_of(value) is not None for value in values):
                emit(
                    ctx,
                    SiteKind.MASK_INDEX,
                    name,
                    arguments.node,
                    found,
                    operand_node=argument.node,
                )
            return


def _counted(name: str, tensors: list[Tensor]) -> int:
    """The first tensor that the host waits for: of ``repeat_interleave`` it is the repeats."""
    return 1 if name == "repeat_interleave" and len(tensors) > 1 else 0


def _certain_flags(op: Op, arguments: Arguments) -> frozenset[str]:
    """The flags of every overload that the call may mean: an argument of unknown kind decides none.

    ``repeat_interleave(x, n)`` has a dynamic shape where ``n`` is a tensor, and none for a number.
    """
    positional, keywords = kinds(arguments)
    if op.unless:
        positional = [_size(argument) for argument in arguments.positional]
        keywords = {name: _size(argument) for name, argument in arguments.keywords.items()}
    flags = op.flags_for(positional, keywords)
    if "x" not in positional and "x" not in keywords.values():
        return flags
    fitting = [o for o in op.overloads if o.fit(positional, keywords) is not None]
    # With starred arguments none may fit: then it may be any of them.
    for overload in fitting or op.overloads:
        flags &= op.own_flags | overload.flags
    return flags


def _size(argument: Argument) -> str:
    """The kind of an argument; a size of -1 is none: torch is to look for it in the data."""
    value = argument.value
    return "-" if isinstance(value, Scalar) and value.value == -1 else kind_of(value)


def _first_node(arguments: Arguments) -> ast.expr | None:
    first = next(arguments.all(), None)
    return None if first is None else first.node


def numbers_read(op: Op, arguments: Arguments, ctx: Context) -> None:
    """Tensors given where every overload takes a number: torch reads them on the host."""
    for position, argument in enumerate(arguments.positional):
        held, node = _held(argument)
        if held is not None:
            slots = _slots_at(op, position)
            types = {slot.type for slot in slots} - NO_TENSOR
            if types and types <= NUMBER_TYPES:
                names = {slot.name for slot in slots}
                operation = FILLING if names == {FILLING} else "size"
                emit_read(ctx, SiteKind.NUMBER_USE, operation, node, held, operand_node=node)
    for keyword, argument in arguments.keywords.items():
        held, node = _held(argument)
        if held is not None:
            types = {p.type for o in op.overloads for p in o.params if p.name == keyword}
            if types and types <= NUMBER_TYPES:
                emit_read(ctx, SiteKind.NUMBER_USE, keyword, node, held, operand_node=node)


# The parameter of `full` and its kin that is a number, and no size.
FILLING = "fill_value"


def _held(argument: Argument) -> tuple[Tensor | None, ast.expr]:
    """The tensor given, or the first in a tuple or list that is, and the expression of it."""
    value, node = argument.value, argument.node
    tensor = tensor_of(value)
    if tensor is not None or not isinstance(value, Sequence) or value.kind not in ROW_KINDS:
        return tensor, node
    tensor = next((t for t in map(tensor_of, value.items or ()) if t is not None), None)
    return tensor, shown_tensor(value, node) or node


ROW_KINDS = ("tuple", "list")


def shown_tensor(data: Sequence, node: ast.AST) -> ast.expr | None:
    """The first tensor in a tuple or list, as it is written; None where its items are not shown."""
    values = data.items or ()
    if not isinstance(node, (ast.Tuple, ast.List)) or len(node.elts) != len(values):
        return None
    pairs = zip(node.elts, values, strict=True)
    return next((written for written, value in pairs if tensor_of(value) is not None), None)


def _types_at(op: Op, position: int) -> set[str]:
    return {slot.type for slot in _slots_at(op, position)}


def _slots_at(op: Op, position: int) -> list[Param]:
    """What the overloads take at a position."""
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


def parameter_operation(
    tensor: Tensor,
    name: str,
    arguments: Arguments,
    owner: ast.expr | None,
    ctx: Context,
) -> None:
    """One operation on a parameter or gradient inside a loop over parameters."""
    if name not in PER_PARAMETER or tensor.role not in ("parameter", "gradient") or not ctx.loops:
        return
    place = ctx.loops[-1]
    if place.kind != "for" and name != "norm" and name != "vector_norm":
        return
    if owner is not None and not changes_in(owner, place.node):
        return
    if not offers_foreach(ctx):
        emit(ctx, SiteKind.PARAMETER_LOOP, name, arguments.node, tensor, operand_node=owner)
