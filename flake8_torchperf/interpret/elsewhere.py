"""Who calls a function from the other modules of its package, and whether all of them set up.

Enters functions of the linted module; leaves a yes or no. The package's modules are searched for the
function's name, and those that hold it are parsed and asked for calls. Asked only where there is
something to report.
"""

from __future__ import annotations

import ast
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.digest import read_file
from flake8_torchperf.interpret.lineage import torch_kind
from flake8_torchperf.interpret.project import NO_PYTHON, decoded
from flake8_torchperf.interpret.values import ClassValue, External, Function
from flake8_torchperf.sites.callers import Calls, calls_in
from flake8_torchperf.sites.leading import Every
from flake8_torchperf.sites.model import Heat, Level
from flake8_torchperf.sites.places import place_heat
from flake8_torchperf.sites.steps import holds_program, steps_within
from flake8_torchperf.suspects.modulemap import read_module

if TYPE_CHECKING:
    from flake8_torchperf.interpret.heats import Heats
    from flake8_torchperf.interpret.machine import Machine
    from flake8_torchperf.sites.callers import CallSite
    from flake8_torchperf.suspects.modulemap import FunctionInfo, ModuleMap

# A name that more modules hold is anybody's.
MAX_MODULES = 24
# Functions whose callers are looked for, for one linted file.
MAX_ASKED = 60
ELSEWHERE = "which only set-up code of other modules calls"


class Elsewhere:
    """The calls of a whole package, as far as they are asked for."""

    def __init__(self, machine: Machine, heats: Heats) -> None:
        self._machine = machine
        self._heats = heats
        self._modules: dict[str, tuple[ModuleMap, Calls]] = {}
        self._known: dict[str, list[CallSite]] = {}
        self._set_up = Every(self, self._sets_up)

    def cooled(self, info: FunctionInfo) -> Heat | None:
        """The heat of a function that only set-up code calls; None of any other."""
        if self._heats.settled(info) or not self._set_up.of(info):
            return None
        return Heat(Level.COLD, f"in {info.name}, {ELSEWHERE}", loops=steps_within(info.node))

    def of(self, info: FunctionInfo) -> list[CallSite]:
        """The calls in the package that lead to a function, or may; none where that is open."""
        found = self._known.get(info.key)
        if found is None:
            found = self._known[info.key] = self._find(info)
        return found

    def _find(self, info: FunctionInfo) -> list[CallSite]:
        name = info.name
        if name == "__init__" and info.owner is not None:
            name = info.owner.name
        if len(self._known) >= MAX_ASKED or (name.startswith("__") and name.endswith("__")):
            return []
        paths = self._machine.project.modules_that_say(name)
        if len(paths) > MAX_MODULES:
            return []
        found: list[CallSite] = []
        for path in paths:
            module, calls = self._read(path)
            if module.name == info.module.name:
                found += calls.of(info)
            for called, site in calls.outward.get(name, ()):
                if self._leads(called, info, module):
                    found.append(site)
            if name == info.name and self._hands_on(info, module, calls):
                return []
        return found

    def _read(self, path: str) -> tuple[ModuleMap, Calls]:
        linted = self._machine.project.linted
        known = self._modules.get(path)
        if known is None:
            if linted.path is not None and os.path.realpath(linted.path) == os.path.realpath(path):
                known = linted, calls_in(linted)
            else:
                stat = os.stat(path)
                known = _read(path, stat.st_mtime_ns, stat.st_size)
            self._modules[path] = known
        return known

    def _hands_on(self, info: FunctionInfo, module: ModuleMap, calls: Calls) -> bool:
        """Is the function, or one of its name, handed on as a value?"""
        if info.owner is None and module.name != info.module.name:
            if info.name in module.functions or info.name in module.classes:
                return False
            aliases = [n for n, target in module.imports.items() if target.rpartition(".")[2] == info.name]
            return any(alias in calls.values for alias in [*aliases, info.name])
        return info.name in calls.values

    def _leads(self, called: ast.expr, info: FunctionInfo, module: ModuleMap) -> bool:
        """May what is called be this function?"""
        if info.owner is not None and info.name != "__init__":
            return isinstance(called, ast.Attribute)
        if isinstance(called, ast.Attribute) and not isinstance(called.value, (ast.Name, ast.Attribute)):
            return False
        head: ast.expr = called
        while isinstance(head, ast.Attribute):
            head = head.value
        if not isinstance(head, ast.Name):
            return False
        if head.id not in module.imports:
            return isinstance(called, ast.Name)
        makes = info.owner if info.name == "__init__" else None
        match self._machine.external(module.qualify(called)):
            case Function(info=found):
                return found.key == info.key
            case ClassValue(info=klass):
                return makes is not None and klass.key == makes.key
            case External(name=name):
                return name.partition(".")[0] == self._machine.project.top
        return False

    def _sets_up(self, info: FunctionInfo, site: CallSite) -> bool | None:
        answer = self.__sets_up(info, site)
        if os.environ.get("TPDBG"): print(info.qualname, "<-", site.caller and (site.caller.module.name, site.caller.qualname), site.line, answer, site.caller and self._heats.called(site.caller).because)
        return answer

    def __sets_up(self, info: FunctionInfo, site: CallSite) -> bool | None:
        """Does a call stand where things are set up, saved or shown?"""
        caller = site.caller
        if site.seldom or (caller is not None and place_heat(caller.module) is not None):
            return True
        if caller is None or holds_program(caller):
            return not site.loop
        if caller.name == "__init__" and self._made_by_others(caller):
            return None
        called = self._heats.called(caller)
        if called.level >= Level.STEP:
            return False
        if called.level is Level.COLD and (self._heats.settled(caller) or not called.loops):
            return True
        return False if site.loop else None

    def _made_by_others(self, info: FunctionInfo) -> bool:
        """Is it of a class of which the package makes objects, and that is no module?

        A layer is made once; what a function makes for itself, it may make in each step.
        """
        if info.owner is None or torch_kind(info.owner, self._machine):
            return False
        return bool(self.of(info))


@lru_cache(maxsize=16)
def _read(path: str, modified: int, size: int) -> tuple[ModuleMap, Calls]:
    data, _ = read_file(path)
    try:
        text = decoded(data or b"")
        module = read_module(ast.parse(text), (text,), Path(path))
    except NO_PYTHON:
        module = read_module(ast.Module([], []), ("",), Path(path))
    return module, calls_in(module)
