"""The places of one module that run its own bodies, with no other module read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.program.flow import Flow
from flake8_torchperf.program.linking import Linker
from flake8_torchperf.program.objects import Objects
from flake8_torchperf.project.resolver import Project

if TYPE_CHECKING:
    from flake8_torchperf.program.linking import Unit
    from flake8_torchperf.program.runs import Runs
    from flake8_torchperf.project.module_index import ModuleMap


class Alone:
    """Says where one module runs its bodies; what it imports is taken for another project's."""

    def __init__(self, linker: Linker, path: str) -> None:
        self._path = path
        self._flow = Flow(_OwnNames(linker), self._search)

    def forget(self) -> None:
        """Drop the references back to this object."""
        vars(self).clear()

    def runs(self, unit: Unit) -> Runs:
        """Return the places in the module that run a body, and why there may be others in it."""
        return self._flow.runs(unit)

    def _search(
        self, word: str, path: str, *, is_attribute: bool = False
    ) -> tuple[str, ...] | None:
        """Return the module, but for the definitions of a public method, which others may have."""
        public = word.startswith("def ") and not word.startswith("def _")
        return () if public else (self._path,)


def names_and_objects(module: ModuleMap) -> tuple[Linker, Objects]:
    """Return what names stand for, and the classes of objects, as one module alone shows them."""
    linker = _OwnNames(Linker(Project(module)))
    return linker, Objects(linker, lambda word, path, *, is_attribute=False: (path,))


class _OwnNames(Linker):
    """Resolves the names of modules without the modules that they import from."""

    def __init__(self, linker: Linker) -> None:
        super().__init__(linker.project, linker.modules)

    def is_own(self, dotted: str) -> bool:
        return False

    def is_looked_up(self, unit: Unit, *, closed: bool = False) -> bool:
        return False

    def in_settings(self, section: str) -> list[Unit]:
        return []

    def foreign_bases(self, klass: Unit) -> list[str]:
        return []

    def _imported(self, path: str, source: tuple[int, str, str]) -> Unit | str:
        return self._full(path, source)

    def _dotted(self, dotted: str, left: int) -> Unit | str:
        return dotted
