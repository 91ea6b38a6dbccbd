"""The bodies that something runs, and the classes that something makes.

A class is made where code that runs uses it other than to ask, to annotate or to derive from it, or
makes a class below it. A demonstration of a library module runs nothing that counts. What may be
looked up by its name while the program runs counts as made.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from flake8_torchperf.program.given import ENTRANCES
from flake8_torchperf.program.life.class_uses import ClassUses
from flake8_torchperf.program.life.demonstrations import Demonstrations
from flake8_torchperf.program.life.shadowed import is_defined_again
from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.project.file_index import is_test_path
from flake8_torchperf.project.live_names import is_entered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.runs import Runs
    from flake8_torchperf.project.resolver import Project

# The most bodies and classes above one that are looked at.
MAX_MET = 60
# Modules whose functions other programs load: torch.hub.load calls those of hubconf.py.
ENTERED_MODULES = ("hubconf.py",)
# Classes that other programs make: Triton's server makes those of this name (Python backend).
ENTERED_CLASSES = ("TritonPythonModel",)


class Living:
    """Decides which bodies are run and which classes are made, tests excepted.

    If the project counts as ``closed``, code outside it runs and makes nothing.
    """

    def __init__(
        self,
        project: Project,
        linker: Linker,
        search: Search,
        runs: Callable[[Unit], Runs],
        *,
        closed: bool = False,
    ) -> None:
        self._project = project
        self._linker = linker
        self._runs = runs
        self._closed = closed
        self._shown = Demonstrations(linker, search)
        self._uses = ClassUses(linker, search, self._shown)
        self._known: dict[Unit, bool] = {}
        self._elsewhere: dict[Unit, bool] = {}

    def is_alive(self, unit: Unit) -> bool:
        """True if something may run a body, or make a class, but tests and what is not alive."""
        if unit not in self._known:
            walk = _Walk(self, unit, self._known)
            if walk.is_closed:
                self._known.update(dict.fromkeys(walk.met, False))
            self._known.update(dict.fromkeys(walk.alive, True))
        return self._known.get(unit, True)

    def is_led_by_class(self, start: Unit) -> bool:
        """True if a method of a class that nothing makes leads to a body which is not alive."""
        seen = {start}
        waiting = [start]
        while waiting:
            unit = waiting.pop()
            owner = self.owner(unit)
            if owner is not None and not self.is_alive(owner):
                return True
            above = {Unit(run.path, run.body) for run in self._runs(unit).outside_tests}
            waiting += sorted(above - seen)
            seen |= above
        return False

    def owner(self, unit: Unit) -> Unit | None:
        """Return the class without which nothing runs a body, if there is one."""
        owner = -1 if unit.is_class else self._linker.body(unit).owner
        return Unit(unit.path, owner, is_class=True) if owner >= 0 else None

    def above(self, unit: Unit) -> Iterator[Unit | None]:
        """Yield the bodies that run a body, or what makes a class; None if it is alive by itself.

        A class is made by bodies, and by classes: those below it, and those that hold it.
        """
        if is_test_path(unit.path):
            yield None
        elif unit.is_class:
            if self._may_be_made_elsewhere(unit):
                yield None
            else:
                yield from self._uses.makers(unit)
        elif self._is_whole and is_defined_again(self._linker, unit):
            return
        elif self._may_be_entered(unit):
            yield None
        else:
            for run in self._runs(unit).outside_tests:
                if run.body:
                    yield Unit(run.path, run.body)
                elif not self._shown.holds(run.path, run.line):
                    yield None

    @property
    def _is_whole(self) -> bool:
        """True if the project shows all that runs its private functions."""
        return self._project.program_texts("_", closed=self._closed) is not None

    def may_be_used_elsewhere(self, name: str) -> bool:
        """True if code outside the project may run, or make, something of a name."""
        return self._project.program_texts(name, closed=self._closed) is None

    def _may_be_made_elsewhere(self, klass: Unit) -> bool:
        """True if code of others, a decorator or a look-up by name may make objects of a class."""
        if klass not in self._elsewhere:
            name = self._linker.klass(klass).name
            self._elsewhere[klass] = (
                name in ENTERED_CLASSES
                or self.may_be_used_elsewhere(name)
                or self._linker.has_registry(klass)
                or self._linker.is_looked_up(klass, closed=self._closed)
            )
        return self._elsewhere[klass]

    def _is_run_with(self, owner: Unit, name: str) -> bool:
        """True if a method runs out of sight once its class is made.

        Constructors may be run by ``super``. A name that two classes share stands for the later.
        """
        if self._uses.is_one_of_two(owner):
            return True
        if name not in ENTRANCES:
            return False
        return ENTRANCES[name] == "constructed" or self._has_unseen_objects(owner)

    def _has_unseen_objects(self, klass: Unit) -> bool:
        """True if objects of a class, or of one below it, may be made elsewhere."""
        seen = {klass}
        waiting = [klass]
        while waiting:
            one = waiting.pop()
            if self._may_be_made_elsewhere(one) or len(seen) > MAX_MET:
                return True
            for below in self._uses.makers(one):
                is_new = below is not None and below.is_class and below not in seen
                if is_new and below is not None and one in self._linker.lineage(below):
                    seen.add(below)
                    waiting.append(below)
        return False

    def _may_be_entered(self, unit: Unit) -> bool:
        """True if a body runs without a call that is seen: as an import does, or by its name."""
        name = self._linker.body(unit).name
        if unit.number == 0 or is_entered(self._project, name, closed=self._closed):
            return True
        if PurePath(unit.path).name in ENTERED_MODULES:
            return True
        owner = self.owner(unit)
        if owner is not None and self._is_run_with(owner, name):
            return True
        runs = self._runs(unit)
        if runs.open or runs.is_doubted or (runs.handed and not runs.places):
            return True
        return name not in ENTRANCES and self._linker.is_looked_up(unit, closed=self._closed)


class _Walk:
    """One walk from a body or a class to what is above it, until that shows it to be alive.

    ``met`` holds what was looked at and ``alive`` those of it that are alive; all others are not if
    the walk ``is_closed``: it looked at all that is above them.
    """

    def __init__(self, living: Living, start: Unit, known: dict[Unit, bool]) -> None:
        self._living = living
        self._known = known
        self.met = {start}
        self.alive: set[Unit] = set()
        self._waiting = [start]
        # The units that are alive once one is, and the methods that are looked at once a class is.
        self._led: dict[Unit, list[Unit]] = {}
        self._methods: dict[Unit, list[Unit]] = {}
        while self._waiting and start not in self.alive and len(self.met) <= MAX_MET:
            self._look(self._waiting.pop())
        if len(self.met) > MAX_MET:
            self.alive.add(start)  # as good as known: there is much above it
        self.is_closed = not self._waiting and len(self.met) <= MAX_MET

    def _look(self, unit: Unit) -> None:
        """Look at what is above a body or a class; at the class of a method first."""
        owner = self._living.owner(unit)
        if owner is not None and not self._is_alive(owner):
            if self._known.get(owner) is None:
                self._methods.setdefault(owner, []).append(unit)
                self._meet(owner)
            return
        for one in self._living.above(unit):
            if one is None or self._is_alive(one):
                self._revive(unit)
                return
            if self._known.get(one) is None:
                self._led.setdefault(one, []).append(unit)
                self._meet(one)

    def _is_alive(self, unit: Unit) -> bool:
        return unit in self.alive or self._known.get(unit) is True

    def _meet(self, unit: Unit) -> None:
        if unit not in self.met:
            self.met.add(unit)
            self._waiting.append(unit)

    def _revive(self, unit: Unit) -> None:
        """Note that a unit is alive, and so what it leads to."""
        waiting = [unit]
        while waiting:
            one = waiting.pop()
            if one not in self.alive:
                self.alive.add(one)
                self._waiting += self._methods.pop(one, ())
                waiting += self._led.pop(one, ())
