"""A review of functions by the calls in their whole package.

The calls may show that only set-up code runs a function, or that the function is given no tensor.
The callers, in any module, are interpreted to learn the arguments that they pass.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.calls.filled_parameters import fill_as_called
from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.judgement.frequency.propagation import CALLS
from flake8_torchperf.judgement.heat import Cost, Heat, Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.judgement.judged_site import Judged
from flake8_torchperf.judgement.review.host_callers import HostCallers
from flake8_torchperf.judgement.review.lambdas import Lambdas
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
    from flake8_torchperf.values.values import Value

# Causes that no call in the package changes.
DECIDED = frozenset((Cause.NAMED_HOT, Cause.NAMED_COLD, Cause.TEST, Cause.REGISTERED))
# Causes of functions that no step leads to: of the loops in these, only those over elements count.
NO_STEP = (Cause.UNREACHED, Cause.NEVER_RUN)
# Causes of nested functions that what runs them outweighs.
OPEN_INSIDE = (Cause.GIVEN_TENSORS, Cause.NOTHING)
# A call, and whether it is set-up; None if its caller decides that.
_Judged: TypeAlias = "tuple[CallSite, bool | None]"
# The most callers of a function that are interpreted to learn the arguments that they pass.
MAX_CALLERS = 1


class CallerReview:
    """Reviews the functions of one module."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats) -> None:
        self._analysis = analysis
        self._heats = heats
        self.callers = PackageCallers(analysis, heats)
        self.arguments = PackageArguments(analysis, heats, self.callers)
        self._hosts = HostCallers(analysis, heats, self.callers)
        self._placed = PlacedValues(analysis, heats)
        self._reach = Reach(analysis, heats, self.callers)
        self._switches = Switches(analysis, self.callers)
        self._training = Training(self.callers)
        self.package = PackageHeats(analysis, heats, self.callers)
        self.lambdas = Lambdas(heats, self.callers, self.package)

    def reviewed(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites that remain once a function's callers are known, with their heat."""
        called = self._inside(self._by_calls(result, info), info)
        hosts = self._hosts.reviewed(called, info, self.package.is_set_up)
        switched = self._switches.reviewed(hosts, info, self.package.is_set_up)
        return self._shown(self._placed.reviewed(switched, info), info)

    def _shown(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites with what is known of the calls that lead to them."""
        callers = self.callers.evidence(info)
        sites = (
            one.showing((*callers, *self._evidence_at(one.node, info))) for one in result.sites
        )
        return replace(result, sites=tuple(sites))

    def _evidence_at(self, node: ast.AST, info: FunctionInfo) -> Iterator[str]:
        """Yield the features of a node of a function: the branches around it, what leads there."""
        place = self.callers.place_of(node, info)
        if place is not None:
            yield from self.callers.evidence_at(place, info)
            yield from self._training.evidence_at(place, info)

    def _inside(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites, those cold that are in a nested function which no step reaches."""
        sites = tuple(self._in_its_place(one, info) for one in result.sites)
        unchanged = all(map(is_, sites, result.sites))  # what is the same is not reported again
        return result if unchanged else replace(result, sites=sites)

    def _in_its_place(self, site: JudgedSite, info: FunctionInfo) -> JudgedSite:
        """Return a site of a function, cold if what holds it is nested and no step reaches that."""
        if ".<locals>." not in site.function or site.heat.cause not in OPEN_INSIDE:
            return site
        unreached = self._reach.unreached_inside(site.function, info)
        if unreached is None:
            return site
        return replace(site, heat=_unreached_heat(site.function.rpartition(".")[2], unreached))

    def _is_run_in_steps(self, site: JudgedSite, info: FunctionInfo) -> bool:
        """True if a site is in a function nested in another, and a step runs that."""
        unit = self.lambdas.unit(site.node, info.module, info)
        if unit is not None and self.lambdas.calls_in_steps(unit):
            return True
        nested = ".<locals>." in site.function and site.heat.cause in OPEN_INSIDE
        return nested and self._reach.is_reached_inside(site.function, info)

    def _by_calls(self, result: Judged, info: FunctionInfo) -> Judged:
        heat = self._heats.called(info)
        if heat.cause in DECIDED:
            return result
        unreached = self._reach.unreached(info, heat)
        if unreached is not None:
            cold = _unreached_heat(info.name, unreached)
            return _cooled(result, cold, info, self._is_run_in_steps)
        if heat.level >= Level.STEP and heat.cause not in CALLS:
            return result
        nearby = self._judged(self._heats.calls(info.module).of(info))
        often = any(answer is False for _, answer in nearby)
        asked = heat.level is Level.HOT or heat.cause is Cause.NOTHING
        counts = Cause.SET_UP_CALLS not in self._analysis.ignored
        if counts and not often and asked and self.package.only_set_up(info):
            cold = Heat(Level.COLD, Cause.SET_UP_CALLS, info.name, loops=False)
            return _cooled(result, cold, info, self._is_run_in_steps)
        # The rest of the package is searched only where its own module leaves the question open.
        probe = self._watch(info) if len(_callers(nearby)) <= MAX_CALLERS else None
        if probe is None:
            return result
        called = judge(interpret_function(info, probe), self._heats)
        there = {(id(site.node), site.kind) for site in result.sites}
        sites = [site for site in called.sites if (id(site.node), site.kind) in there]
        return replace(result, sites=tuple(sites))

    def rewarmed(self, result: Judged, found: Interpreted, info: FunctionInfo) -> Judged:
        """Return a helper's sites, judged again if a step or a loop elsewhere leads to it.

        Those of lambdas are hot if a step runs the lambda.
        """
        heat = self._heats.called(info)
        if not result.sites:
            return result
        if heat.cause is Cause.GIVEN_TENSORS:
            self.package.warm(info)
            if self._heats.called(info) is not heat:
                result = judge(found, self._heats)
        return self.lambdas.warmed(result, info.module, info)

    def _judged(self, calls: list[CallSite]) -> list[_Judged]:
        return [(site, self.package.sets_up(site)) for site in calls]

    def _watch(self, info: FunctionInfo) -> Analysis | None:
        """Return an analysis in which a function has what all calls outside set-up pass.

        None if no call is outside set-up, or if the calls show nothing.
        """
        judged = self._judged(self.callers.of(info))
        warm = [site for site, answer in judged if not answer]
        callers = _callers(judged)
        if not warm or len(callers) > MAX_CALLERS:
            return None
        given = [self.arguments.seen.given_at(info, site) for site in warm]
        names = set(given[0]).intersection(*given)
        agreed = {name: _same([one[name] for one in given]) for name in names}
        if not self._tells(info, agreed):
            return None
        probe = self._analysis.watching(info.key)
        probe.agreed[info.key] = agreed
        return probe

    def _tells(self, info: FunctionInfo, agreed: dict[str, Value]) -> bool:
        """True if the calls show more about a parameter than its declaration does."""
        declared = declared_parameters(info, self._analysis)
        filled = dict(declared)
        fill_as_called(filled, agreed, private=info.name.startswith("_"))
        return filled != declared


def _callers(judged: list[_Judged]) -> dict[str, FunctionInfo]:
    """Return the functions that hold the calls outside set-up code, by their keys."""
    warm = [site.caller for site, answer in judged if not answer]
    return {caller.key: caller for caller in warm if caller is not None}


def _same(values: list[Value]) -> Value:
    """Return a value that covers all values; UNKNOWN if one of them is unknown."""
    return UNKNOWN if UNKNOWN in values else join_all(values)


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
    sites = [
        site
        if site.compiled
        or site.heat.costs_nothing
        or _is_nested_step(site)
        or _is_in_result(site, info)
        or in_steps(site, info)
        or (cold.cause is not Cause.NEVER_MADE and _shows_itself(site, cold))
        else replace(site, heat=cold)
        for site in result.sites
    ]
    return replace(result, sites=tuple(sites))


def _unreached_heat(name: str, found: Unreached) -> Heat:
    """Return the heat of a function that no step leads to."""
    return Heat(Level.COLD, found.cause, name, loops=False, calls=found.calls)


def _shows_itself(site: JudgedSite, cold: Heat) -> bool:
    """True if the text of the loop around a site shows what it goes over, in spite of a cause."""
    return site.heat.own_text and (cold.cause not in NO_STEP or _by_elements(site))


def _by_elements(site: JudgedSite) -> bool:
    """True if a loop over elements repeats the site."""
    return site.heat.cost is Cost.ELEMENT


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
    return named and ".<locals>." in site.function
