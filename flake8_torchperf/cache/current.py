"""The current answers of modules and folders, for comparison with those that findings rest on."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.cache.reads import answer_read, parts_read
from flake8_torchperf.digest import digest_of, digest_of_files
from flake8_torchperf.idioms.placed_batches import KEPT_LOADERS
from flake8_torchperf.idioms.step_methods import step_methods_in
from flake8_torchperf.program.outlines.asked import NAME, answer, answer_of_name
from flake8_torchperf.program.outlines.store import outline_of_text
from flake8_torchperf.project.answers import (
    BASES,
    COMPILED,
    FACT,
    OUTLINED,
    PROMISES,
    READ_OF,
    STEPS,
    STORED,
    WHOLE,
    answer_of_facts,
)
from flake8_torchperf.project.file_index import MAX_NAMED, modules_below
from flake8_torchperf.project.files import NO_PYTHON, decoded, read_bytes, read_file, stamp
from flake8_torchperf.project.function_facts import FACTS, functions_named
from flake8_torchperf.project.import_roots import (
    EXISTS,
    IS_FOLDER,
    STARTS,
    exists,
    is_folder,
    module_name,
    started,
)
from flake8_torchperf.project.lazy_index import parts_of, read_outline
from flake8_torchperf.project.texts.settings_files import BESIDE_MODULES
from flake8_torchperf.project.texts.text_search import read_texts
from flake8_torchperf.project.whole_modules import bases_in, storing_in, whole_module
from flake8_torchperf.syntax.contract_comments import promises

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from flake8_torchperf.program.outlines.outline import Outline
    from flake8_torchperf.project.answers import Parts
    from flake8_torchperf.project.module_index import ModuleMap

# Facts about functions that are defined above `project/`: they are in `FACTS` if they are imported.
FACTS_ABOVE = (KEPT_LOADERS,)

# Reads the facts of a whole module that findings may depend on, by the question.
_FACTS: dict[str, Callable[[ModuleMap], tuple[object, ...]]] = {
    BASES: bases_in,
    STEPS: step_methods_in,
}


class Current:
    """The contents and answers at one time; files are assumed not to change meanwhile.

    A long-lived process passes the same ``stamped`` each time. It holds the results of reading
    files, with the files' stamps, so that only files that have changed are read again.
    """

    def __init__(self, stamped: dict[str, tuple[tuple[int, int], str]] | None = None) -> None:
        self._stamped = stamped
        self._contents: dict[str, str] = {}
        self._modules: dict[str, CurrentModule] = {}

    def note(self, path: str, content: str) -> None:
        """Remember the digest of a file that was read anyway."""
        self._contents[path] = content

    def content(self, path: str) -> str:
        """Return the digest of a file, or of all modules below a folder."""
        content = self._contents.get(path)
        if content is None:
            if path.endswith(PROMISES):
                below = modules_below(path.removesuffix(PROMISES))
                said = [one for one in below if self._promises(one)]
                content = digest_of_files(said, self.content)
            elif path.endswith(WHOLE):
                below = modules_below(path.removesuffix(WHOLE), MAX_NAMED)
                content = digest_of_files(below, self.content)
            elif path.endswith(EXISTS):
                content = exists(path.removesuffix(EXISTS))
            elif path.endswith(IS_FOLDER):
                content = is_folder(path.removesuffix(IS_FOLDER))
            elif STARTS in path:
                root, _, head = path.partition(STARTS)
                content = started(root, head)
            elif beside := next(filter(path.endswith, BESIDE_MODULES), ""):
                content = BESIDE_MODULES[beside](path.removesuffix(beside)).content
            elif path.endswith(os.sep):
                content = digest_of_files(modules_below(path), self.content)
            else:
                content = self._of_file(path)
            self._contents[path] = content
        return content

    def _of_file(self, path: str) -> str:
        return self._by_stamp(path, path, lambda: read_file(path)[1])

    def _promises(self, path: str) -> str:
        """Return "yes" if a module may hold a function that must not wait, or ""."""

        def read() -> str:
            return "yes" if promises(read_bytes(path)) else ""

        return self._by_stamp(f"{path}{PROMISES}", path, read)

    def _by_stamp(self, key: str, path: str, read: Callable[[], str]) -> str:
        """Return the result of reading a file, which is read again if its stamp has changed."""
        if self._stamped is None:
            return read()
        now = stamp(path)
        then, known = self._stamped.get(key, ((-1, -1), ""))
        if now != then:
            known = read()
            self._stamped[key] = (now, known)
        return known

    def answer(self, path: str, parts: Sequence[str]) -> str:
        """Return the digest of the answers of a module, or a folder, to questions for parts."""
        if path.endswith(os.sep):
            return digest_of(_answer_of_folder(path, part) for part in parts)
        if path not in self._modules:
            self._modules[path] = CurrentModule(path)
        module = self._modules[path]
        try:
            return digest_of(map(module.answer, parts))
        except NO_PYTHON:
            return ""

    def differs(self, reads: Mapping[str, str], paths: Iterable[str]) -> bool:
        """True if one of the changed ``paths`` answers another thing than ``reads`` hold."""
        asked = parts_read(reads)
        return any(
            not asked[path]
            or self.answer(path, asked[path]) != answer_read(reads, path, asked[path])
            for path in paths
        )


def _answer_of_folder(folder: str, part: str) -> str:
    """Return the answer of the modules below a folder to one question."""
    if part.startswith(COMPILED):
        from flake8_torchperf.torch_compile.project_reach import reach_in  # slow to import

        return reach_in(folder).answer(part.removeprefix(COMPILED))
    return read_texts(folder).answer(part)


class CurrentModule:
    """A module as it is now, which answers questions about its parts and its outline."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._answers: dict[str, str] = {}

    @cached_property
    def _data(self) -> bytes:
        data = read_bytes(self._path)
        return data if isinstance(data, bytes) else b""

    @cached_property
    def _text(self) -> str:
        return decoded(self._data)

    @cached_property
    def _parts(self) -> Parts | None:
        return parts_of(self._text)

    @cached_property
    def _outline(self) -> Outline:
        return outline_of_text(self._text)

    @cached_property
    def _map(self) -> ModuleMap:
        return read_outline(self._text, Path(self._path))

    def answer(self, part: str) -> str:
        """Return the answer for one part. Raises one of `NO_PYTHON` if there is none.

        A module that can't be split into parts has no answer but for its outline.
        """
        known = self._answers.get(part)
        if known is None:
            known = self._answers[part] = self._answer(part)
        return known

    def _answer(self, part: str) -> str:
        if part == NAME:
            return answer_of_name(*module_name(Path(self._path), self._text))
        if part in _FACTS:
            return answer_of_facts(_FACTS[part](whole_module(self._path)))
        if part.startswith(STORED):
            names = storing_in(whole_module(self._path), part.removeprefix(STORED))
            return answer_of_facts(names)
        if part.startswith(OUTLINED):
            return answer(self._outline, part, lambda: self._data)
        if self._parts is None:
            raise SyntaxError(self._path)
        if part.startswith(FACT):
            return self._fact(*part.removeprefix(FACT).split(" "))
        if part.startswith(READ_OF):
            name, attribute = part.removeprefix(READ_OF).split(" ")
            klass = self._map.classes.get(name) if self._is_read(name) else None
            return "" if klass is None else answer_of_facts(klass.read_of(attribute))
        return self._parts.answer(part)

    def _fact(self, name: str, function: str, place: str) -> str:
        """Return a fact about a function or method; "" if there is none of that name."""
        if not self._is_read(function):
            return ""
        among = functions_named(self._map, function)[int(place) :]
        return answer_of_facts((FACTS[name](among[0]),)) if among else ""

    def _is_read(self, qualname: str) -> bool:
        """True if the module defines what a name begins with, which is read now."""
        head = qualname.partition(".")[0]
        return head in self._map.classes or head in self._map.functions
