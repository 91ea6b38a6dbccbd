"""The project's other modules: found by import name, read and mapped, never imported."""

from __future__ import annotations

import io
import os
import tokenize
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.project import files
from flake8_torchperf.project.answers import (
    ALL,
    OPTION,
    PART,
    PROMISES,
    REST,
    THAT_CALL,
    THAT_SAY,
    TRAINS,
    WHOLE,
    answer_of_search,
    answer_of_values,
    noting,
)
from flake8_torchperf.project.file_index import FileIndex
from flake8_torchperf.project.files import NO_FILE, stamp
from flake8_torchperf.project.lazy_index import read_outline
from flake8_torchperf.project.option_values import NOT_GIVEN, Given
from flake8_torchperf.project.text_search import (
    TextSearch,
    is_too_large,
    read_texts,
    texts_train,
    that_match,
)

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap

# The folders that packages are installed into.
INSTALLED = ("site-packages", "dist-packages")
# The most modules that are read for one linted file.
MAX_MODULES = 400


class Project:
    """Reads the packages that the linted module's own package belongs to, lazily."""

    def __init__(self, module: ModuleMap, reads: dict[str, str] | None = None) -> None:
        self.linted = module
        self._reads = reads  # None if reads are not recorded
        self._root = _root(module)
        self.top = module.name.partition(".")[0] if module.package else ""
        self._modules: dict[str, ModuleMap | None] = {module.name: module} if module.name else {}
        self._read = 0
        self._folders = FileIndex()
        self._texts: TextSearch | None = None
        self._options: dict[str, Given] = {}

    def module(self, name: str) -> ModuleMap | None:
        """Return the map of a module of the same project, or None if there is no such file."""
        if name in self._modules:
            return self._modules[name]
        self._modules[name] = None
        if self._root is None or not name or not self._ours(name) or self._read >= MAX_MODULES:
            return None
        base = os.path.join(self._root, *filter(None, name.split(".")))
        for path in (f"{base}.py", os.path.join(base, "__init__.py")):
            if self._folders.holds(path):
                self._read += 1
                self._modules[name] = self._opened(path)
                break
            self._note(path, NO_FILE)
        return self._modules[name]

    def _opened(self, path: str) -> ModuleMap | None:
        """Map the file at a path, and record a query for its module level, or for all of it."""
        module, content = read_file(path)
        self._note(path, content)
        with noting(self._reads):
            if module is not None and module.parts is not None:
                module.parts.ask(REST)
            else:
                self._note(f"{path}{PART}{ALL}", content)
        return module

    def note_whole(self, path: str) -> None:
        """Record that findings depend on all of a file whose text has been searched."""
        if self._reads is not None and f"{path}{PART}{ALL}" not in self._reads:
            content = _content(path, stamp(path))
            self._note(path, content)
            self._note(f"{path}{PART}{ALL}", content)

    def _note(self, path: str, content: str) -> None:
        if self._reads is not None:
            self._reads[path] = content

    def find(self, qualified: str) -> tuple[ModuleMap, tuple[str, ...]] | None:
        """Return the longest prefix of a dotted name that is a module, and the names after it."""
        parts = qualified.split(".")
        if not self._ours(qualified):
            return None
        for end in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:end]))
            if module is not None:
                return module, tuple(parts[end:])
        return None

    def modules_that_say(self, word: str) -> tuple[str, ...] | None:
        """Return the paths of the modules of the package whose text holds a word.

        The result is empty if there is no package, and None if too many modules hold the word.
        """
        texts = self._searching()
        if texts is None:
            return ()
        found = texts.that_say(word)
        self._note(f"{self._searched()}{PART}{THAT_SAY}{word}", answer_of_search(found))
        return found

    def modules_that_call(self, word: str) -> tuple[str, ...]:
        """Return those of `modules_that_say` that may call the word; empty if too many hold it."""
        texts = self._searching()
        if texts is None:
            return ()
        found = texts.that_call(word)
        self._note(f"{self._searched()}{PART}{THAT_CALL}{word}", answer_of_search(found))
        return found

    def option_values(self, name: str) -> Given:
        """Return the values that the package gives an option; none if it is not searched whole."""
        texts = self._searching() if self.is_searched_whole else None
        if texts is None:
            return NOT_GIVEN
        if name not in self._options:
            self._options[name] = texts.option_values(name)
            self._note(
                f"{self._searched()}{PART}{OPTION}{name}", answer_of_values(self._options[name])
            )
        return self._options[name]

    @cached_property
    def trains(self) -> bool:
        """True if the linted module's package takes training steps, as an application does.

        False for a package that is installed: its functions are called from elsewhere.
        """
        if self._root is not None and os.path.basename(self._root) in INSTALLED:
            return False
        if texts_train(["".join(self.linted.lines).encode("utf-8", "surrogatepass")]):
            return True
        texts = self._searching()
        if texts is None:
            return False
        self._note(f"{self._searched()}{PART}{TRAINS}", "yes" if texts.trains else "")
        return texts.trains

    def modules_that_promise(self) -> tuple[str, ...]:
        """Return the modules of the package that may hold a function that must not wait."""
        texts = self._texts_of_package()
        if texts is None:
            return ()
        if self._reads is not None:
            self._reads[f"{self._searched()}{PROMISES}"] = texts.promises
        return texts.that_promise

    def modules_that_match(self, pattern: str) -> tuple[str, ...]:
        """Return the modules of the package that a pattern matches, even in a large package."""
        folder = self.top_folder
        if not folder:
            return ()
        found = that_match(folder, pattern)
        if self._reads is not None:
            self._reads[f"{folder}{WHOLE}"] = found.content
        return found.paths

    @property
    def reads(self) -> dict[str, str] | None:
        """The paths looked up, with the digests of their contents; None if not recorded."""
        return self._reads

    @property
    def top_folder(self) -> str:
        """The folder of the outermost package; "" for a module outside any package."""
        return os.path.join(self._root, self.top, "") if self._root and self.top else ""

    def texts(self) -> TextSearch | None:
        """Return the text of all modules that are searched; None if there is no package."""
        texts = self._searching()
        if texts is not None:
            self._note(f"{self._searched()}{PART}{ALL}", texts.content)
        return texts

    def _searching(self) -> TextSearch | None:
        """Return the modules that are searched, for queries that are recorded one by one."""
        texts = self._texts_of_package()
        if texts is not None and self._reads is not None:
            self._reads.setdefault(self._searched(), texts.content)
        return texts

    def _texts_of_package(self) -> TextSearch | None:
        if self._texts is None:
            folder = self._searched()
            if not folder:
                return None
            self._texts = read_texts(folder)
        return self._texts

    @property
    def is_searched_whole(self) -> bool:
        """True if all modules of the package are searched for callers.

        In a package that is too large, only the part around the linted module is searched.
        """
        return self._root is not None and self._searched() == os.path.join(self._root, self.top, "")

    def _searched(self) -> str:
        """Return the folder to search: the outermost package that is not too large; "" if none."""
        if self._root is None:
            return ""
        folder = self._root
        for part in self.linted.package.split(".") if self.top else ():
            folder = os.path.join(folder, part)
            if not is_too_large(folder):
                return os.path.join(folder, "")
        return ""

    def _ours(self, name: str) -> bool:
        """True for a module of the linted module's own package, or for a file beside a script."""
        if self._root is None:
            return False
        return name.partition(".")[0] == self.top if self.top else True


def read_file(path: str) -> tuple[ModuleMap | None, str]:
    """Map the file at ``path``, with the digest of its content.

    The map is None if the file cannot be read or is not Python.
    """
    return _read_file(path, stamp(path))


@lru_cache(maxsize=512)
def _read_file(path: str, changed: tuple[int, int]) -> tuple[ModuleMap | None, str]:
    data, content = files.read_file(path)
    if data is None:
        return None, content
    try:
        return read_outline(decoded(data), Path(path)), content
    except NO_PYTHON:
        return None, content  # flake8 reports the error when it lints that file


@lru_cache(maxsize=512)
def _content(path: str, changed: tuple[int, int]) -> str:
    """Return the digest of a file, cached from one linted file to the next."""
    return files.read_file(path)[1]


# The errors of decoding or parsing a text that is not Python.
NO_PYTHON = (SyntaxError, ValueError, LookupError, RecursionError, MemoryError)


def decoded(data: bytes) -> str:
    """Return the text of a module, every line ending in ``\\n``. Raises one of `NO_PYTHON`."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines as Python counts them: form feeds and Unicode separators end no line."""
    return tuple(io.StringIO(text, newline="").readlines())


def _root(module: ModuleMap) -> str | None:
    """Return the folder that absolute imports of the linted module's project start from."""
    if module.path is None:
        return None
    folder = module.path.resolve().parent
    for _ in module.package.split(".") if module.package else ():
        folder = folder.parent
    return str(folder)
