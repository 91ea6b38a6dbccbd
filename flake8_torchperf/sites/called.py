"""How often a function runs, by the calls in its module that lead to it.

Enters a function, the calls of its module and what is known of their callers; leaves its heat. Must
not know values or rules.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from flake8_torchperf.sites.hotness import MAKING, ends_evaluation
from flake8_torchperf.sites.leading import Every, Some
from flake8_torchperf.sites.model import Heat, Level
from flake8_torchperf.sites.steps import ENTRIES, conducts, holds_program, steps_within, trains

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.sites.callers import Calls, CallSite
    from flake8_torchperf.suspects.modulemap import FunctionInfo

SET_UP = "which only set-up code calls"
SELDOM = "which is called only every so many steps"
ONCE = "which runs before the loop over steps"


class CalledHeats:
    """The heat of functions by themselves and by the calls in their module that lead to them.

    ``own`` is a function's heat by itself, ``settled`` says that its callers change nothing.
    """

    def __init__(
        self,
        calls: Calls,
        own: Callable[[FunctionInfo], Heat],
        settled: Callable[[FunctionInfo], bool],
    ) -> None:
        self._calls = calls
        self._own = own
        self._settled = settled
        self._before_steps = Every(calls, partial(self._leads_from_entry, _holds_steps))
        self._before_parts = Every(calls, partial(self._leads_from_entry, conducts))
        self._before_program = Every(calls, partial(self._leads_from_entry, holds_program))
        self._set_up = Every(calls, self._sets_up)
        self._seldom = Every(calls, self._runs_seldom)
        self._hot = Some(calls, self._makes_hot)

    def of(self, info: FunctionInfo) -> Heat:
        """How often a function runs, and why."""
        heat = self._own(info)
        if self._settled(info) or heat.level >= Level.STEP:
            return heat
        if self._before_steps.of(info):
            return Heat(Level.COLD, f"in {info.name}, {ONCE}", loops=False)
        if self._before_parts.of(info):
            return Heat(Level.COLD, f"in {info.name}, {ONCE}", loops=steps_within(info.node))
        if self._before_program.of(info):
            return Heat(Level.COLD, f"in {info.name}, {ONCE}")
        if self._set_up.of(info):
            return Heat(Level.COLD, f"in {info.name}, {SET_UP}", loops=False)
        if self._seldom.of(info):
            return Heat(Level.COLD, f"in {info.name}, {SELDOM}", loops=False)
        return self._made_hot(info) or heat

    def _made_hot(self, info: FunctionInfo) -> Heat | None:
        """By the first call from a loop or from hot code; None where none is seen."""
        site = self._hot.first(info)
        if site is None:
            return None
        around = self._steps(info, site)
        if site.caller is None:
            called = f"called in a loop at line {site.line}"
        else:
            called = f"called from `{site.caller.name}` at line {site.line}"
        return Heat(Level.STEP, f"in {info.name}, {called}", around=around)

    def _steps(self, info: FunctionInfo, site: CallSite) -> Level:
        """STEP where the calls that lead here begin in a step; COLD where some loop begins them.

        Of the latter it is not known that a round is a step: it may be one file, one layer.
        """
        seen = {info.key}
        called: FunctionInfo | None = info
        while called is not None:
            if site.steps or trains(called):
                return Level.STEP
            caller = site.caller
            if caller is None or caller.key in seen:
                return Level.COLD
            if self._own(caller).level is Level.STEP:
                return Level.STEP
            further = None if site.loop else self._hot.first(caller)
            if further is None:
                return Level.COLD
            seen.add(caller.key)
            called, site = caller, further
        return Level.COLD

    def _makes_hot(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Is it a call from a loop or from a function that runs every step?"""
        caller = site.caller
        if site.seldom or caller is None:
            return site.loop and not site.seldom
        if holds_program(caller) and site.loop and not site.steps and MAKING.match(info.name):
            return False  # one for each case that a program goes through
        stepping = site.loop and holds_program(caller)
        if not stepping and self._settled(caller) and self._own(caller).level is Level.COLD:
            return False
        # A function that is only known to be given tensors says nothing of those that it calls.
        return site.loop or self._own(caller).level is Level.STEP or None

    def _sets_up(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Does a call stand where things are set up, saved or shown, outside any loop?

        Of what is private, or in a private module, all calls are in its module, or those elsewhere
        are like them.
        """
        inner = info.module.name.rpartition(".")[2].startswith("_")
        private = inner or info.name.startswith("_") or _of_callback(info)
        if not private or self._calls.are_open(info.name):
            return False
        caller = site.caller
        if caller is None or holds_program(caller):
            return not site.loop
        if self._settled(caller) or (MAKING.match(caller.name) and not self._calls.of(caller)):
            return self._own(caller).level is Level.COLD
        if ends_evaluation(caller):
            return True
        return False if site.loop else None

    def _runs_seldom(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Is it a call only every so many steps or on the way to an error?"""
        if self._calls.are_open(info.name):
            return False
        if site.seldom or site.caller is None:
            return site.seldom
        return None

    def _leads_from_entry(
        self, begins: Callable[[FunctionInfo], bool], info: FunctionInfo, site: CallSite
    ) -> bool | None:
        """Is it a call where an entry point has not begun its loop over steps?

        That says more than the tensors a function is given, also of a public one. ``begins`` tells
        the entry points: those that hold the loop over steps themselves, so that no loop elsewhere
        is it; parts of pipelines and what generates; or whatever holds a program.
        """
        caller = site.caller
        if caller is None:
            # What a script calls at module level it calls once.
            private = info.name.startswith("_") and not self._calls.are_open(info.name)
            return not site.loop and private and begins is holds_program
        if holds_program(caller):
            return not site.loop and begins(caller)
        if site.loop and not _loops_prepare(caller, begins):
            return False
        return False if self._settled(caller) else None


def _of_callback(info: FunctionInfo) -> bool:
    """A method of a callback: who trains calls its hooks, and those call the rest."""
    return info.owner is not None and any(
        name.rpartition(".")[2].endswith("Callback")
        for name in (info.owner.name, *info.owner.bases)
    )


def _loops_prepare(info: FunctionInfo, begins: Callable[[FunctionInfo], bool]) -> bool:
    """Is no loop of a function that entry points call the one over steps?"""
    if begins is conducts:
        return not steps_within(info.node)
    return begins is _holds_steps


def _holds_steps(info: FunctionInfo) -> bool:
    """Does an entry point hold a loop that may be the one over steps?"""
    if info.name not in ENTRIES:
        return False
    if conducts(info):
        return steps_within(info.node)
    return bool(info.nodes.of_any(ast.For, ast.While))
