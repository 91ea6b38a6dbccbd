"""The frequency of a function, by the calls in its module that lead to it.

A call from a loop or a step outweighs protocols and conventions. If only set-up code calls a
function, that outweighs the evidence of its parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from flake8_torchperf.judgement.frequency.own_heat import FINAL, SET_UP, UNDECIDED
from flake8_torchperf.judgement.frequency.rates import rate_of
from flake8_torchperf.judgement.frequency.reachability import Every, Some
from flake8_torchperf.judgement.heat import Call, Cost, Heat, Level
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    import ast
    from collections.abc import Set as AbstractSet

    from flake8_torchperf.judgement.frequency.call_graph import Calls, CallSite
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# With these causes, a caller is no evidence for the functions that it calls.
SILENT = FINAL | {Cause.RESULT_KEPT}
# Causes that no call changes: a setting, a test, a tracer's function, a cached result, dead code,
# what a loader runs on the host.
SETTLED_CAUSES = SILENT | {Cause.NAMED_HOT, Cause.DATA_WORKER}
# Causes of functions of which only calls say how often they run.
BY_CALLS = UNDECIDED | {Cause.UNREACHED, Cause.BEFORE_STEPS, Cause.SET_UP_CALLS}
# Causes that rest on a call.
CALLS = (Cause.CALLED, Cause.CALLED_IN_LOOP)


class Texts(Protocol):
    """The facts that the text of functions and of their loops shows."""

    def own(self, info: FunctionInfo) -> Heat:
        """Return the heat of a function by its own text."""

    def step_loops(self, info: FunctionInfo) -> AbstractSet[int]:
        """Return the loops over steps of a function, by identity."""

    def is_around_steps(self, loop: ast.AST, module: ModuleMap) -> bool:
        """True if a loop contains the loop over steps."""

    def rate_at(self, site: CallSite) -> str:
        """Return the rate of a call in a step, in words of its own: "per request", else ""."""

    def repeats(self, site: CallSite) -> bool:
        """True if a loop repeats a call; a loop over epochs, around the steps, does not count."""

    def repeats_steps(self, site: CallSite) -> bool:
        """True if each round of a loop around a call is a step, or calls one."""

    def is_seldom(self, site: CallSite) -> bool:
        """True for a call that runs once in several rounds."""


class CalledHeats:
    """The heat of functions by their own text and by the calls in their module that lead to them.

    ``texts`` says what the text of functions shows.
    """

    def __init__(self, calls: Calls, texts: Texts, ignored: frozenset[Cause] = frozenset()) -> None:
        self._ignored = ignored
        self._calls = calls
        self._texts: Texts = texts
        self._own = texts.own
        self._before_steps = Every(calls.of, self._runs_before_steps)
        self._set_up = Every(calls.of, self._sets_up)
        self._seldom = Every(calls.of, self._runs_seldom)
        self._in_steps = Some(calls.of, self.in_steps)
        self._off_in_steps = Some(calls.of, self._rarely_in_steps)
        self._hot = Some(calls.of, self.makes_hot)
        self._in_epochs = Some(calls.of, self._is_in_epochs)

    def forget(self) -> None:
        """Drop the references back to this object, so that it is freed with its last user."""
        for question in (self._before_steps, self._set_up, self._seldom):
            question.forget()
        for one in (self._in_steps, self._off_in_steps, self._hot, self._in_epochs):
            one.forget()

    def of(self, info: FunctionInfo) -> Heat:
        """Return how often a function runs, with the cause."""
        heat = self._own(info)
        if heat.cause in SETTLED_CAUSES or heat.level >= Level.STEP:
            return heat
        hot = self._made_hot(info, heat)
        if hot is not None:
            return hot
        if heat.cause in SET_UP:
            return heat
        for question, cause in (
            (self._before_steps, Cause.BEFORE_STEPS),
            (self._set_up, Cause.SET_UP_CALLS),
            (self._seldom, Cause.SELDOM_CALLS),
        ):
            if cause not in self._ignored and question.of(info):
                shown = self._beside(info) if cause is Cause.BEFORE_STEPS else cause
                heat = Heat(Level.COLD, shown, info.name, loops=False)
                path = self._in_epochs.path(info)
                return heat.costing(Cost.EPOCH, self._rate(path[-1])) if path else heat
        return heat

    def _rate(self, site: CallSite) -> str:
        """Return how often a loop around the steps makes a call, in words of its own."""
        module = None if site.caller is None else site.caller.module
        around = (
            one
            for one in reversed(site.loops)
            if module is not None and self._texts.is_around_steps(one, module)
        )
        return next(map(rate_of, around), "")

    def _beside(self, info: FunctionInfo) -> Cause:
        """Return the cause for which no step runs a function that the loop over steps calls."""
        path = self._off_in_steps.path(info)
        if not path:
            return Cause.BEFORE_STEPS
        return Cause.SELDOM_CALLS if path[-1].seldom else Cause.SWITCHED_OFF

    def _made_hot(self, info: FunctionInfo, heat: Heat) -> Heat | None:
        """Return the heat by the first call from a step, else from a loop; None if there is none.

        A round of a loop need not be a step: it may be one file or one layer. So a call from a loop
        does not outweigh a protocol or a convention, nor change the function that contains the loop
        over steps.
        """
        path = self._in_steps.path(info)
        if path:
            rate = self._texts.rate_at(path[-1])
            return called_heat(info, tuple(map(called_from, path)), Level.STEP, rate)
        if heat.cause in SET_UP or heat.cause is Cause.OUTSIDE_STEPS:
            return None
        path = self._hot.path(info)
        if not path:
            return None
        rate = self._texts.rate_at(path[-1])
        return called_heat(info, tuple(map(called_from, path)), Level.COLD, rate)

    def in_steps(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True if the call stands in a step, or in a function that runs every step.

        None if the callers of the caller decide.
        """
        if site.caller is None or self._texts.is_seldom(site):
            return False
        own = self._own(site.caller)
        if own.cause in SILENT:
            return False
        if self._texts.repeats_steps(site) or own.level is Level.STEP:
            return True
        if own.cause is not Cause.OUTSIDE_STEPS:
            return None
        # Code beside the loop over steps runs once for all of them.
        return self._in_step_loop(site, site.caller)

    def _in_step_loop(self, site: CallSite, caller: FunctionInfo) -> bool:
        return not self._texts.step_loops(caller).isdisjoint(map(id, site.loops))

    def _rarely_in_steps(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True for a call in the loop over steps, in a branch that few steps or none take.

        None if the callers of the caller decide.
        """
        caller = site.caller
        if caller is None:
            return False
        if self._own(caller).cause is not Cause.OUTSIDE_STEPS:
            return None
        return self._texts.is_seldom(site) and self._in_step_loop(site, caller)

    def _is_in_epochs(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True if the call stands in a loop around the steps; None if its caller decides."""
        caller = site.caller
        if caller is None:
            return False
        around = (self._texts.is_around_steps(loop, caller.module) for loop in site.loops)
        return True if any(around) else None

    def makes_hot(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True if the call stands in a loop, or in a function that runs every step.

        None if the callers of the caller decide.
        """
        if site.caller is None:
            return bool(site.loops) and not self._texts.is_seldom(site)
        answer = self.in_steps(info, site)
        if answer is not None:
            return answer
        own = self._own(site.caller)
        if own.cause in SET_UP and not own.loops:
            return None
        # A function that is only known to be given tensors is no evidence for its callees.
        if self._seldom.of(site.caller) or self._set_up.of(site.caller):
            return None
        return self._texts.repeats(site) or None

    def _sets_up(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True if the call stands in code that sets up, saves or shows something.

        None if the callers of the caller decide. Always False for a public function of a public
        module. The other calls of a private function are in the same module, or are assumed to be
        alike.
        """
        inner = info.module.name.rpartition(".")[2].startswith("_")
        if not (inner or info.name.startswith("_")) or self._calls.are_open(info):
            return False
        caller = site.caller
        if caller is None:
            return not site.loops
        own = self._own(caller)
        if own.cause is Cause.CONVENTION:
            return None  # the name of a caller is no evidence for its callees
        if own.cause in SET_UP or own.cause is Cause.NAMED_COLD:
            return True
        if own.level is Level.STEP or self._texts.repeats(site):
            return False
        return True if own.cause is Cause.OUTSIDE_STEPS else None

    def _runs_seldom(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True for a call that runs only every so many steps or on the way to an error.

        None if the callers of the caller decide.
        """
        if self._calls.are_open(info):
            return False
        seldom = self._texts.is_seldom(site)
        return seldom if seldom or site.caller is None else None

    def _runs_before_steps(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True for a call beside the loop over steps, in the function that contains that loop.

        This outweighs the tensors that a function is given, even if it is public. None if the
        callers of the caller decide.
        """
        caller = site.caller
        if caller is None:
            # A call at module level of a script runs once.
            private = info.name.startswith("_") and not self._calls.are_open(info)
            return not site.loops and private
        own = self._own(caller)
        if own.cause is Cause.OUTSIDE_STEPS:
            return not self.in_steps(info, site)
        if own.level is Level.STEP or self._texts.repeats(site):
            return False
        return False if own.cause in SET_UP else None


def called_heat(info: FunctionInfo, path: tuple[Call, ...], around: Level, rate: str = "") -> Heat:
    """Return the heat of a function that calls make hot; ``around`` is the level around its loops.

    ``path`` leads from the function's own call to the one that runs often; ``rate`` is that of the
    steps behind it, in words of its own.
    """
    cause = Cause.CALLED if path[0].caller else Cause.CALLED_IN_LOOP
    return Heat(Level.STEP, cause, info.name, around=around, rate=rate, calls=path)


def called_from(site: CallSite) -> Call:
    """Return a call as heat names it."""
    return Call("" if site.caller is None else site.caller.qualname, site.path, site.line)
