"""The calls in a whole package that lead, or may lead, to a function, as `program/` finds them.

Modules are parsed, never imported. That takes time, so callers are looked for only if there is
something to report.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.host_names import classes_asked_for
from flake8_torchperf.idioms.module_roles import is_test_file
from flake8_torchperf.judgement.frequency.call_graph import CallPlaces, CallSite, narrowed
from flake8_torchperf.judgement.worth.features import (
    CALLERS_ELSEWHERE,
    CALLERS_FOUND,
    CALLERS_KNOWN,
    CALLERS_OPEN,
    IN_BRANCH,
    NO_CALLER,
    REACHED,
    SELDOM,
)
from flake8_torchperf.program.linking import Unit
from flake8_torchperf.project.file_index import is_test_path
from flake8_torchperf.project.whole_modules import noted_module
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.named_types import TENSOR_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.program.runs import Run
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# The most nested functions between a place and the data set that runs it, each run by the next.
MAX_NESTED_RUNS = 3


class PackageCallers:
    """Finds the callers of functions of the linted module, and their callers in turn."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats) -> None:
        self._analysis = analysis
        self._heats = heats
        self.program = heats.program
        self._modules: dict[str, ModuleMap] = {}
        self._sites: dict[tuple[str, int, int], CallSite] = {}
        self._finders: dict[str, CallPlaces] = {}
        self._nodes: dict[str, dict[tuple[int, int], list[ast.AST]]] = {}

    def of(self, info: FunctionInfo) -> list[CallSite]:
        """Return the calls that lead to a function; none if there may be others."""
        runs = self.program.runs_of(info)
        if runs.open:
            return []
        places = list(runs.places) if is_test_file(info.module) else runs.outside_tests
        public = info.owner is not None or not info.name.startswith("_")
        if public and not info.module.package and not self._elsewhere(places, info):
            return []  # programs outside the project may use a script
        return list(map(self.site_at, places))

    def possible(self, info: FunctionInfo) -> list[CallSite] | None:
        """Return every call in the package that may lead to a function, dead bodies excepted.

        None if the function may be called in ways that are not seen.
        """
        runs = self.program.runs_of(info)
        if runs.open or not self._analysis.project.is_searched_whole:
            return None
        return [self._as_given(one) for one in runs.outside_tests if not self.is_dead(one)]

    def _as_given(self, run: Run) -> CallSite:
        """Return a place as the site of a call, which may be one that a data set makes."""
        site = self.site_at(run)
        site.in_data = site.in_data or self._is_in_data(run)
        return site

    def _is_in_data(self, run: Run, left: int = MAX_NESTED_RUNS) -> bool:
        """True if a data set runs what runs at a place, which may be in a lambda that it runs."""
        nested = self.program.nested_in(run)
        if nested is None:
            return self.program.is_in_data(run)
        found = self.program.runs(nested)
        places = found.outside_tests
        return (
            bool(left and places)
            and not found.open
            and all(self._is_in_worker(one) or self._is_in_data(one, left - 1) for one in places)
        )

    def _is_in_worker(self, run: Run) -> bool:
        """True if a method of a data set holds a place, in no function inside it."""
        caller = self.site_at(run).caller
        if caller is None or self.program.nested_in(run) is not None:
            return False
        return self.is_of_data(caller)

    def is_of_data(self, info: FunctionInfo) -> bool:
        """True for a method of a data set, which a loader calls in its workers."""
        return self._heats.own(info).cause is Cause.DATA_WORKER

    def is_dead(self, run: Run) -> bool:
        """True if a place is in a body that nothing runs."""
        return run.body > 0 and self.program.is_dead(Unit(run.path, run.body))

    def leading(self, info: FunctionInfo) -> list[CallSite]:
        """Return calls in functions that lead to a function for certain; there may be others."""
        if self._heats.called(info).cause is Cause.SET_UP_ROOT:
            return []  # a framework calls it once, even if a base class calls it in each step
        runs = self.program.runs_of(info)
        sure = (run for run in runs.outside_tests if run.is_sure)
        found = (self.site_at(narrowed(run, self.site_at)) for run in sure)
        return [site for site in found if site.caller is not None]

    def around(self, info: FunctionInfo) -> list[CallSite]:
        """Return the calls in other modules that may lead to a function."""
        if info.name.startswith("__"):
            return []
        places = self.program.runs_of(info).outside_tests
        return list(map(self.site_at, self._elsewhere(places, info)))

    def _elsewhere(self, places: Iterable[Run], info: FunctionInfo) -> list[Run]:
        """Return those of some places that are in other modules than a function."""
        here = self.program.path_of(info)
        return [run for run in places if run.path != here]

    def naming(self, info: FunctionInfo) -> list[FunctionInfo]:
        """Return the functions of other modules that hand a function on."""
        if info.owner is not None or info.name.startswith("__"):
            return []
        found: dict[str, FunctionInfo] = {}
        for giver in self.program.runs_of(info).handed:
            if giver.path != self.program.path_of(info) and not is_test_path(giver.path):
                body = self.program.outermost(giver)
                caller = self._finder(giver.path).site(body.line, 0).caller
                if caller is not None:
                    found[caller.key] = caller
        return list(found.values())

    def is_used(self, info: FunctionInfo) -> bool:
        """True if the project may run a function: it calls it, hands it on or registers it."""
        runs = self.program.runs_of(info)
        handed = not all(is_test_path(one.path) for one in runs.handed)
        return bool(runs.open or handed or runs.outside_tests)

    def is_run_by_own_program(self, info: FunctionInfo) -> bool:
        """True if the project holds a program that runs a function."""
        unit = self.program.unit(info)
        return unit is not None and self.program.is_run_inside(unit)

    def evidence(self, info: FunctionInfo) -> tuple[str, ...]:
        """Return the features that the callers of a function show."""
        unit = self.program.unit(info)
        # New code, as in an editor, has no callers yet.
        is_old = Cause.NEVER_RUN not in self._analysis.ignored
        if unit is not None and is_old and self.program.is_dead(unit):
            return (NO_CALLER,)
        if unit is not None and self.program.is_led_from_outside(unit):
            return (CALLERS_ELSEWHERE,)
        runs = self.program.runs_of(info)
        found = [CALLERS_OPEN if runs.open else CALLERS_KNOWN]
        if runs.outside_tests and not runs.open:
            found.append(CALLERS_FOUND)
        if any(self.site_at(one).steps for one in runs.outside_tests):
            found.append(REACHED)
        return tuple(found)

    def evidence_at(self, place: CallSite, info: FunctionInfo) -> Iterator[str]:
        """Yield the features of a place in a function: the branches around it."""
        if place.seldom:
            yield SELDOM
        if any(not (holds and _is_of_tensors(test, info.module)) for test, holds in place.tests):
            yield IN_BRANCH

    def place_of(self, node: ast.AST, info: FunctionInfo) -> CallSite | None:
        """Return a node of a function with what stands around it; None for one without a line."""
        if not isinstance(node, (ast.expr, ast.stmt)):
            return None
        return self._finder(self.program.path_of(info)).site(node.lineno, node.col_offset)

    def site_at(self, run: Run) -> CallSite:
        """Return a place that runs a function as the site of a call."""
        key = run.path, run.line, run.column
        if key not in self._sites:
            self._sites[key] = self._finder(run.path).site(run.line, run.column)
        return self._sites[key]

    def nodes_at(self, run: Run) -> list[ast.AST]:
        """Return the nodes that begin at a place in a function, outer ones first."""
        caller = self.site_at(run).caller
        if caller is None:
            return []
        if caller.key not in self._nodes:
            self._nodes[caller.key] = _by_place(caller)
        return self._nodes[caller.key].get((run.line, run.column), [])

    def module_of(self, run: Run) -> ModuleMap:
        """Return the module of a place that runs a function."""
        return self._module(run.path)

    def _finder(self, path: str) -> CallPlaces:
        if path not in self._finders:
            self._finders[path] = CallPlaces(self._module(path), self._analysis.project)
        return self._finders[path]

    def _module(self, path: str) -> ModuleMap:
        """Return a module; one outside the package of the linted one is adopted."""
        known = self._modules.get(path)
        if known is None:
            project = self._analysis.project
            known = self._modules[path] = project.opened(path) or noted_module(path, project)
            if known is not project.linted and not project.is_in_package(path, project.linted):
                project.adopt(known)
        return known


def _by_place(caller: FunctionInfo) -> dict[tuple[int, int], list[ast.AST]]:
    """Return the nodes of a function by the line and column where they begin, outer ones first."""
    found: dict[tuple[int, int], list[ast.AST]] = {}
    for node in walk([caller.node]):
        if isinstance(node, (ast.expr, ast.stmt)):
            found.setdefault((node.lineno, node.col_offset), []).append(node)
    return found


def _is_of_tensors(test: ast.expr, module: ModuleMap) -> bool:
    """True for a test that a value is a tensor: all that may wait for one take its branch."""
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_is_of_tensors(one, module) for one in parts)
        case ast.Call():
            return not TENSOR_CLASSES.isdisjoint(classes_asked_for(test, module.qualify))
    return False
