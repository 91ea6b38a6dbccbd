"""How often the place of a context runs: its function's heat, its branches and its loops."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.elements import goes_through_layers
from flake8_torchperf.absint.domain.heat import Cause, Cost, Heat, Level
from flake8_torchperf.absint.domain.site import SiteKind
from flake8_torchperf.absint.domain.values import Instance, Tensor
from flake8_torchperf.absint.stated_types.class_hierarchy import kind_of_instance
from flake8_torchperf.hotness.loop_kinds import head_of, is_written_out, names_in, takes_step
from flake8_torchperf.hotness.own_heat import FINAL
from flake8_torchperf.syntax.traversal import once, walk

if TYPE_CHECKING:
    from flake8_torchperf.absint.engine.analysis import Context, LoopPlace

# What a loop over elements or parameters is by itself; a dispatch costs the same without a device.
PER_ELEMENT = (
    SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS, SiteKind.PARAMETER_LOOP, SiteKind.GROWTH,
    SiteKind.HOST_ACCUMULATION,
)  # fmt: skip
# What stands beside the loop over steps, and what a loader's workers do on the host: to take a
# tensor apart there is one `unbind`, and only what the loop does with its rows may cost.
ONCE = (Cause.OUTSIDE_STEPS, Cause.BEFORE_STEPS, Cause.DATA_WORKER)
# Checks of which TPF203 tells in loops.
NON_FINITE = frozenset(("isinf", "isnan", "isfinite", "isposinf", "isneginf"))
# Iterating that makes no loop: what is taken apart is taken apart at once.
AT_ONCE = ("unpack", "tuple", "list", "star")


def heat(ctx: Context, kind: SiteKind, operation: str) -> Heat:
    """How often a site of this kind runs at the place of a context, and what says so."""
    over = over_elements(ctx, kind, operation)
    each = _paid_per_element(ctx, kind, operation)
    cost = Cost.ELEMENT if each else Cost.CALL
    if ctx.demoted is not None and not _counts_all_the_same(ctx, over=over):
        name = ctx.row if ctx.demoted is Cause.CONVENTION else ctx.base.name
        return Heat(Level.COLD, ctx.demoted, name, cost=cost)
    base = ctx.base
    if base.cause in FINAL:
        return base.costing(cost)
    loops = [place for place in ctx.loops if _repeats(place, ctx)]
    shown = [place for place in loops if _by_itself(place, ctx)]
    if base.level is Level.COLD and base.around is Level.COLD:
        loops = shown
    around = max(base.level, base.around)
    if loops:
        place = loops[-1]
        cost = Cost.ELEMENT if each else Cost.STEP
        return Heat(
            Level.LOOP, Cause.LOOP, node=place.node, around=around, cost=cost, own_text=bool(shown)
        )
    if over and kind is SiteKind.TENSOR_ITERATION and _may_repeat(operation, base):
        return Heat(Level.LOOP, Cause.ELEMENTS, _name(ctx), around=around, cost=cost, own_text=True)
    if base.level >= Level.STEP and not each:
        cost = Cost.STEP
    return base.costing(cost)


def costs_without_device(ctx: Context, kind: SiteKind, operation: str, tensor: Tensor) -> bool:
    """Is it a loop over elements, or a check in one, on a branch that runs without a device?

    There nothing waits, but each element is dispatched all the same.
    """
    if ctx.demoted is not Cause.NO_DEVICE or not over_elements(ctx, kind, operation):
        return False
    return kind in PER_ELEMENT or not NON_FINITE.isdisjoint(tensor.chain)


def _may_repeat(operation: str, base: Heat) -> bool:
    """Does a loop over elements count by itself, in a function that no evidence says runs once?"""
    return operation not in AT_ONCE and base.cause not in ONCE


def _counts_all_the_same(ctx: Context, *, over: bool) -> bool:
    """Does a branch that runs seldom leave a loop in it as dear as it is?

    A dispatch costs the same without a device, and who turns an option on pays for its loops.
    """
    if ctx.demoted is Cause.NO_DEVICE:
        return over
    return ctx.demoted is Cause.SWITCHED_OFF and len(ctx.loops) > ctx.outside


def _name(ctx: Context) -> str:
    """The name of the function, which a convention's heat does not hold."""
    return ctx.function.rpartition(".")[2]


def over_elements(ctx: Context, kind: SiteKind, operation: str) -> bool:
    """Is it a loop over a tensor's elements or a model's parameters, or does it stand in one?"""
    if kind in PER_ELEMENT and operation not in AT_ONCE:
        return True
    return any(map(_by_elements, ctx.loops))


def _paid_per_element(ctx: Context, kind: SiteKind, operation: str) -> bool:
    """True if a loop over elements or parameters repeats the place; that of a total may be over
    anything.
    """
    if kind is not SiteKind.HOST_ACCUMULATION and over_elements(ctx, kind, operation):
        return True
    return any(_by_elements(place) or goes_through_layers(place.value) for place in ctx.loops)


def _by_elements(place: LoopPlace) -> bool:
    """``for row in t``, ``for i in range(len(t))``; a step of its own makes pieces of it."""
    if isinstance(place.value, Tensor):
        return True
    match place.over:
        case ast.Call(func=ast.Name(id="range"), args=[_, _, _]):
            return False
    return bool(place.measures)


def _repeats(place: LoopPlace, ctx: Context) -> bool:
    """Does a loop repeat what stands in it, and is it none around the loop over steps?"""
    return not (is_written_out(place.node) or ctx.analysis.is_around_steps(place.node, ctx.module))


def _by_itself(place: LoopPlace, ctx: Context) -> bool:
    """Does a loop's own text say what its rounds are: elements, steps, or calls of a model?"""
    if _by_elements(place) or takes_step(place.node) or id(place.node) in ctx.step_loops:
        return True
    if (
        isinstance(place.value, Instance)
        and kind_of_instance(place.value, ctx.analysis) == "loader"
    ):
        return True
    return runs_model(place.node, ctx) or _of_data_by_name(place.node, ctx)


def _of_data_by_name(loop: ast.AST, ctx: Context) -> bool:
    """``for batch in loader``, where the function itself is not cold by its name."""
    head = head_of(loop)
    if head is None or ctx.base.cause not in (Cause.NOTHING, Cause.OUTSIDE_STEPS):
        return False
    names = tuple(sorted(names_in(head.target) | names_in(head.iter)))
    return ctx.analysis.conventions.first("loop", names) is not None


def runs_model(loop: ast.AST, ctx: Context) -> bool:
    """Is a module called in each round, as far as the calls in it have been looked at?"""
    called = ctx.analysis.models_called
    return bool(called) and not called.isdisjoint(_calls_in(loop))


@once
def _calls_in(loop: ast.AST) -> frozenset[int]:
    """The calls in a loop's body, by identity."""
    head = head_of(loop)
    roots = [loop] if not isinstance(head, (ast.For, ast.AsyncFor)) else [*head.body]
    return frozenset(id(node) for node in walk(roots) if isinstance(node, ast.Call))
