"""How often a function runs, by the calls in its module that lead to it.

What a call from a loop or a step says beats protocols and conventions; that only set-up code calls
a function beats what its parameters say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.heat import Call, Cause, Heat, Level
from flake8_torchperf.hotness.loop_kinds import step_loops
from flake8_torchperf.hotness.own_heat import SET_UP
from flake8_torchperf.hotness.reachability import Every, Some

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence

    from flake8_torchperf.hotness.call_graph import Calls, CallSite
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# Causes that no call changes: the user's word, a training step, a tracer's or a test's function.
SETTLED = frozenset((
    Cause.NAMED_HOT, Cause.NAMED_COLD, Cause.TEST, Cause.REGISTERED, Cause.RESULT_KEPT,
))  # fmt: skip
# Of these a caller says nothing of the functions that it calls.
SILENT = frozenset((Cause.NAMED_COLD, Cause.TEST, Cause.REGISTERED, Cause.RESULT_KEPT))


class CalledHeats:
    """The heat of functions by themselves and by the calls in their module that lead to them.

    ``own`` is a function's heat by itself, ``around`` says of a loop in a module that it is around
    the loop over steps.
    """

    def __init__(
        self,
        calls: Calls,
        own: Callable[[FunctionInfo], Heat],
        around: Callable[[ast.AST, ModuleMap], bool],
    ) -> None:
        self._calls = calls
        self._own = own
        self._around = around
        self._before_steps = Every(calls, self._runs_before_steps)
        self._set_up = Every(calls, self._sets_up)
        self._seldom = Every(calls, self._runs_seldom)
        self._in_steps = Some(calls, self.in_steps)
        self._hot = Some(calls, self.makes_hot)

    def forget(self) -> None:
        """Let go of what refers back to this, so that it goes with its last user."""
        for question in (self._before_steps, self._set_up, self._seldom):
            question.forget()
        for one in (self._in_steps, self._hot):
            one.forget()

    def of(self, info: FunctionInfo) -> Heat:
        """How often a function runs, and why."""
        heat = self._own(info)
        if heat.cause in SETTLED or heat.level >= Level.STEP:
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
            if question.of(info):
                return Heat(Level.COLD, cause, info.name, loops=False)
        return heat

    def repeats(self, site: CallSite) -> bool:
        """Does a loop repeat a call, and not only one over epochs, around the steps?"""
        if site.caller is None:
            return bool(site.loops)
        module = site.caller.module
        return any(not self._around(loop, module) for loop in site.loops)

    def _made_hot(self, info: FunctionInfo, heat: Heat) -> Heat | None:
        """By the first call from a step, else from a loop; None where none is seen.

        Of a loop it is not known that a round is a step: it may be one file, one layer. So it says
        nothing against a protocol or a convention, nor of what holds the loop over steps itself.
        """
        path = self._in_steps.path(info)
        if path:
            return called_heat(info, path, Level.STEP)
        if heat.cause in SET_UP or heat.cause is Cause.OUTSIDE_STEPS:
            return None
        path = self._hot.path(info)
        return called_heat(info, path, Level.COLD) if path else None

    def in_steps(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Is it a call in a step, or from a function that runs every step?

        None where that is left to what calls the caller.
        """
        if site.seldom or site.caller is None:
            return False
        own = self._own(site.caller)
        if own.cause in SILENT:
            return False
        if site.steps or own.level is Level.STEP:
            return True
        if own.cause is not Cause.OUTSIDE_STEPS:
            return None
        # What stands beside the loop over steps runs once for all of them.
        return not step_loops(site.caller).isdisjoint(map(id, site.loops))

    def makes_hot(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Is it a call from a loop or from a function that runs every step?

        None where that is left to what calls the caller.
        """
        if site.caller is None:
            return bool(site.loops) and not site.seldom
        answer = self.in_steps(info, site)
        if answer is not None:
            return answer
        own = self._own(site.caller)
        if own.cause in SET_UP and not own.loops:
            return None
        # A function that is only known to be given tensors says nothing of those that it calls.
        if self._seldom.of(site.caller) or self._set_up.of(site.caller):
            return None
        return self.repeats(site) or None

    def _sets_up(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Does a call stand where things are set up, saved or shown?

        Of what is private, or in a private module, all calls are in its module, or those elsewhere
        are like them.
        """
        inner = info.module.name.rpartition(".")[2].startswith("_")
        if not (inner or info.name.startswith("_")) or self._calls.are_open(info.name):
            return False
        caller = site.caller
        if caller is None:
            return not site.loops
        own = self._own(caller)
        if own.cause is Cause.CONVENTION:
            return None  # a name says nothing of what is called
        if own.cause in SET_UP or own.cause is Cause.NAMED_COLD:
            return True
        if own.level is Level.STEP or self.repeats(site):
            return False
        return True if own.cause is Cause.OUTSIDE_STEPS else None

    def _runs_seldom(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Is it a call only every so many steps or on the way to an error?"""
        if self._calls.are_open(info.name):
            return False
        if site.seldom or site.caller is None:
            return site.seldom
        return None

    def _runs_before_steps(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Is it a call beside the loop over steps, in the function that holds that loop?

        That says more than the tensors a function is given, also of a public one.
        """
        caller = site.caller
        if caller is None:
            # What a script calls at module level it calls once.
            private = info.name.startswith("_") and not self._calls.are_open(info.name)
            return not site.loops and private
        own = self._own(caller)
        if own.cause is Cause.OUTSIDE_STEPS:
            return not self.in_steps(info, site)
        if own.level is Level.STEP or self.repeats(site):
            return False
        return False if own.cause in SET_UP else None


def called_heat(info: FunctionInfo, path: Sequence[CallSite], around: Level) -> Heat:
    """The heat of a function that calls make hot; ``around`` is what its loops stand in.

    ``path`` leads from its own call to the one that runs often.
    """
    site = path[0]
    calls = tuple(map(_call, path))
    if site.caller is None:
        cause, caller = Cause.CALLED_IN_LOOP, ""
    else:
        cause, caller = Cause.CALLED, site.caller.name
    return Heat(Level.STEP, cause, info.name, caller, site.line, around=around, calls=calls)


def _call(site: CallSite) -> Call:
    if site.caller is None:
        return Call("", "", site.line)
    file = site.caller.module.path
    return Call(site.caller.qualname, "" if file is None else str(file), site.line)
