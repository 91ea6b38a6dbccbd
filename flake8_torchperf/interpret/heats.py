"""The heat of a module's functions: by themselves, and by the calls that lead to them.

Enters functions of the linted module; leaves heats, worked out once. Must not know sites.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from flake8_torchperf.interpret import functions
from flake8_torchperf.interpret.parameters import declared_parameters
from flake8_torchperf.interpret.values import Tensor
from flake8_torchperf.sites.called import CalledHeats
from flake8_torchperf.sites.callers import calls_in
from flake8_torchperf.sites.hotness import decided, function_heat
from flake8_torchperf.suspects.modulemap import FunctionInfo

if TYPE_CHECKING:
    from flake8_torchperf.interpret.machine import Machine
    from flake8_torchperf.interpret.unit import Names
    from flake8_torchperf.sites.callers import Calls
    from flake8_torchperf.sites.model import Heat
    from flake8_torchperf.suspects.modulemap import FunctionNode, ModuleMap


def nested_info(node: FunctionNode, outer: str, module: ModuleMap) -> FunctionInfo:
    """A function that stands in another, whose qualified name is ``outer``."""
    return FunctionInfo(node.name, f"{outer}.<locals>.{node.name}", node, None, module)


def nested_heat(info: FunctionInfo, machine: Machine, names: Names) -> Heat:
    """The heat of a function that stands in another, by itself."""
    declared = declared_parameters(info, machine).values()
    given = any(isinstance(value, Tensor) for value in declared)
    return function_heat(info, lambda: given, names.hot, names.cold)


class Heats:
    """What is known of how often functions run; asked again and again, so kept."""

    def __init__(self, machine: Machine, names: Names) -> None:
        self._machine = machine
        self._names = names
        self._own: dict[str, Heat] = {}
        self._settled: dict[str, bool] = {}
        self._calls: dict[str, Calls] = {}
        self._called: dict[str, CalledHeats] = {}

    def own(self, info: FunctionInfo) -> Heat:
        """The heat of a function by its name, its decorators and its parameters."""
        found = self._own.get(info.key)
        if found is None:
            given = partial(functions.given_tensors, info, self._machine)
            found = function_heat(info, given, self._names.hot, self._names.cold)
            self._own[info.key] = found
        return found

    def settled(self, info: FunctionInfo) -> bool:
        """Does nobody who calls it change its heat?"""
        found = self._settled.get(info.key)
        if found is None:
            found = self._settled[info.key] = decided(info, self._names.hot, self._names.cold)
        return found

    def calls(self, module: ModuleMap) -> Calls:
        """The calls in a module."""
        if module.name not in self._calls:
            self._calls[module.name] = calls_in(module)
        return self._calls[module.name]

    def keep(self, module: ModuleMap, calls: Calls) -> None:
        """Take the calls of a module that are known already."""
        self._calls[module.name] = calls

    def called(self, info: FunctionInfo) -> Heat:
        """The heat of a function by itself and by the calls in its module."""
        name = info.module.name
        if name not in self._called:
            calls = self.calls(info.module)
            self._called[name] = CalledHeats(calls, self.own, self.settled)
        return self._called[name].of(info)
