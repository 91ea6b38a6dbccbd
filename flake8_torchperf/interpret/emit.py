"""Recording sites: the one place where the interpreter says what it saw.

Enters a context, a kind and an operand; leaves a site in the context's sink. Must not know rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpret.contexts import EXCEPT, LATER
from flake8_torchperf.interpret.values import Tensor, Value, tensor_of
from flake8_torchperf.sites.hotness import waits_each_step
from flake8_torchperf.sites.model import Heat, Level, Loop, Site, SiteKind

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from flake8_torchperf.interpret.machine import Context, LoopPlace


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
    """Record a site; nothing happens where the context is silent."""
    sink = ctx.sink
    if sink is None:
        return
    if kind is SiteKind.FORMAT and not ctx.traits.isdisjoint((EXCEPT, LATER)):
        ctx = ctx.demote("in the text of an error")
    if kind is SiteKind.SYNCHRONIZE and not waits_each_step(ctx.node, ctx.base):
        ctx = ctx.demote("where waiting is the purpose")
    sink.append(
        Site(
            kind,
            operation,
            node,
            operand,
            heat(ctx),
            tuple(_loop(place) for place in ctx.loops),
            ctx.function,
            ctx.traits.union(traits),
            covers,
            operand_node,
        )
    )


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

    Returns the tensor read; None where there is nothing to read or reading is free.
    """
    tensor = tensor_of(operand)
    if tensor is None or tensor.device == "host":
        return None
    emit(ctx, kind, operation, node, tensor, operand_node=operand_node, traits=traits)
    return tensor


def heat(ctx: Context) -> Heat:
    """How often the place of a context runs, and why."""
    if ctx.base.level is Level.COLD and ctx.base_stays_cold:
        return ctx.base
    if ctx.demoted:
        return Heat(Level.COLD, ctx.demoted)
    if ctx.loops:
        place = ctx.loops[-1]
        over = " over {over}" if place.over is not None else ""
        return Heat(Level.LOOP, "in the loop at line {line}" + over, place.node)
    return ctx.base


def _loop(place: LoopPlace) -> Loop:
    return Loop(0, place.kind, "", place.node)
