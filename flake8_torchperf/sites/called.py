"""How often a function runs, by the calls in its module that lead to it.

Enters a function, the calls of its module and what is known of their callers; leaves its heat. Must
not know values or rules.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.sites.model import Heat, Level
from flake8_torchperf.sites.steps import ENTRIES, conducts, holds_program, steps_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.sites.callers import Calls, CallSite
    from flake8_torchperf.suspects.modulemap import FunctionInfo

SET_UP = "which only set-up code calls"
SELDOM = "which is called only every so many steps"
ONCE = "which runs before the loop over steps"


def called_heat(
    info: FunctionInfo,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
) -> Heat:
    """The heat of a function by itself and by the calls in its module that lead to it.

    ``own`` is a function's heat by itself, ``settled`` says that its callers change nothing.
    """
    heat = own(info)
    if settled(info):
        return heat
    if heat.level >= Level.STEP:
        return heat
    if _before_loop(info, calls, settled, {info.key}, _holds_steps):
        return Heat(Level.COLD, f"in {info.name}, {ONCE}", loops=False)
    if _before_loop(info, calls, settled, {info.key}, conducts):
        return Heat(Level.COLD, f"in {info.name}, {ONCE}", loops=steps_within(info.node))
    if _before_loop(info, calls, settled, {info.key}, holds_program):
        return Heat(Level.COLD, f"in {info.name}, {ONCE}")
    if _only_set_up(info, calls, own, settled, {info.key}):
        return Heat(Level.COLD, f"in {info.name}, {SET_UP}", loops=False)
    if _only_seldom(info, calls):
        return Heat(Level.COLD, f"in {info.name}, {SELDOM}", loops=False)
    return _made_hot(info, calls, own, settled, {info.key}) or heat


def _made_hot(
    info: FunctionInfo,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
) -> Heat | None:
    """The first call from a loop or from hot code; None where none is seen."""
    for site in calls.of(info):
        caller = site.caller
        if site.seldom or (caller is not None and caller.key in seen):
            continue
        if caller is None:
            if site.loop:
                return Heat(Level.STEP, f"in {info.name}, called in a loop at line {site.line}")
            continue
        stepping = site.loop and holds_program(caller)
        if not stepping and settled(caller) and own(caller).level is Level.COLD:
            continue
        if (
            site.loop
            or _runs_every_step(own(caller))
            or _made_hot(caller, calls, own, settled, seen | {caller.key})
        ):
            called = f"called from `{caller.name}` at line {site.line}"
            return Heat(Level.STEP, f"in {info.name}, {called}")
    return None


def _only_set_up(
    info: FunctionInfo,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
) -> bool:
    """Do all its calls stand where things are set up, saved or shown, outside any loop?

    Of what is private, or in a private module, all calls are in its module, or those elsewhere are
    like them.
    """
    sites = calls.of(info)
    inner = info.module.name.rpartition(".")[2].startswith("_")
    if not sites or not (inner or info.name.startswith("_")) or info.name in calls.loose:
        return False
    outside = [site for site in sites if site.caller is None or site.caller.key not in seen]
    return bool(outside) and all(_sets_up(site, calls, own, settled, seen) for site in outside)


def _only_seldom(info: FunctionInfo, calls: Calls, seen: frozenset[str] = frozenset()) -> bool:
    """Is it seen to be called, and only every so many steps or on the way to an error?"""
    sites = calls.of(info)
    if not sites or info.name in calls.loose or info.key in seen:
        return False
    return all(
        site.seldom
        or (site.caller is not None and _only_seldom(site.caller, calls, seen | {info.key}))
        for site in sites
    )


def _sets_up(
    site: CallSite,
    calls: Calls,
    own: Callable[[FunctionInfo], Heat],
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
) -> bool:
    """Does a call stand in set-up code, or before the loop of a program's main function?"""
    caller = site.caller
    if caller is None or holds_program(caller):
        return not site.loop
    if settled(caller):
        return own(caller).level is Level.COLD
    if site.loop:
        return False
    return _only_set_up(caller, calls, own, settled, seen | {caller.key})


def _before_loop(
    info: FunctionInfo,
    calls: Calls,
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
    begins: Callable[[FunctionInfo], bool],
) -> bool:
    """Is it seen to be called, and only where an entry point has not begun its loop over steps?

    That says more than the tensors it is given, also of a public function. ``begins`` tells the
    entry points: those that hold the loop over steps themselves, so that no loop elsewhere is it;
    parts of pipelines and what generates; or whatever holds a program.
    """
    private = info.name.startswith("_") and info.name not in calls.loose
    outside = [s for s in calls.of(info) if s.caller is None or s.caller.key not in seen]
    return bool(outside) and all(
        _leads_from_entry(site, calls, settled, seen, begins)
        # What a script calls at module level it calls once.
        or (site.caller is None and not site.loop and private and begins is holds_program)
        for site in outside
    )


def _leads_from_entry(
    site: CallSite,
    calls: Calls,
    settled: Callable[[FunctionInfo], bool],
    seen: set[str],
    begins: Callable[[FunctionInfo], bool],
) -> bool:
    caller = site.caller
    if caller is None:
        return False
    if holds_program(caller):
        return not site.loop and begins(caller)
    if site.loop and not _loops_prepare(caller, begins):
        return False
    reached = seen | {caller.key}
    return not settled(caller) and _before_loop(caller, calls, settled, reached, begins)


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


def _runs_every_step(heat: Heat) -> bool:
    """A function that is only known to be given tensors says nothing of those that it calls."""
    return heat.level is Level.STEP
