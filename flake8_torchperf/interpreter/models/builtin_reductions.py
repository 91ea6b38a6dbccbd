"""Python's own reductions and sorts: ``max``, ``min``, ``sum``, ``any``, ``all``, ``sorted``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import apply
from flake8_torchperf.interpreter.events.recording import emit, emit_read, tells
from flake8_torchperf.interpreter.models import containers
from flake8_torchperf.values.arguments import Argument, Arguments
from flake8_torchperf.values.combining import may_be_number
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BOOL,
    NONE,
    NUMBER,
    UNKNOWN,
    Sequence,
    Value,
    join_all,
    tensor_of,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env

REDUCTIONS = frozenset(("max", "min", "sum", "any", "all", "sorted"))


def reduction(name: str, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return a reduction's result; only ``sum`` stays on the device, the others test ``a < b``."""
    values = [a.value for a in arguments.positional]
    if len(values) == 1:
        return _reduce_one(name, values[0], arguments, env, ctx)
    if name in ("max", "min") and len(values) > 1:
        first = next((a for a in arguments.positional if _on_device(a.value)), None)
        if first is not None:
            emit(
                ctx,
                SiteKind.HOST_REDUCTION,
                name,
                arguments.node,
                tensor_of(first.value),
                operand_node=first.node,
                traits=_how_compared(values, arguments),
            )
        return join_all(values)
    if name == "sum" and values:
        return containers.summed(values[0], values[1])
    return join_all(values) if name in ("max", "min") else UNKNOWN


def _on_device(value: Value) -> bool:
    tensor = tensor_of(value)
    return tensor is not None and tensor.device != "host"


# The traits of a reduction that compares keys, and of one with a bound that may be a number.
KEYED = "keyed"
BOUNDED = "bounded"
# The trait of a reduction of values that are numbers on some path.
PARTLY = "partly"
# The trait of a reduction of one tensor, not of a list of them.
WHOLE = "whole"


def _how_compared(values: Iterable[Value], arguments: Arguments) -> tuple[str, ...]:
    """Return the traits of a reduction: one that compares keys or numbers cannot be stacked."""
    if _key(arguments) is not None:
        return (KEYED,)
    values = tuple(values)
    if any(tensor.partly for v in values if (tensor := tensor_of(v)) is not None):
        return (PARTLY,)
    numbers = any(tensor_of(v) is None or may_be_number(v) for v in values)
    return (BOUNDED,) if numbers else ()


def _key(arguments: Arguments) -> Argument | None:
    given = arguments.keywords.get("key")
    return None if given is None or given.value is NONE else given


def _reduce_one(name: str, value: Value, arguments: Arguments, env: Env, ctx: Context) -> Value:
    node = arguments.positional[0].node
    over = tensor_of(value)
    element = element_of(value)
    held = over or tensor_of(element)
    key = _key(arguments)
    if key is not None:
        # The results of the key function are compared.
        held = tensor_of(apply(key.value, containers.single(arguments, element), env, ctx))
    if name == "sum" and over is None:
        return containers.summed(value, NUMBER)
    if name == "sum" and over is not None:
        # Nothing is compared: the rows are added one after the other, on the device.
        emit_read(ctx, SiteKind.TENSOR_ITERATION, name, node, over, operand_node=node)
    elif held is not None and tells(held, ctx) and not _single(value):
        items = value.items if isinstance(value, Sequence) and value.items is not None else ()
        traits = _how_compared(items, arguments)
        if over is not None and over is held:
            traits = (*traits, WHOLE)
        emit(
            ctx,
            SiteKind.HOST_REDUCTION,
            name,
            arguments.node,
            held,
            operand_node=node,
            traits=traits,
        )
    match name:
        case "any" | "all":
            return BOOL
        case "sorted":
            return Sequence("list", element)
    return element


def ordered(
    owner: Sequence, node: ast.expr | None, arguments: Arguments, env: Env, ctx: Context
) -> None:
    """Record the comparisons of ``values.sort()``, which are those of ``sorted(values)``."""
    if node is not None:
        given = replace(arguments, positional=(Argument(node, owner),))
        _reduce_one("sorted", owner, given, env, ctx)


def _single(value: Value) -> bool:
    return isinstance(value, Sequence) and value.items is not None and len(value.items) == 1
