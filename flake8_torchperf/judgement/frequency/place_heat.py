"""The frequency of a place: the heat of its function, its branches and its loops."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import (
    STATEMENTS,
    head_of,
    is_written_out,
    names_in,
    serves,
    takes_step,
)
from flake8_torchperf.interpreter.events.element_loops import AT_ONCE, by_elements, over_elements
from flake8_torchperf.interpreter.events.training.input_pipeline import FEEDS_STEPS
from flake8_torchperf.interpreter.stated_types.class_hierarchy import kind_of_instance
from flake8_torchperf.judgement.frequency.own_heat import FINAL
from flake8_torchperf.judgement.frequency.rates import AT_THE_END, is_after, rate_of
from flake8_torchperf.judgement.heat import Cost, Heat, Level
from flake8_torchperf.judgement.row import FREQUENCY
from flake8_torchperf.judgement.rows import BY_CAUSE
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.elements import goes_through_layers
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Instance

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context, LoopPlace
    from flake8_torchperf.judgement.evidence import Evidence

# Causes of code beside the loop over steps, and of code that a loader's workers run on the host.
# Iterating a tensor there costs one `unbind`; only the work of the loop on the rows may cost more.
ONCE = (Cause.OUTSIDE_STEPS, Cause.BEFORE_STEPS, Cause.DATA_WORKER)


def heat(e: Evidence, why: Cause | None) -> Heat:
    """Return how often a site runs; ``why`` is evidence that it costs little, if there is any."""
    over = over_elements(e.place, e.kind, e.operation)
    if why is None or (why is Cause.NO_DEVICE and over):
        return _frequency(e, over=over)  # a dispatch costs the same without a device
    if BY_CAUSE[why].question == FREQUENCY:
        name = e.place.row if why is Cause.CONVENTION else e.base.name
        cost, rate = (
            (Cost.ELEMENT, "") if _paid_per_element(e, over=over) else _cost_beside_loops(e)
        )
        return Heat(Level.COLD, why, name, cost=cost, rate=rate)
    runs = _frequency(e, over=over and why is not Cause.AT_ONCE)
    return Heat(Level.COLD, why, e.base.name, runs=runs, cost=runs.cost, rate=runs.rate)


def _frequency(e: Evidence, *, over: bool) -> Heat:
    """Return how often a site runs, by its function and its loops."""
    base = e.base
    each = _paid_per_element(e, over=over)
    cost, rate = (Cost.ELEMENT, "") if each else _cost_beside_loops(e)
    if base.cause in FINAL:
        return base.costing(cost, rate)
    if FEEDS_STEPS in e.traits:  # the device waits in the loop that takes the batches
        heat = Heat(Level.STEP, Cause.FEEDS_STEPS, base.name, cost=Cost.STEP)
        return replace(heat, own_text=True, once_a_step=True)
    loops = [place for place in e.place.loops if _repeats(place, e.place)]
    if len(loops) == 1 and not over and e.is_evaluated:
        return Heat(Level.COLD, Cause.EVALUATION, base.name, loops=False, cost=cost, rate=rate)
    shown = [place for place in loops if _by_itself(place, e)]
    if base.level is Level.COLD and base.around is Level.COLD:
        loops = shown
    around = max(base.level, base.around)
    if loops:
        place = loops[-1]
        cost = Cost.ELEMENT if each else Cost.REQUEST if serves(place.node) else Cost.STEP
        own_text = bool(shown) or (over and e.operation not in AT_ONCE)
        once = place in shown and not by_elements(place) and not over
        heat = Heat(Level.LOOP, Cause.LOOP, node=place.node, around=around, cost=cost)
        return replace(heat, own_text=own_text, once_a_step=once)
    if over and e.kind is SiteKind.TENSOR_ITERATION and _may_repeat(e.operation, base):
        name = e.place.function.rpartition(".")[2]  # a convention's heat has another name
        return Heat(Level.LOOP, Cause.ELEMENTS, name, around=around, cost=cost, own_text=True)
    if base.level >= Level.STEP and not each:
        cost, rate = Cost.STEP, base.rate
    return base.costing(cost, rate)


def _cost_beside_loops(e: Evidence) -> tuple[Cost, str]:
    """Return the cost of a place that no loop repeats but those of its function over epochs.

    With it comes how often the place runs, in words of its own; "" if those of the cost do.
    """
    ctx = e.place
    for place in reversed(ctx.loops):
        if ctx.analysis.is_around_steps(place.node, ctx.module):
            return Cost.EPOCH, rate_of(place.node)
    if e.base.level is Level.COLD and is_after(e.node, _over_steps(e)):
        return e.base.cost, AT_THE_END
    return e.base.cost, e.base.rate


def _over_steps(e: Evidence) -> list[ast.AST]:
    """Return the loops over steps of the function around a site, and those around these.

    Of a function that only calls what holds the steps, those around them.
    """
    ctx = e.place
    loops = [] if ctx.frame.info is None else ctx.frame.info.nodes.of_any(*STATEMENTS)
    known = e.step_loops if e.base.cause is Cause.OUTSIDE_STEPS else ()
    return [
        one for one in loops if id(one) in known or ctx.analysis.is_around_steps(one, ctx.module)
    ]


def _may_repeat(operation: str, base: Heat) -> bool:
    """True if a loop over elements counts even in a function that is not known to run often.

    An operation that takes a tensor apart at once does not count, nor does a function that is known
    to run once.
    """
    return operation not in AT_ONCE and base.cause not in ONCE


def _paid_per_element(e: Evidence, *, over: bool) -> bool:
    """True if a loop over elements or parameters repeats the place.

    A running total counts only inside such a loop, because its own loop may be over anything.
    """
    if e.kind is not SiteKind.HOST_ACCUMULATION and over:
        return True
    return any(by_elements(place) or goes_through_layers(place.value) for place in e.place.loops)


def _repeats(place: LoopPlace, ctx: Context) -> bool:
    """True if a loop repeats its body and is not a loop around the loop over steps."""
    return not (is_written_out(place.node) or ctx.analysis.is_around_steps(place.node, ctx.module))


def _by_itself(place: LoopPlace, e: Evidence) -> bool:
    """True if a loop's own code shows that its rounds are elements, steps or calls of a model."""
    if by_elements(place) or takes_step(place.node) or id(place.node) in e.step_loops:
        return True
    if e.base.cause is Cause.EVALUATION:
        return False
    analysis = e.place.analysis
    if isinstance(place.value, Instance) and kind_of_instance(place.value, analysis) == "loader":
        return True
    return runs_model(place.node, e.place) or _of_data_by_name(place.node, e)


def _of_data_by_name(loop: ast.AST, e: Evidence) -> bool:
    """True for ``for batch in loader``, unless the function is cold by its name."""
    head = head_of(loop)
    if head is None or e.base.cause not in (Cause.NOTHING, Cause.OUTSIDE_STEPS):
        return False
    names = tuple(sorted(names_in(head.target) | names_in(head.iter)))
    return e.place.analysis.conventions.first("loop", names) is not None


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
