"""The rates of functions that are called beside the steps: per epoch, per scene, at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.idioms.loop_kinds import STATEMENTS, is_written_out
from flake8_torchperf.judgement.frequency.call_graph import narrowed
from flake8_torchperf.judgement.frequency.propagation import BY_CALLS, called_from
from flake8_torchperf.judgement.frequency.rates import AT_THE_END, counts, ends_before, rate_of
from flake8_torchperf.judgement.heat import Cost, Level
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.heat import Call, Heat
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.program.runs import Run
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# Causes that say why a function is beside the steps, and leave open how often it runs.
_SEEN = BY_CALLS | {Cause.OUTSIDE_STEPS, Cause.EVALUATION, Cause.CONVENTION}
# The most calls between a function and the loop or the end.
_MOST_CALLS = 10


class Beside(NamedTuple):
    """The rate of a place beside the steps, "" without a word for it, and the call behind it."""

    rate: str
    call: Call | None = None

    @property
    def is_round(self) -> bool:
        """True if each round of a loop around the steps runs the place."""
        return self.rate not in ("", AT_THE_END)


NO_RATE = Beside("")


class CalledRates:
    """Finds the words for how often functions run that are called beside the steps."""

    def __init__(self, heats: FunctionHeats, callers: PackageCallers) -> None:
        self._heats = heats
        self._callers = callers
        self._known: dict[str, Beside | None] = {}

    def rated(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites of a function, with the words for how often its calls run them."""
        return result.having(self._rated(one, info) for one in result.sites)

    def _rated(self, site: JudgedSite, info: FunctionInfo) -> JudgedSite:
        runs = site.heat.frequency
        if not self._is_asked(site, runs, info):
            return site
        found = self._of(info, _MOST_CALLS)
        if found is None or not found.rate:
            return site
        if (runs.rate or runs.cost is Cost.EPOCH) and not found.is_round:
            return site  # its own text says more
        told = replace(runs, rate=found.rate, beside=found.call)
        if site.heat.runs is None:
            return site.heated(told)
        return site.heated(replace(site.heat, runs=told, rate=found.rate))

    def _is_asked(self, site: JudgedSite, runs: Heat, info: FunctionInfo) -> bool:
        """True if the calls of a function say more of how often a site runs than its own text."""
        if site.is_nested or runs.level >= Level.STEP or runs.cause not in _SEEN:
            return False
        if runs.cause is Cause.CONVENTION and self._heats.called(info).cause is not runs.cause:
            return False  # a convention for the branch
        if runs.cost is Cost.EPOCH:
            return runs.cause is Cause.BEFORE_STEPS and not site.loops
        loops = (one.node for one in site.loops if one.node is not None)
        return runs.cost is Cost.CALL and all(map(is_written_out, loops))

    def _of(self, info: FunctionInfo, left: int) -> Beside | None:
        """Return how often a function runs by all of its calls; None if they don't show that."""
        if info.key not in self._known:
            self._known[info.key] = None  # of calls in a circle, those from outside count
            self._known[info.key] = self._by_calls(info, left)
        return self._known[info.key]

    def _by_calls(self, info: FunctionInfo, left: int) -> Beside | None:
        runs = self._callers.program.runs_of(info)
        if runs.open or not left:
            return None
        found: list[Beside] = []
        for run in runs.outside_tests:
            if self._callers.is_dead(run):
                continue
            one = self._at(narrowed(run, self._callers.site_at), left)
            if one is None:
                return None
            found.append(one)
        if not found:
            return None
        if all(one.rate == AT_THE_END for one in found):
            return found[0]
        return next((one for one in found if one.is_round), NO_RATE)

    def _at(self, run: Run, left: int) -> Beside | None:
        """Return how often a place runs; None for one in a step or in another loop."""
        if self._callers.program.nested_in(run) is not None:
            return None
        site, module = self._callers.site_at(run), self._callers.module_of(run)
        call = called_from(site)
        if rate := self._heats.rate_at(site):
            return Beside(rate, call)
        inner = self._innermost(site, module)
        if inner is not None:
            rate = rate_of(inner) or (Cost.EPOCH.value if counts(inner) else "")
            is_around = rate and self._heats.is_around_steps(inner, module)
            return Beside(rate, call) if is_around else None
        if site.caller is None:
            return NO_RATE
        if self._heats.called(site.caller).level >= Level.STEP:
            return None
        above = self._of(site.caller, left - 1)
        if above is not None and above.rate:
            return Beside(above.rate, call)
        ends = ends_before(site.line, self._over_steps(site.caller, module))
        return Beside(AT_THE_END, call) if ends else above

    def _innermost(self, site: CallSite, module: ModuleMap) -> ast.AST | None:
        """Return the innermost loop that repeats a call; of those written out, one around steps."""
        loops = () if site.caller is None else site.caller.nodes.of_any(*STATEMENTS)
        written = [
            one
            for one in loops
            if is_written_out(one)
            and getattr(one, "lineno", 0) < site.line <= getattr(one, "end_lineno", 0)
            and self._heats.is_around_steps(one, module)
        ]
        found = (*site.loops, *written)
        return max(found, key=lambda one: getattr(one, "lineno", 0), default=None)

    def _over_steps(self, info: FunctionInfo, module: ModuleMap) -> Iterable[ast.AST]:
        """Yield the loops over steps of a function, and those around these."""
        holds = self._heats.own(info).cause is Cause.OUTSIDE_STEPS
        known = self._heats.step_loops(info) if holds else ()
        for loop in info.nodes.of_any(*STATEMENTS):
            if id(loop) in known or self._heats.is_around_steps(loop, module):
                yield loop
