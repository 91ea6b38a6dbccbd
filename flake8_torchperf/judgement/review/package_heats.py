"""The heat of functions by the calls in the whole package that lead to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import is_test_file
from flake8_torchperf.interpreter.stated_types.class_hierarchy import torch_kind
from flake8_torchperf.judgement.frequency.own_heat import SET_UP, UNDECIDED
from flake8_torchperf.judgement.frequency.propagation import called_from, called_heat
from flake8_torchperf.judgement.frequency.reachability import Every, Some
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.program.running import MAX_ON_THE_WAY
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.heat import Call
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import FunctionInfo

# Causes of functions that run beside the loop over steps, or in it where an option says so.
BESIDE_STEPS = (Cause.OUTSIDE_STEPS, Cause.BEFORE_STEPS, Cause.SWITCHED_OFF)
# Causes of cold functions that a call seen elsewhere in the package outweighs.
WARMED = UNDECIDED | {Cause.CONVENTION, Cause.CONVERSION}
CONSTRUCTOR = "__init__"
CACHED_PROPERTY = "functools.cached_property"


class PackageHeats:
    """Decides how often the functions of one module run, by calls in other modules."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats, callers: PackageCallers) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._known: dict[CallSite, bool | None] = {}
        self._set_up = Every(callers.of, lambda _, site: self.sets_up(site), MAX_ON_THE_WAY)
        self._in_steps = Some(callers.leading, self._is_in_steps, MAX_ON_THE_WAY)
        self._in_loops = Some(callers.leading, self._is_in_loops, MAX_ON_THE_WAY)

    def forget(self) -> None:
        """Drop the references back to this object, so that it is freed without a collection."""
        for question in (self._set_up, self._in_steps, self._in_loops):
            question.forget()

    def warm(self, info: FunctionInfo) -> None:
        """Make a function hot if a loop or a step elsewhere in the package calls it."""
        heat = self._heats.called(info)
        if heat.level >= Level.STEP:
            return
        if heat.cause not in WARMED and not self._is_kept_for_step(info):
            return
        if not self._analysis.project.is_searched_whole:
            return  # a partial search of a large package shows too little for the time it takes
        path = self._path(self._in_steps, info)
        if path:
            rate = self._rate(self._in_steps, info)
            self._heats.warm(info, called_heat(info, path, Level.STEP, rate))
        elif heat.cause not in SET_UP:
            path = self._path(self._in_loops, info)
            if path:
                rate = self._rate(self._in_loops, info)
                self._heats.warm(info, called_heat(info, path, Level.COLD, rate))

    def _is_kept_for_step(self, info: FunctionInfo) -> bool:
        """True for a cached property of objects that steps make."""
        if info.owner is None or CACHED_PROPERTY not in info.decorators:
            return False
        made = info.owner.methods.get(CONSTRUCTOR)
        return made is not None and bool(self._in_steps.path(made))

    def _path(self, question: Some, info: FunctionInfo) -> tuple[Call, ...]:
        """Return the calls from a function to one that meets a condition; empty if none does."""
        path = question.path(info)
        last = path[-1].caller if path else None
        # The known calls of the last caller continue the path.
        above = () if last is None else self._heats.called(last).calls
        return (*map(called_from, path), *above)

    def _rate(self, question: Some, info: FunctionInfo) -> str:
        """Return the rate of the last call on the way to a condition, in words of its own."""
        return self._heats.rate_at(question.path(info)[-1])

    def _is_in_steps(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True if a call stands in a step; None if the callers of its caller decide."""
        assert site.caller is not None
        answer = self._heats.in_steps(site)
        if answer is None and self._heats.called(site.caller).around is Level.STEP:
            return True
        return answer

    def _is_in_loops(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True if a call stands in a loop or a step; None if the callers of its caller decide."""
        assert site.caller is not None
        answer = self._heats.of_module(site.caller.module).makes_hot(info, site)
        if answer is None and self._heats.called(site.caller).level >= Level.STEP:
            return True
        return answer

    def only_set_up(self, info: FunctionInfo) -> bool:
        """True if every call that leads to a function, however indirectly, is in set-up code."""
        return self._set_up.of(info)

    def is_set_up(self, site: CallSite) -> bool:
        """True if a call is in set-up code, or in a function that only set-up code calls."""
        answer = self.sets_up(site)
        if answer is None and site.caller is not None:
            return self.only_set_up(site.caller)
        return answer is True

    def sets_up(self, site: CallSite) -> bool | None:
        """True if a call is in code that sets up, saves or shows; None if its caller decides that.

        A convention for the caller's name does not count: other code may call in each step the
        functions that a metric calls at the end.
        """
        if site not in self._known:
            self._known[site] = self._sets_up(site)
        return self._known[site]

    def _sets_up(self, site: CallSite) -> bool | None:
        caller = site.caller
        if self._heats.is_seldom(site):
            return True
        if caller is None:
            return not site.loops
        called = self._heats.called(caller)
        if is_test_file(caller.module):
            return True
        repeated = self._heats.repeats(site)
        if called.level >= Level.STEP or self._heats.repeats_steps(site):
            return False
        if called.cause in BESIDE_STEPS:
            return not repeated
        if caller.name == CONSTRUCTOR and self._made_by_others(caller):
            return None
        if called.cause is Cause.CONVENTION:
            if not called.loops:
                return None  # the name of a caller is no evidence for its callees
            return not repeated
        if called.cause in SET_UP or called.cause is Cause.NAMED_COLD:
            return True
        return False if repeated else None

    def _made_by_others(self, info: FunctionInfo) -> bool:
        """True if the package makes objects of the method's class, which is not one of torch's.

        A layer is made once, but a function may make other objects in each step.
        """
        if info.owner is None or torch_kind(info.owner, self._analysis):
            return False
        return bool(self._callers.of(info))
