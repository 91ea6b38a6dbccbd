"""The functions of an application whose known calls all stand outside its steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.evaluations import samples
from flake8_torchperf.idioms.loop_kinds import STATEMENTS
from flake8_torchperf.idioms.module_roles import is_test_name
from flake8_torchperf.judgement.frequency.own_heat import SET_UP
from flake8_torchperf.judgement.frequency.propagation import CALLS
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.heat import Heat
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.program.linking import Unit
    from flake8_torchperf.project.module_index import FunctionInfo

# The most functions on the way to a function that are looked at; a step may lead to it if there
# are more.
MAX_CALLERS = 40


class Reach:
    """Decides if a step may lead to a function of the linted module."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats, callers: PackageCallers) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._program = callers.program
        self._known: dict[str, bool] = {}

    def unreached(self, info: FunctionInfo, heat: Heat) -> bool:
        """True if the package trains, and every call that leads to a function is outside its steps.

        A function that nothing calls is not unreached, nor is what it leads to: new code has no
        callers yet.
        """
        if Cause.UNREACHED in self._analysis.ignored or not self._is_open(heat):
            return False
        if not self._analysis.project.trains:
            return False
        if info.key not in self._known:
            self._known[info.key] = self._reached(info)
        return not self._known[info.key]

    def _is_open(self, heat: Heat) -> bool:
        """True if a function's heat does not show that a step leads to it."""
        if heat.cause in CALLS:
            return heat.around is Level.COLD
        if heat.cause is Cause.CONVENTION:
            return heat.loops and heat.level is Level.COLD
        return heat.cause in (Cause.GIVEN_TENSORS, Cause.NOTHING)

    def _reached(self, start: FunctionInfo) -> bool:
        """True if a step may lead to a function, through whatever runs it."""
        unit = self._program.unit(start)
        if unit is None or not self._analysis.project.is_searched_whole:
            return True
        seen = {unit}
        waiting: list[tuple[Unit, FunctionInfo]] = [(unit, start)]
        while waiting:
            one, info = waiting.pop()
            found = self._program.runs(one)
            places = [run for run in found.places if not is_test_name(Path(run.path).stem)]
            if found.open or len(seen) > MAX_CALLERS or not places:
                return True  # where nobody runs it yet, or code elsewhere does, that is no evidence
            for run in places:
                site = self._callers.site_at(run)
                nested = self._program.nested_in(run)
                answer = self._in_step(info, site) if nested is None else site.steps or None
                if answer:
                    return True
                caller = site.caller
                if answer is not None or caller is None:
                    continue
                above = nested or self._program.unit(caller)
                if above is None:
                    return True
                if above not in seen:
                    seen.add(above)
                    waiting.append((above, caller))
        return False

    def _in_step(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """True if a call stands in a step; None if the callers of its caller decide."""
        caller = site.caller
        if caller is None:
            return site.steps and not self._heats.is_seldom(site)
        heats = self._heats.of_module(caller.module)
        answer = heats.in_steps(info, site)
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
