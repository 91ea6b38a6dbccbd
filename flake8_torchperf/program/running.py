"""The places of a project that run the functions of a linted module, and those that run these."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.program.flow import Flow
from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.runs import Run, Runs
from flake8_torchperf.project.file_index import is_test_name
from flake8_torchperf.project.text_search import texts_train

if TYPE_CHECKING:
    from flake8_torchperf.program.outline import Body
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.project.resolver import Project


# The most bodies on the way to a function that are looked at.
MAX_ABOVE = 40
# A program that imports more modules of its project than this is not read whole.
MAX_IMPORTED = 100


class Program:
    """Says where bodies are run, for the functions of one project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._linker = Linker(project)
        self._flow = Flow(self._linker, self._search)
        self._units: dict[str, dict[tuple[str, int], int]] = {}
        self._evaluating: dict[Unit, bool] = {}
        self._training: dict[str, bool] = {}

    def unit(self, info: FunctionInfo) -> Unit | None:
        """Return a function as a body of its module; None if the outline does not list it."""
        path = self._path(info.module)
        known = self._units.get(path)
        if known is None:
            bodies = self._linker.outline(path).bodies
            known = self._units[path] = {
                (one.qualname, one.line): number for number, one in enumerate(bodies)
            }
        number = known.get((info.qualname, info.node.lineno))
        return None if number is None else Unit(path, number)

    def inside(self, info: FunctionInfo, name: str) -> Unit | None:
        """Return the body of a qualified name inside a function; None if there isn't just one."""
        path = self._path(info.module)
        bodies = self._linker.outline(path).bodies
        found = [number for number, one in enumerate(bodies) if one.qualname == name]
        return Unit(path, found[0]) if len(found) == 1 else None

    def runs_of(self, info: FunctionInfo) -> Runs:
        """Return the places that run a function, and why there may be others."""
        unit = self.unit(info)
        return Runs((), "its module does not list it") if unit is None else self.runs(unit)

    def outermost(self, unit: Unit) -> Body:
        """Return the body itself, or the one around it that stands in no other function."""
        bodies = self._linker.outline(unit.path).bodies
        body = bodies[unit.number]
        while body.outer > 0:
            body = bodies[body.outer]
        return body

    def runs(self, unit: Unit) -> Runs:
        """Return the places that run a body, and why there may be others."""
        found = self._flow.runs(unit)
        body = self._linker.outline(unit.path).bodies[unit.number]
        private = body.owner < 0 and body.name.startswith("_")
        if found.open or private or self._project.is_searched_whole:
            return found
        return found._replace(open="the project is too large to be searched")

    def only_evaluates(self, info: FunctionInfo) -> bool:
        """True if each program that runs a function takes no training steps.

        False if nothing shows which programs run it. A program is a module whose own level runs
        something, with the modules of the project that it imports through others.
        """
        unit = self.unit(info)
        if unit is None:
            return False
        if unit not in self._evaluating:
            entries = self._entries(unit)
            self._evaluating[unit] = bool(entries) and not any(map(self._trains, entries or ()))
        return self._evaluating[unit]

    def _entries(self, start: Unit) -> set[str] | None:
        """Return the modules whose own level runs a body, through others; None if not all show."""
        found: set[str] = set()
        seen = {start}
        waiting = [start]
        while waiting:
            runs = self.runs(waiting.pop())
            if runs.open or len(seen) > MAX_ABOVE:
                return None
            for run in runs.places:
                above = Unit(run.path, run.body)
                if is_test_name(Path(run.path).stem):
                    continue
                if run.body == 0:
                    found.add(run.path)
                elif above not in seen:
                    seen.add(above)
                    waiting.append(above)
        return found

    def _trains(self, entry: str) -> bool:
        """True if a module, or one that it imports through others, takes training steps."""
        if entry not in self._training:
            self._training[entry] = self._imports_training(entry)
        return self._training[entry]

    def _imports_training(self, entry: str) -> bool:
        """Return what `_trains` does, which keeps it."""
        seen = {entry}
        waiting = [entry]
        texts: list[bytes] = []
        while waiting:
            path = waiting.pop()
            texts.append(self._linker.text(path))
            if texts_train(texts[-1:]):
                return True
            above = self._linker.imported(path) - seen
            seen |= above
            waiting += sorted(above)
            if len(seen) > MAX_IMPORTED:
                return True
        return texts_train(texts)

    def nested_in(self, run: Run) -> Unit | None:
        """Return the function or lambda inside another function that holds a place, if any does."""
        bodies = self._linker.outline(run.path).bodies
        body = bodies[run.body]
        return Unit(run.path, run.body) if body.outer > 0 else None

    def _path(self, module: ModuleMap) -> str:
        if module is self._project.linted or module.path is None:
            return self._linker.linted_path
        return str(module.path.resolve())

    def _search(
        self, word: str, path: str, *, is_attribute: bool = False
    ) -> tuple[str, ...] | None:
        """Return the modules that hold a word and may use what a module defines.

        For an attribute, these may be any modules, unless too many hold the word.
        """
        module = self._project.linted
        if path != self._linker.linted_path:
            name = self._linker.module(path).name
            module = self._project.module(name) or module
        found = self._project.all_modules_that_say(word) if is_attribute else None
        if found is None:
            found = self._project.modules_that_say(word, module)
        if found is None:
            return None
        here = self._linker.linted_path
        kept = [one for one in found if Path(one).suffix == ".py" and one != here]
        return (here, *kept)
