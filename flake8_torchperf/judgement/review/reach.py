"""The functions that no step leads to, by all known calls, and the places in training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.idioms.evaluations import runs_without_gradients, samples
from flake8_torchperf.idioms.loop_kinds import (
    STATEMENTS,
    goes_backward,
    takes_training_step,
)
from flake8_torchperf.judgement.frequency.call_graph import narrowed
from flake8_torchperf.judgement.frequency.own_heat import SET_UP
from flake8_torchperf.judgement.frequency.propagation import CALLS, called_from
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.worth.features import EVALUATES, TRAINS
from flake8_torchperf.program.linking import Unit
from flake8_torchperf.program.running import MAX_ON_THE_WAY
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.heat import Call, Heat
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import FunctionInfo


class Unreached(NamedTuple):
    """Why no step leads to a function, with calls that lead to it all the same, its own first."""

    cause: Cause
    calls: tuple[Call, ...] = ()


class Reach:
    """Decides if a step may lead to a function of the linted module."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats, callers: PackageCallers) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._program = callers.program
        self._known: dict[Unit, Unreached | None] = {}

    def unreached(self, info: FunctionInfo, heat: Heat) -> Unreached | None:
        """Return why no step of a program that trains leads to a function; None if one may.

        `Cause.NEVER_MADE` if only methods of classes that nothing makes lead to it,
        `Cause.NEVER_RUN` if functions do that nothing runs, or none, else `Cause.UNREACHED`.
        """
        unit = self._program.unit(info)
        if unit is not None and self._is_dead(unit):
            return Unreached(self._why_dead(unit))
        if not self._is_open(heat) or self._evaluates(info):
            return None
        return self._asked(unit, info)

    def unreached_inside(self, name: str, info: FunctionInfo) -> Unreached | None:
        """Return why no step leads to a function inside another; None if one may.

        ``name`` is its qualified name.
        """
        return self._asked(self._program.inside(info, name), info)

    def is_reached_inside(self, name: str, info: FunctionInfo) -> bool:
        """True if all places show that run a function inside another, and a step leads to one."""
        unit = self._program.inside(info, name)
        if unit is None or not self._program.runs(unit).outside_tests:
            return False
        return not self._program.runs(unit).open and self._asked(unit, info) is None

    def _asked(self, unit: Unit | None, info: FunctionInfo) -> Unreached | None:
        if Cause.UNREACHED in self._analysis.ignored or not self._analysis.project.trains:
            return None
        if unit is None or not self._analysis.project.is_searched_whole:
            return None
        if unit not in self._known:
            self._known[unit] = self._cause(unit, info)
        return self._known[unit]

    def _evaluates(self, info: FunctionInfo) -> bool:
        """True if a function runs a model over data, in programs that do nothing else."""
        if self._heats.loops_over_examples(info):
            return True
        return runs_without_gradients(info) and self._program.only_evaluates(info)

    def _is_open(self, heat: Heat) -> bool:
        """True if a function's heat does not show that a step leads to it."""
        if heat.cause in CALLS:
            return heat.around is Level.COLD
        if heat.cause is Cause.CONVENTION:
            # A name is no evidence against the calls that are known.
            return heat.loops or heat.level is Level.STEP
        return heat.cause in (Cause.GIVEN_TENSORS, Cause.NOTHING, Cause.STEP_ROOT)

    def _cause(self, unit: Unit, start: FunctionInfo) -> Unreached | None:
        """Return why no step leads to a body, through whatever runs it; None if one may.

        ``start`` is the function that is the body, or that holds it.
        """
        is_root = False
        cause: Cause | None = None
        shown: tuple[Call, ...] = ()
        # The bodies that were met, each with the calls from it to the first one.
        seen: dict[Unit, tuple[Call, ...]] = {unit: ()}
        waiting: list[tuple[Unit, FunctionInfo]] = [(unit, start)]
        while waiting:
            one, info = waiting.pop()
            is_root = is_root or self._is_root(info)
            found = self._program.runs(one)
            places = found.outside_tests
            if found.open or len(seen) > MAX_ON_THE_WAY:
                return None  # code elsewhere may run it
            if self._is_dead(one):
                cause = cause or self._why_dead(one)
                continue
            if not places:
                return None  # something may run it in a way that is not followed
            for place in places:
                run = narrowed(place, self._callers.site_at)
                site = self._callers.site_at(run)
                caller = site.caller
                if caller is not None and self._heats.own(caller).cause is Cause.NEVER_MADE:
                    cause = cause or Cause.NEVER_MADE
                    continue
                if self._is_dead(Unit(run.path, run.body)):
                    continue
                nested = self._program.nested_in(run)
                answer = self._in_step(site) if nested is None else site.steps or None
                if answer or (caller is not None and site.loops and self._evaluates(caller)):
                    return None
                if is_root and self._heats.repeats(site):
                    return None  # a loop that calls a module, or a step by name, may be over steps
                if answer is not None or caller is None:
                    cause = Cause.UNREACHED
                    shown = shown or (*seen[one], called_from(site))
                    continue
                above = nested or self._program.unit(caller)
                if above is None:
                    return None
                if above not in seen:
                    seen[above] = (*seen[one], called_from(site))
                    waiting.append((above, caller))
        return None if cause is None else Unreached(cause, shown)

    def _is_root(self, info: FunctionInfo) -> bool:
        """True if torch or a framework calls a function in each step, or its name says so."""
        own = self._heats.own(info)
        by_name = own.cause is Cause.CONVENTION and own.level is Level.STEP
        return by_name or own.cause is Cause.STEP_ROOT

    def _is_dead(self, unit: Unit) -> bool:
        """True if nothing runs a body; new code, as in an editor, has no callers yet."""
        if Cause.NEVER_RUN in self._analysis.ignored:
            return False
        return self._program.is_dead(unit)

    def _why_dead(self, unit: Unit) -> Cause:
        """Return the cause of a dead body: that nothing makes a class above it, or runs it."""
        is_by_class = self._program.is_dead_by_class(unit)
        return Cause.NEVER_MADE if is_by_class else Cause.NEVER_RUN

    def _in_step(self, site: CallSite) -> bool | None:
        """True if a call stands in a step; None if the callers of its caller decide."""
        caller, answer = site.caller, self._heats.in_steps(site)
        if caller is None:
            return answer
        if answer and not site.steps and self._heats.own(caller).cause is Cause.STEP_ROOT:
            return None  # torch calls it, and something calls torch
        if answer is not None:
            return answer
        if samples(caller, site.loops):
            return True
        if self._heats.runs_steps(caller) or any(
            self._heats.is_around_steps(loop, caller.module)
            for loop in caller.nodes.of_any(*STATEMENTS)
        ):
            return False  # it runs once for many steps
        heat = self._heats.called(caller)
        if heat.cause in CALLS and heat.around is Level.STEP:
            return True
        if heat.cause in SET_UP and heat.cause not in (Cause.CONVENTION, Cause.EVALUATION):
            return False
        return None


class Training:
    """Tells which places of the linted module are part of training steps."""

    def __init__(self, callers: PackageCallers) -> None:
        self._callers = callers
        self._program = callers.program
        self._known: dict[str, bool] = {}

    def evidence_at(self, place: CallSite, info: FunctionInfo) -> Iterator[str]:
        """Yield whether training steps lead to a place in a function, or only other steps do."""
        if _is_in_training(place) or self._leads_to(info):
            yield TRAINS
        elif self._program.only_evaluates(info):
            yield EVALUATES

    def _leads_to(self, info: FunctionInfo) -> bool:
        """True if some place on the way to a function is part of a training step."""
        if info.key not in self._known:
            self._known[info.key] = any(
                _is_in_training(self._callers.site_at(run))
                for _, run in self._program.leading(info)
                if not self._callers.is_dead(run)
            )
        return self._known[info.key]


def _is_in_training(site: CallSite) -> bool:
    """True if the round of a loop around a place computes gradients, or its function does."""
    if site.seldom:
        return False
    if any(map(goes_backward, site.loops)):
        return True
    return site.caller is not None and not site.loops and takes_training_step(site.caller)
