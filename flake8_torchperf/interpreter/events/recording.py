"""Recording of sites: the interpreter makes all its sites here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.place import Site
from flake8_torchperf.interpreter.events.element_loops import costs_without_device
from flake8_torchperf.syntax.traversal import once
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.site import SIZED_KINDS, SiteKind
from flake8_torchperf.values.values import NDArray, Tensor, Value, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.place import Context

# Kinds of sites that end a graph if they read an array.
ARRAY_KINDS = (SiteKind.HOST_READ, SiteKind.NUMBER_USE, SiteKind.TRANSFER)
# Uses of a number for which Python itself asks a tensor, and not torch, which knows its constants.
ASKED_BY_PYTHON = frozenset(("slice", "list-slice", "list-index", "range"))
# Sites at which the host waits, whatever the operand holds.
WAITING_KINDS = (SiteKind.SYNCHRONIZE, SiteKind.TORCH_CALL, *SIZED_KINDS)


def emit(
    ctx: Context,
    kind: SiteKind,
    operation: str,
    node: ast.AST,
    operand: Value | None = None,
    *,
    operand_node: ast.AST | None = None,
    traits: Iterable[str] = (),
    covers: tuple[ast.AST, ...] = (),
) -> None:
    """Record a site, unless the context is silent."""
    if kind in WAITING_KINDS:
        ctx.budget.waits += 1
        ctx.budget.decided += 1
    if ctx.sink is not None:
        met = ctx.traits.union(traits)
        # Through the list, a site would refer to itself: its tree would wait to be collected.
        place = ctx.but(sink=None, pending=None)
        ctx.sink.append(Site(kind, operation, node, operand, place, met, covers, operand_node))


def waits(operand: Value | None) -> bool:
    """True if reading this may wait for a device; False for an array or a tensor on the host."""
    tensor = None if operand is None else tensor_of(operand)
    if tensor is None:
        return not isinstance(operand, NDArray)
    return tensor.device != "host"


def note_work(tensor: Tensor, node: ast.AST, ctx: Context) -> None:
    """Note that an operator queues work, unless it computes on the host."""
    if tensor.device != "host":
        ctx.analysis.queued[id(node)] = node


def tells(operand: Value, ctx: Context) -> bool:
    """True if a read is worth reporting: it waits, or it ends a graph."""
    return bool(ctx.compiled) or waits(operand)


def emit_read(
    ctx: Context,
    kind: SiteKind,
    operation: str,
    node: ast.AST,
    operand: Value,
    *,
    operand_node: ast.AST | None = None,
    traits: Iterable[str] = (),
) -> Tensor | None:
    """Record a site that reads ``operand`` if it is a tensor that may live on an accelerator.

    Return the tensor read; None if there is nothing to read or reading is free.
    """
    tensor = tensor_of(operand)
    if tensor is None:
        looked_at(operand, operation, node, ctx)
        if _array_ends_graph(operand, kind, ctx):
            emit(ctx, kind, operation, node, operand, operand_node=operand_node, traits=traits)
        return None
    known = bool(ctx.compiled) and _is_known_when_tracing(tensor, kind, operation)
    if known and tensor.device == BESIDE_HOST:
        ctx = ctx.but(compiled="", traits=ctx.traits - {"compiled", "fullgraph"})
    if tensor.device == "host" and not costs_without_device(ctx, kind, operation, tensor):
        if kind is not SiteKind.TENSOR_ITERATION:
            early(ctx, operation, node, tensor, operand_node)
            if ctx.compiled and not known:
                emit(ctx, kind, operation, node, tensor, operand_node=operand_node, traits=traits)
        return None
    if kind is not SiteKind.TENSOR_ITERATION and "non-blocking" not in traits:
        ctx.budget.waits += 1
        ctx.budget.decided += 1
    emit(ctx, kind, operation, node, tensor, operand_node=operand_node, traits=traits)
    return tensor


def _is_known_when_tracing(tensor: Tensor, kind: SiteKind, operation: str) -> bool:
    """True for ``x.view(torch.div(n, 2), -1)``: the tracer knows what torch makes of numbers.

    A slice or ``range`` of such a tensor ends the graph all the same (torch 2.13, as run:
    tests/lint/torch_compile/test_compiled_host.py).
    """
    if kind is not SiteKind.NUMBER_USE or operation in ASKED_BY_PYTHON:
        return False
    return tensor.origin == "python"


def _array_ends_graph(operand: Value, kind: SiteKind, ctx: Context) -> bool:
    """True if an array is read in compiled code, where it is a tensor of the graph.

    A number that a function of numpy computes from Python's numbers is known when tracing, so it
    ends the graph only as a condition (torch 2.13, as run:
    tests/lint/torch_compile/test_compiled_host.py).
    """
    if not ctx.compiled or not isinstance(operand, NDArray):
        return False
    return kind is SiteKind.BRANCH or (kind in ARRAY_KINDS and not operand.of_numbers)


def early(
    ctx: Context, operation: str, node: ast.AST, tensor: Tensor, operand_node: ast.AST | None
) -> None:
    """Record that a copy to the host is used, if nothing has waited since it was queued."""
    if not tensor.arrives or tensor.arrives != ctx.budget.waits:
        return
    if operation == "numpy" and ctx.node is not None and _waits_somewhere(ctx.node):
        return  # the array shares the memory, which is read later
    emit(ctx, SiteKind.RACE, operation, node, tensor, operand_node=operand_node)


def looked_at(value: Value, operation: str, node: ast.AST, ctx: Context) -> None:
    """Record the read of an array that may share the memory of a copy that has not arrived."""
    if not isinstance(value, NDArray) or value.late is None or ctx.node is None:
        return
    if _waits_somewhere(ctx.node):
        early(ctx, operation, node, value.late, node)


@once
def _waits_somewhere(node: ast.AST) -> bool:
    """True if a function mentions ``synchronize``, ``wait`` or ``query`` as an attribute."""
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in ("synchronize", "wait", "query")
        for inner in ast.walk(node)
    )


def names_rows(node: ast.AST, ctx: Context) -> bool:
    """True if an expression uses a value that stands for a whole batch under ``vmap``."""
    code = ctx.analysis.compiled
    if code is None or not code.rows:
        return False
    from flake8_torchperf.torch_compile.vmap import named

    return any(id(name) in code.rows for name in named(node, ctx.module.qualify))
