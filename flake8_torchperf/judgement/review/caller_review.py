"""A review of functions by the calls in their whole package.

The calls may show that only set-up code runs a function, or that the function is given no tensor.
The callers, in any module, are interpreted to learn the arguments that they pass.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.frequency.own_heat import UNDECIDED
from flake8_torchperf.judgement.frequency.propagation import CALLS
from flake8_torchperf.judgement.heat import Cost, Heat, Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.judgement.judged_site import Judged
from flake8_torchperf.judgement.review.called_rates import CalledRates
from flake8_torchperf.judgement.review.given_values import sites_given
from flake8_torchperf.judgement.review.host_callers import HostCallers
from flake8_torchperf.judgement.review.inner_bodies import InnerBodies
from flake8_torchperf.judgement.review.package_arguments import PackageArguments
from flake8_torchperf.judgement.review.package_callers import PackageCallers
from flake8_torchperf.judgement.review.package_heats import PackageHeats
from flake8_torchperf.judgement.review.placed_values import PlacedValues
from flake8_torchperf.judgement.review.reach import Reach, Training
from flake8_torchperf.judgement.review.switched_off import Switches
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.values import UNKNOWN, join_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Interpreted
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.judged_site import JudgedSite
    from flake8_torchperf.judgement.review.reach import Unreached
    from flake8_torchperf.project.module_index import FunctionInfo

# Causes that no call in the package changes.
DECIDED = frozenset((Cause.NAMED_HOT, Cause.NAMED_COLD, Cause.TEST, Cause.REGISTERED))
# Causes of functions that no step leads to: of the loops in these, only those over elements count.
NO_STEP = (Cause.UNREACHED, Cause.NEVER_RUN)


class CallerReview:
    """Reviews the functions of one module."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats) -> None:
        self._analysis = analysis
        self._heats = heats
        self.callers = PackageCallers(analysis, heats)
        self.arguments = PackageArguments(analysis, heats, self.callers)
        self.package = PackageHeats(analysis, heats, self.callers)
        self._hosts = HostCallers(analysis, heats, self.callers, self.package)
        self._placed = PlacedValues(analysis, heats)
        self._reach = Reach(analysis, heats, self.callers)
        self._switches = Switches(analysis, self.callers, self.package)
        self.rates = CalledRates(heats, self.callers)
        self._training = Training(self.callers)
        self.inner = InnerBodies(heats, self.callers, self.package)

    def reviewed(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites that remain once a function's callers are known, with their heat."""
        called = self._by_calls(result, info)
        placed = called.having(self._in_its_place(one, info) for one in called.sites)
        switched = self._switches.reviewed(self._hosts.reviewed(placed, info), info)
        return self._shown(self._placed.reviewed(switched, info), info)

    def _shown(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites with what is known of the calls that lead to them."""
        callers = self.callers.evidence(info)
        return result.having(
            one.showing((*callers, *self._evidence_at(one.node, info))) for one in result.sites
        )

    def _evidence_at(self, node: ast.AST, info: FunctionInfo) -> Iterator[str]:
        """Yield the features of a node of a function: the branches around it, what leads there."""
        place = self.callers.place_of(node, info)
        if place is not None:
            yield from self.callers.evidence_at(place, info)
            yield from self._training.evidence_at(place, info)

    def _in_its_place(self, site: JudgedSite, info: FunctionInfo) -> JudgedSite:
        """Return a site of a function, cold if what holds it is nested and no step reaches that."""
        if not _is_open_inside(site):
            return site
        unreached = self._reach.unreached_inside(site.function, info)
        if unreached is None:
            return site
        return site.heated(_unreached_heat(site.function.rpartition(".")[2], unreached))

    def _is_run_in_steps(self, site: JudgedSite, info: FunctionInfo) -> bool:
        """True if a site is in a function nested in another, and a step runs that."""
        if self.inner.path_to_step(site, info):
            return True
        return _is_open_inside(site) and self._reach.is_reached_inside(site.function, info)

    def _may_run_in_steps(self, site: JudgedSite, info: FunctionInfo) -> bool:
        """True if a site is in a function nested in another, and a step may run that."""
        if self._is_run_in_steps(site, info):
            return True
        return site.is_nested and self._reach.unreached_inside(site.function, info) is None

    def _by_calls(self, result: Judged, info: FunctionInfo) -> Judged:
        heat = self._heats.called(info)
        if heat.cause in DECIDED:
            return result
        unreached = self._reach.unreached(info, heat)
        if unreached is not None:
            cold = _unreached_heat(info.name, unreached)
            runs = (
                self._may_run_in_steps if cold.cause is Cause.UNREACHED else self._is_run_in_steps
            )
            return _cooled(result, cold, info, runs)
        if heat.level >= Level.STEP and heat.cause not in CALLS:
            return result
        nearby = self._outside_set_up(self._heats.calls(info.module).of(info))
        often = any(self.package.sets_up(site) is False for site in nearby)
        asked = heat.level is Level.HOT or heat.cause is Cause.NOTHING
        counts = Cause.SET_UP_CALLS not in self._analysis.ignored
        if counts and not often and asked and self.package.only_set_up(info):
            cold = Heat(Level.COLD, Cause.SET_UP_CALLS, info.name, loops=False)
            return _cooled(result, cold, info, self._is_run_in_steps)
        # The rest of the package is searched only where its own module leaves the question open.
        sites = self._as_called(info) if _have_one_caller(nearby) else None
        if sites is None:
            return result
        there = {site.key for site in result.sites}
        return result.having(site for site in sites if site.key in there)

    def rewarmed(self, result: Judged, found: Interpreted, info: FunctionInfo) -> Judged:
        """Return a helper's sites, judged again if a step or a loop elsewhere leads to it.

        Those of lambdas and nested functions are hot if a step runs these.
        """
        heat = self._heats.called(info)
        if not result.sites:
            return result
        if heat.cause is Cause.GIVEN_TENSORS:
            self.package.warm(info)
            if self._heats.called(info) is not heat:
                result = judge(found, self._heats)
        return self.inner.warmed(result, info.module, info)

    def _outside_set_up(self, calls: list[CallSite]) -> list[CallSite]:
        return [site for site in calls if not self.package.sets_up(site)]

    def _as_called(self, info: FunctionInfo) -> tuple[JudgedSite, ...] | None:
        """Return the sites of a function with what all calls outside set-up pass.

        None if no call is outside set-up, if several functions hold these, which seldom agree, or
        if they show nothing.
        """
        warm = self._outside_set_up(self.callers.of(info))
        if not warm or not _have_one_caller(warm):
            return None
        given = [self.arguments.seen.given_at(info, site) for site in warm]
        names = set(given[0]).intersection(*given)
        values = {name: [one[name] for one in given] for name in names}
        agreed = {name: join_all(all_) for name, all_ in values.items() if UNKNOWN not in all_}
        return sites_given(info, agreed, self._analysis, self._heats)


def _have_one_caller(calls: list[CallSite]) -> bool:
    """True if one function at most holds some calls, beside those at module level."""
    return len({site.caller.key for site in calls if site.caller is not None}) <= 1


def _is_open_inside(site: JudgedSite) -> bool:
    """True for a site in a nested function of which what runs it shows more than its text."""
    return site.is_nested and site.heat.cause in UNDECIDED


def _cooled(
    result: Judged,
    cold: Heat,
    info: FunctionInfo,
    in_steps: Callable[[JudgedSite, FunctionInfo], bool],
) -> Judged:
    """Return the sites of a function that runs seldom, with the heat ``cold``.

    Compiled sites and those that cost nothing are unchanged, and so are sites in loops whose own
    text shows what they go over. Those in nested functions are, too, if these are named like steps,
    which set-up code may return, or if a step runs them, as ``in_steps`` says. Where no step leads
    to the function, only loops over elements count: others are those of an evaluation or a
    demonstration. Where nothing makes what leads there, no loop does.
    """
    return result.having(
        site
        if site.compiled
        or site.heat.costs_nothing
        or _is_nested_step(site)
        or _is_in_result(site, info)
        or in_steps(site, info)
        or (cold.cause is not Cause.NEVER_MADE and _shows_itself(site, cold))
        else site.heated(cold)
        for site in result.sites
    )


def _unreached_heat(name: str, found: Unreached) -> Heat:
    """Return the heat of a function that no step leads to."""
    return Heat(Level.COLD, found.cause, name, loops=False, calls=found.calls)


def _shows_itself(site: JudgedSite, cold: Heat) -> bool:
    """True if the text of the loop around a site shows what it goes over, in spite of a cause."""
    return site.heat.own_text and (cold.cause not in NO_STEP or site.heat.cost is Cost.ELEMENT)


def _is_in_result(site: JudgedSite, info: FunctionInfo) -> bool:
    """True if the site is in a nested function that the function returns."""
    inner = site.function.removeprefix(f"{info.qualname}.<locals>.")
    return inner != site.function and inner.partition(".")[0] in returned(info.node)


@once
def returned(function: ast.AST) -> frozenset[str]:
    """Return the names that may be returned by a function, as ``outer if deep else inner``."""
    values = [n.value for n in walk([function]) if isinstance(n, ast.Return) and n.value]
    return frozenset(n.id for n in walk(values) if isinstance(n, ast.Name))


def _is_nested_step(site: JudgedSite) -> bool:
    """True if the site is in a nested function whose own name says that it runs in each step."""
    named = site.heat.cause is Cause.CONVENTION and site.heat.level >= Level.STEP
    return named and site.is_nested
