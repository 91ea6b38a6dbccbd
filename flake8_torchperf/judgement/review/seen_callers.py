"""The arguments of calls in other modules, by interpreting the functions that make the calls.

Each caller is interpreted once for all functions of the linted file.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls.summaries import arguments_of, called_at
from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.engine.analysis import EVERY_FUNCTION
from flake8_torchperf.values.values import Function, Partial, Union

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis, SeenCall
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.values import Value

# Callers are interpreted, which takes as long as linting them, so these are limited. For a linted
# file: the functions that are interpreted, and those that are looked up for what they read.
MAX_INTERPRETED = 24
MAX_LOOKED_UP = 12
# For one function: the calls that may show a tensor, of which one is enough, and those that have to
# agree on host values, of which none may be left out; then the callers one above another.
MAX_SHOWING = 3
MAX_AGREEING = 12
MAX_GIVING_ABOVE = 3

# Methods that calls of their object run.
CALLED_UNNAMED = frozenset(("forward", "__call__"))


class SeenCallers:
    """Interprets callers, and keeps the arguments of the calls that they make."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats) -> None:
        self._analysis = analysis
        self._heats = heats
        self._probe: Analysis | None = None
        self._looked_at: set[str] = set()
        # The calls that the interpreted functions make themselves, with the caller.
        self._calls: list[tuple[FunctionInfo, SeenCall]] = []

    def given_at(self, info: FunctionInfo, site: CallSite) -> dict[str, Value]:
        """Return the arguments of the calls of a function in one line."""
        caller = site.caller
        if caller is None or caller.key == info.key:
            return {}
        self.look_at(caller)
        return self.seen_at(info, site)

    def seen_at(self, info: FunctionInfo, site: CallSite) -> dict[str, Value]:
        """Return the arguments of the calls of a function in one line that were seen so far."""
        if site.caller is None:
            return {}
        module = site.caller.module
        seen = self._observed().get(called_at(info, module, site.line))
        return self._unclear_at(info, module.name, site.line) if seen is None else seen

    def _unclear_at(self, info: FunctionInfo, module: str, line: int) -> dict[str, Value]:
        """Return the arguments of the one call in a line that may run a function by its name.

        What is called is unknown there. None are returned if several calls may.
        """
        calls = {} if self._probe is None else self._probe.unclear.get((module, line), {})
        found = [one for one in calls.values() if _may_name(one.node, info)]
        return arguments_of(info, found[0]) if len(found) == 1 else {}

    def given(self, info: FunctionInfo) -> dict[str, Value]:
        """Return the arguments of all calls of a function that were seen so far."""
        return self._observed().get(info.key, {})

    def handing(self, info: FunctionInfo) -> list[tuple[FunctionInfo, SeenCall]]:
        """Return the calls seen so far that pass a function on, with the callers."""
        return [
            (caller, call)
            for caller, call in self._calls
            if any(_runs(value, info) for value in call.given.values())
        ]

    def look_at(self, caller: FunctionInfo) -> None:
        """Interpret a caller, after the functions of its module that give it its arguments."""
        above = self._heats.calls(caller.module).of(caller)
        for site in above:
            if site.caller is not None:
                self.interpret(site.caller)
        self.interpret(caller)

    def is_known(self, info: FunctionInfo) -> bool:
        """True if a function was interpreted, or would be one too many."""
        return info.key in self._looked_at or len(self._looked_at) >= MAX_INTERPRETED

    def interpret(self, info: FunctionInfo, given: dict[str, Value] | None = None) -> None:
        """Interpret a function as all its calls give it, and keep the calls that it makes."""
        if self.is_known(info):
            return
        self._looked_at.add(info.key)
        if self._probe is None:
            self._probe = self._analysis.watching(EVERY_FUNCTION)
        if given:
            self._probe.agreed[info.key] = given
        self._probe.log = []
        interpret_function(info, self._probe)
        self._calls += [(info, call) for call in self._probe.log]

    def _observed(self) -> dict[object, dict[str, Value]]:
        return {} if self._probe is None else self._probe.observed


def _may_name(node: ast.Call, info: FunctionInfo) -> bool:
    """True if a call may be one of a method, by its name; any call may be one of an object."""
    match node.func:
        case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr="remote"):
            return name == info.name  # in another process
        case ast.Attribute(attr=name) if name == info.name:
            return True
    return info.name in CALLED_UNNAMED


def _runs(value: Value, info: FunctionInfo) -> bool:
    """True if a call of the value runs the function."""
    match value:
        case Function(info=found):
            return found.key == info.key
        case Partial(callee=callee):
            return _runs(callee, info)
        case Union(options=options):
            return any(_runs(option, info) for option in options)
    return False
