"""The functions of each module of a project that code compiled in other modules reaches.

They are found from the texts of the project's folder alone, once for all modules that are linted.
What findings depend on is the answer for their module: a cache asks for it again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.digest import digest_of
from flake8_torchperf.program.running import Program
from flake8_torchperf.project.answers import COMPILED, PART, noting
from flake8_torchperf.project.lazy_index import read_outline
from flake8_torchperf.project.resolver import Project
from flake8_torchperf.project.texts.asked_texts import COMPILING
from flake8_torchperf.project.texts.text_search import read_texts
from flake8_torchperf.project.whole_modules import whole_module
from flake8_torchperf.torch_compile.compile_calls import CompileSettings
from flake8_torchperf.torch_compile.package_reach import Entry, PackageReach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flake8_torchperf.program.life.compiled import Compiled
    from flake8_torchperf.program.linking import Unit
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.project.texts.text_search import TextSearch
    from flake8_torchperf.torch_compile.compiled_code import Compilation

    Reached = Mapping[str, Compilation]

_NOTHING: Reached = {}


class ProjectReach:
    """Finds what compiled code of a project runs, in one module after the other."""

    def __init__(self, texts: TextSearch) -> None:
        self.texts = texts
        self._compiled: dict[Unit, Compiled] = {}
        self._known: dict[str, Reached] = {}
        # The modules that compile, and those that these import.
        self._imported: frozenset[str] = frozenset()
        compiling = texts.that_say(COMPILING)
        if not compiling:
            return
        # A module without its text, so that no module of the project counts as the linted one.
        self._program = Program(Project(read_outline("", Path(compiling[0]))))
        searched = self._program.project.searched_texts()
        if searched is not None and searched.folder == texts.folder:
            self._compiled = {one.unit: one for one in self._program.compiled()}
            homes = {one.by.path for one in self._compiled.values()}
            self._imported = self._program.imported(sorted(homes))

    def forget(self) -> None:
        """Drop the references back to this object, so that it is freed without a collection."""
        if "_program" in vars(self):
            self._program.forget()
        vars(self).clear()

    def of(self, path: str) -> Reached:
        """Return why functions of a module are compiled, by their qualified names."""
        if path not in self._known:
            with noting({}):  # what is read here, the folder answers for
                self._known[path] = self._in_module(path)
        return self._known[path]

    def answer(self, path: str) -> str:
        """Return the digest of what `of` returns."""
        return digest_of(f"{name} {why!r}" for name, why in self.of(path).items())

    def _in_module(self, path: str) -> Reached:
        if path not in self._imported:
            return _NOTHING
        reach = PackageReach(self._program, self._entry_at)
        found = ((info.qualname, reach.compilation(info)) for info in whole_module(path).defined)
        return {name: why for name, why in found if why is not None}

    def _entry_at(self, info: FunctionInfo) -> Entry | None:
        unit = self._program.unit(info)
        found = None if unit is None else self._compiled.get(unit)
        if found is None:
            return None
        settings = CompileSettings(fullgraph=found.fullgraph)
        return Entry(info.qualname, os.path.basename(found.by.path), settings)


# The result for the folder that was asked for last.
_LAST: list[ProjectReach] = []


def reach_in(folder: str) -> ProjectReach:
    """Return what compiled code of the modules below a folder reaches, as their texts are now."""
    texts = read_texts(folder)
    if not _LAST or _LAST[0].texts is not texts:
        for one in _LAST:
            one.forget()
        with noting({}):
            _LAST[:] = [ProjectReach(texts)]
    return _LAST[0]


def reached_in(project: Project) -> Reached:
    """Return why functions of the linted module are compiled elsewhere, by their qualified names.

    Nothing in a project that is too large to be searched.
    """
    texts = project.searched_texts()
    path = project.linted.place
    compiling = project.all_modules_that_say(COMPILING)
    if texts is None or not compiling or not project.is_searched_whole:
        return _NOTHING
    reach = reach_in(texts.folder)
    project.note(f"{texts.folder}{PART}{COMPILED}{path}", reach.answer(path))
    return reach.of(path)
