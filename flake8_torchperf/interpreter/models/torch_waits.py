"""The waits of torch's operations, by their flags and by tensors passed in place of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.guards import offers_foreach
from flake8_torchperf.interpreter.events.recording import emit, emit_read, tells
from flake8_torchperf.interpreter.models.torch_signatures import shown_tensor, slots_at, types_at
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.overloads import best_fitting
from flake8_torchperf.knowledge.returns import HostReturn, ScalarReturn
from flake8_torchperf.suspects.words import PER_PARAMETER
from flake8_torchperf.syntax.bindings import changes_in
from flake8_torchperf.syntax.weighted_sums import is_weighted_sum
from flake8_torchperf.values.arguments import Argument, Arguments, kind_of, kinds
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.elements import OF_MODULES, goes_through_layers
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    COMPARED,
    UNKNOWN,
    NDArray,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    tensor_of,
)

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.knowledge.table import Op

# The flags in the table for operations that wait: reads, dynamic shapes, known synchronisations.
COSTLY = frozenset("hys")


# Operations that wait only if they copy between host and device, or if a mask is among their
# indices. Code that knows the devices and indices records their sites.
_COPYING = methods_of("copies-between-devices")


NUMBER_TYPES = {"i", "f", "n", "Z", "b"}


# Types of parameters that never take a tensor: dtypes, devices, strings.
NO_TENSOR_KINDS = {"Y", "D", "s"}


def must_be_tensors(op: Op, name: str, arguments: Arguments) -> list[Tensor]:
    """Return the unknown first argument as a tensor if every overload takes one there.

    torch.linalg is left out, because it also takes objects that stand for a matrix by
    `__torch_function__`.
    """
    if not COSTLY & op.flags or name.startswith("torch.linalg."):
        return []
    if arguments.open or not arguments.positional:
        return []
    first = arguments.positional[0].value
    array = isinstance(first, NDArray)  # declared an array, which torch does not take there
    if not (array or first in (UNKNOWN, COMPARED)) or types_at(op, 0) != {"T"}:
        return []
    reason = Reason(f"passed to `{name}`", arguments.node, None, Strength.INFERRED)
    return [Tensor(reason, "bool" if first is COMPARED else "unknown")]


def sites_of(
    op: Op,
    name: str,
    arguments: Arguments,
    tensors: list[Tensor],
    ctx: Context,
    owner: ast.expr | None = None,
) -> None:
    """Record the sites of an operation, by its flags and by tensors passed in place of numbers."""
    if ctx.sink is None:
        ctx.budget.decided += bool(tensors and COSTLY & op.flags)
        return
    numbers_read(op, arguments, ctx)
    if not tensors or not COSTLY & op.flags:
        return
    flags = _certain_flags(op, arguments)
    if name == "linalg.matrix_norm" and not _takes_singular_values(arguments):
        flags -= {"s"}
    read = _read_instead_of_numbers(op, arguments)
    operand = next((t for t in read or tensors if tells(t, ctx)), None)
    if operand is None:
        return
    if _beside_host(name, tensors):
        ctx = ctx.demote(Cause.BESIDE_HOST)
    node = owner if owner is not None else _first_node(arguments)
    if name == "masked_select":
        emit(ctx, SiteKind.MASK_INDEX, "read", arguments.node, operand, operand_node=node)
    elif name in ("index_put", "index_put_"):
        _masked_put(name, arguments, ctx)
    elif name in _COPYING:
        return
    elif "y" in flags or ("s" in flags and not _gives_python_values(op)):
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
    """True if one of several tensors is on the host and may have dimensions, so all are there."""
    if name.startswith("index_put"):
        return False
    return len(tensors) > 1 and any(t.device == "host" and not t.scalar for t in tensors)


def _takes_singular_values(arguments: Arguments) -> bool:
    """True for the norms 2 and -2, which use svdvals and wait (ATen/native/LinearAlgebra.cpp)."""
    order = arguments.value(1, "ord")
    return isinstance(order, Scalar) and order.value in (2, -2)


def _gives_python_values(op: Op) -> bool:
    """True if the call gives Python values: the read is its purpose, as for ``is_nonzero``."""
    return all(isinstance(o.returns, (ScalarReturn, HostReturn)) for o in op.overloads)


def _read_instead_of_numbers(op: Op, arguments: Arguments) -> list[Tensor]:
    """Return the tensors passed where another overload takes a number and does not wait.

    The host waits for these: the value in ``x.masked_fill(mask, value)``, the deviation in
    ``torch.normal(mean, std)``, the repeats in ``repeat_interleave(x, repeats)``.
    """
    if not op.read_instead_of_numbers:
        return []
    positional, keywords = kinds(arguments)
    found: list[Tensor] = []
    for overload in best_fitting(op.overloads, positional, keywords):
        slots = [p.name for p in overload.params if p.form == "positional"]
        named = {**dict(zip(slots, arguments.positional, strict=False)), **arguments.keywords}
        given = (tensor_of(a.value) for n, a in named.items() if n in op.read_instead_of_numbers)
        found += [tensor for tensor in given if tensor is not None]
    return found


def _masked_put(name: str, arguments: Arguments, ctx: Context) -> None:
    """Record the wait of ``x.index_put_((mask,), values)``, which counts the mask's ones first."""
    for argument in arguments.all():
        indices = argument.value
        found = indices.element if isinstance(indices, Sequence) else None
        if isinstance(found, Tensor) and found.dtype == "bool" and tells(found, ctx):
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


def _certain_flags(op: Op, arguments: Arguments) -> frozenset[str]:
    """Return the flags shared by all overloads that the call may select.

    An argument of unknown kind excludes no overload: ``repeat_interleave(x, n)`` has a dynamic
    shape if ``n`` is a tensor, and none for a number.
    """
    positional, keywords = kinds(arguments)
    if op.unless:
        positional = [_size(argument) for argument in arguments.positional]
        keywords = {name: _size(argument) for name, argument in arguments.keywords.items()}
    flags = op.flags_for(positional, keywords)
    if "x" not in positional and "x" not in keywords.values():
        return flags
    fitting = [o for o in op.overloads if o.fit(positional, keywords) is not None]
    # With starred arguments, possibly no overload fits; then any of them may be meant.
    for overload in fitting or op.overloads:
        flags &= op.own_flags | overload.flags
    return flags


def _size(argument: Argument) -> str:
    """Return the kind of an argument, "-" for a size of -1, which torch finds in the data."""
    value = argument.value
    return "-" if isinstance(value, Scalar) and value.value == -1 else kind_of(value)


def _first_node(arguments: Arguments) -> ast.expr | None:
    first = next(iter(arguments.all()), None)
    return None if first is None else first.node


def numbers_read(op: Op, arguments: Arguments, ctx: Context) -> None:
    """Record tensors passed where every overload takes a number, which torch reads on the host."""
    for position, argument in enumerate(arguments.positional):
        held, node = _held(argument)
        if held is not None:
            slots = slots_at(op, position)
            types = {"Z" if slot.name in UNTYPED else slot.type for slot in slots} - NO_TENSOR_KINDS
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


# Parameters that are numbers although torch's stubs give no type: of `Tensor.split`.
UNTYPED = ("split_size",)
# The parameter of `full` and similar factories that is a number, not a size.
FILLING = "fill_value"


def _held(argument: Argument) -> tuple[Tensor | None, ast.expr]:
    """Return the tensor that is passed, or the first in a tuple or list, with its expression."""
    value, node = argument.value, argument.node
    tensor = tensor_of(value)
    if tensor is not None or not isinstance(value, Sequence) or value.kind not in ROW_KINDS:
        return tensor, node
    items = (value.element,) if value.items is None else value.items
    tensor = next((t for t in map(tensor_of, items) if t is not None), None)
    return tensor, shown_tensor(value, node) or node


ROW_KINDS = ("tuple", "list")


def parameter_operation(
    tensor: Tensor,
    name: str,
    arguments: Arguments,
    owner: ast.expr | None,
    ctx: Context,
) -> None:
    """Record an operation on, or with, a parameter or gradient in a loop over parameters."""
    if name not in PER_PARAMETER or not ctx.loops:
        return
    place = ctx.loops[-1]
    given = (tensor, *arguments.tensors())
    if not (any(t.role in OF_MODULES for t in given) or goes_through_layers(place.value)):
        return
    if name == "copy_" and arguments.node.args and is_weighted_sum(arguments.node.args[0]):
        name = "lerp_"
    if place.kind != "for" and name != "norm" and name != "vector_norm":
        return
    if owner is not None and not changes_in(owner, place.node):
        return
    if not offers_foreach(ctx):
        emit(ctx, SiteKind.PARAMETER_LOOP, name, arguments.node, tensor, operand_node=owner)
