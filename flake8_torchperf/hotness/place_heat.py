"""The frequency of a place: the heat of its function, its branches and its loops."""

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

# Sites that are loops over elements or parameters; a dispatch costs the same without a device.
PER_ELEMENT = (
    SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS, SiteKind.PARAMETER_LOOP, SiteKind.GROWTH,
    SiteKind.HOST_ACCUMULATION,
)  # fmt: skip
# Code beside the loop over steps, and code that a loader's workers run on the host: taking a tensor
# apart there is one `unbind`, and only the work that the loop does with its rows may cost.
ONCE = (Cause.OUTSIDE_STEPS, Cause.BEFORE_STEPS, Cause.DATA_WORKER)
# Checks that TPF203 reports in loops.
NON_FINITE = frozenset(("isinf", "isnan", "isfinite", "isposinf", "isneginf"))
# Iterating that makes no loop: what is taken apart is taken apart at once.
AT_ONCE = ("unpack", "tuple", "list", "star")


def heat(ctx: Context, kind: SiteKind, operation: str) -> Heat:
    """Return how often a site of this kind runs at the place of a context, with the cause."""
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
    """True for a loop over elements, or a check in one, on a branch that runs without a device.

    Nothing waits there, but each element still costs a dispatch.
    """
    if ctx.demoted is not Cause.NO_DEVICE or not over_elements(ctx, kind, operation):
        return False
    return kind in PER_ELEMENT or not NON_FINITE.isdisjoint(tensor.chain)


def _may_repeat(operation: str, base: Heat) -> bool:
    """True if a loop over elements counts even in a function that is not known to run often.

    Taking a tensor apart at once does not count, nor do functions known to run once.
    """
    return operation not in AT_ONCE and base.cause not in ONCE


def _counts_all_the_same(ctx: Context, *, over: bool) -> bool:
    """True if a loop counts although its branch seldom runs.

    A dispatch costs the same without a device, and users who turn an option on pay for its loops.
    """
    if ctx.demoted is Cause.NO_DEVICE:
        return over
    return ctx.demoted is Cause.SWITCHED_OFF and len(ctx.loops) > ctx.outside


def _name(ctx: Context) -> str:
    """Return the name of the function, which the heat of a convention does not hold."""
    return ctx.function.rpartition(".")[2]


def over_elements(ctx: Context, kind: SiteKind, operation: str) -> bool:
    """True if a site is or stands in a loop over a tensor's elements or a model's parameters."""
    if kind in PER_ELEMENT and operation not in AT_ONCE:
        return True
    return any(map(_by_elements, ctx.loops))


def _paid_per_element(ctx: Context, kind: SiteKind, operation: str) -> bool:
    """True if a loop over elements or parameters repeats the place.

    A running total counts only inside such a loop, because its own loop may be over anything.
    """
    if kind is not SiteKind.HOST_ACCUMULATION and over_elements(ctx, kind, operation):
        return True
    return any(_by_elements(place) or goes_through_layers(place.value) for place in ctx.loops)


def _by_elements(place: LoopPlace) -> bool:
    """True for ``for row in t`` and ``for i in range(len(t))``, but not if the range has a step."""
    if isinstance(place.value, Tensor):
        return True
    match place.over:
        case ast.Call(func=ast.Name(id="range"), args=[_, _, _]):
            return False
    return bool(place.measures)


def _repeats(place: LoopPlace, ctx: Context) -> bool:
    """True if a loop repeats its body and is not a loop around the loop over steps."""
    return not (is_written_out(place.node) or ctx.analysis.is_around_steps(place.node, ctx.module))


def _by_itself(place: LoopPlace, ctx: Context) -> bool:
    """True if a loop's own code shows that its rounds are elements, steps or calls of a model."""
    if _by_elements(place) or takes_step(place.node) or id(place.node) in ctx.step_loops:
        return True
    if (
        isinstance(place.value, Instance)
        and kind_of_instance(place.value, ctx.analysis) == "loader"
    ):
        return True
    return runs_model(place.node, ctx) or _of_data_by_name(place.node, ctx)


def _of_data_by_name(loop: ast.AST, ctx: Context) -> bool:
    """True for ``for batch in loader``, unless the function is cold by its name."""
    head = head_of(loop)
    if head is None or ctx.base.cause not in (Cause.NOTHING, Cause.OUTSIDE_STEPS):
        return False
    names = tuple(sorted(names_in(head.target) | names_in(head.iter)))
    return ctx.analysis.conventions.first("loop", names) is not None


def runs_model(loop: ast.AST, ctx: Context) -> bool:
    """True if each round calls a module, as far as its calls have been analysed."""
    called = ctx.analysis.models_called
    return bool(called) and not called.isdisjoint(_calls_in(loop))


@once
def _calls_in(loop: ast.AST) -> frozenset[int]:
    """Return the calls in a loop's body, by identity."""
    head = head_of(loop)
    roots = [loop] if not isinstance(head, (ast.For, ast.AsyncFor)) else [*head.body]
    return frozenset(id(node) for node in walk(roots) if isinstance(node, ast.Call))
