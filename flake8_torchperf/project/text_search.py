"""A text search over all modules of a package, because a caller names the function it calls."""

from __future__ import annotations

import os
import re
import time
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.digest import digest, digest_of_files
from flake8_torchperf.project.answers import (
    OPTION,
    THAT_CALL,
    THAT_SAY,
    TRAINS,
    answer_of_search,
    answer_of_values,
)
from flake8_torchperf.project.file_index import MAX_NAMED, modules_below
from flake8_torchperf.project.files import read_bytes, stamp
from flake8_torchperf.project.option_values import NOT_GIVEN, Given, values_given
from flake8_torchperf.syntax.contract_comments import promises

if TYPE_CHECKING:
    from collections.abc import Collection

# A word in more modules than this is too common, because each of them would have to be parsed.
MOST_MODULES = 24
# After this many searches, the words of all modules are gathered, which takes as long as about
# twenty searches.
SEARCHES = 16
# The calls of a training step, and the definition of a method that takes one for a framework.
_BACKWARD = re.compile(rb"\.(?:backward|manual_backward)\(")
_STEP = re.compile(rb"\.step\(")
_TRAINING_STEP = re.compile(rb"^\s+def training_step\(", re.MULTILINE)
# How many other names an option is followed through.
MAX_RENAMED = 3
# Blanks for all bytes that no word contains; bytes above ASCII are parts of letters.
_SPACES = bytes(
    one if one >= 128 or chr(one).isalnum() or one == ord("_") else ord(" ") for one in range(256)
)


class TextSearch:
    """The texts of the modules below a folder, as they were when they were read."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self._read = {path: read_bytes(path) for path in paths}
        self._data = {path: one for path, one in self._read.items() if isinstance(one, bytes)}
        self._content: str | None = None
        self._known: dict[str, tuple[str, ...] | None] = {}
        # The modules that hold each word, once enough words have been searched.
        self._by_word: dict[bytes, list[str]] | None = None

    @property
    def content(self) -> str:
        """The digest of all modules, by which a cache detects changes."""
        if self._content is None:
            self._content = digest_of_files(self._read, self._digest)
        return self._content

    @cached_property
    def that_promise(self) -> tuple[str, ...]:
        """The modules that may hold a function that must not wait, in order."""
        return tuple(path for path, data in self._data.items() if promises(data))

    @cached_property
    def promises(self) -> str:
        """The digest of the modules in `that_promise`."""
        return digest_of_files(self.that_promise, self._digest)

    @cached_property
    def trains(self) -> bool:
        """True if the text of one of the modules takes training steps."""
        return texts_train(self._data.values())

    def option_values(self, name: str, further: int = MAX_RENAMED) -> Given:
        """Return the values that the modules give an option, also by options of other names.

        Files of tests count for nothing.
        """
        given = self._values_of(name)
        for other in sorted(given.others):
            if not given.whole or not further:
                return NOT_GIVEN
            more = self.option_values(other, further - 1)
            whole = given.whole and more.whole and bool(more.values)
            given = Given(given.values | more.values, whole)
        return given

    def _values_of(self, name: str) -> Given:
        paths = self.that_say(name)
        if paths is None:
            return NOT_GIVEN
        texts = (
            self._data[path].decode("utf-8", "replace")
            for path in paths
            if not os.path.basename(path).startswith("test_")
        )
        return values_given(name, texts)

    def _digest(self, path: str) -> str:
        data = self._read[path]
        return digest(data) if isinstance(data, bytes) else data

    def that_say(self, text: str) -> tuple[str, ...] | None:
        """Return the modules that hold a word, ``.word`` or ``def word``, in order.

        None if more than `MOST_MODULES` hold it.
        """
        if text not in self._known:
            self._known[text] = self._search(text.encode())
        return self._known[text]

    def that_call(self, text: str) -> tuple[str, ...]:
        """Return the modules that may call a word; empty if too many hold it."""
        begins = b"" if text.startswith(".") else rb"(?<!def )\b"
        call = re.compile(begins + re.escape(text.encode()) + rb"\s*\(")
        said = self.that_say(text) or ()
        return tuple(path for path in said if call.search(self._data[path]))

    def answer(self, part: str) -> str:
        """Return the digest of the modules found by a recorded query of a folder."""
        if part.startswith(OPTION):
            return answer_of_values(self.option_values(part.removeprefix(OPTION)))
        if part == TRAINS:
            return "yes" if self.trains else ""
        found = (
            self.that_say(part.removeprefix(THAT_SAY))
            if part.startswith(THAT_SAY)
            else self.that_call(part.removeprefix(THAT_CALL))
        )
        return answer_of_search(found)

    def gather(self) -> None:
        """Gather the words of all modules now, so that forked processes share them."""
        self._words()

    def _search(self, text: bytes) -> tuple[str, ...] | None:
        word = text.lstrip(b".").rpartition(b" ")[2]
        searched = self._by_word is None and len(self._known) < SEARCHES
        found: list[str] = []
        for path in self._data if searched else self._words().get(word, ()):
            if (text == word and not searched) or _holds(self._data[path], text):
                if len(found) == MOST_MODULES:
                    return None
                found.append(path)
        return tuple(found)

    def _words(self) -> dict[bytes, list[str]]:
        if self._by_word is None:
            self._by_word = {}
            for path, data in self._data.items():
                for word in set(data.translate(_SPACES).split()):
                    self._by_word.setdefault(word, []).append(path)
        return self._by_word


def texts_train(texts: Collection[bytes]) -> bool:
    """True if modules call ``backward()`` and ``step()``, or one defines ``training_step``."""
    if any(map(_TRAINING_STEP.search, texts)):
        return True
    return any(map(_BACKWARD.search, texts)) and any(map(_STEP.search, texts))


def _holds(data: bytes, text: bytes) -> bool:
    """True if a text holds a word, or ``.word``, that is not part of a longer one."""
    start = data.find(text)
    while start >= 0:
        end = start + len(text)
        before = b"" if text.startswith(b".") else data[max(start - 1, 0) : start]
        if not (before + data[end : end + 1]).translate(_SPACES).strip():
            return True
        start = data.find(text, end)
    return False


@lru_cache(maxsize=1024)
def is_too_large(folder: str) -> bool:
    """True if the modules below a folder are too large to be searched, or if there are none."""
    return not modules_below(folder)


# Seconds for which a package is assumed not to change.
TRUSTED = 2.0


class _Last(NamedTuple):
    """The last package that was searched; linting handles the packages one after the other."""

    folder: str
    stamps: list[tuple[int, int]]
    texts: TextSearch
    asked: float


_LAST: list[_Last] = []


def read_texts(folder: str) -> TextSearch:
    """Return the modules below a folder; read again only if one of them has changed.

    Linting goes through a package file by file, so a recent result is assumed to be valid still.
    """
    last = _LAST[0] if _LAST and _LAST[0].folder == folder else None
    if last is not None and time.monotonic() - last.asked < TRUSTED:
        return last.texts
    paths = modules_below(folder)
    stamps = [stamp(path) for path in paths]
    if last is not None and last.texts.paths == paths and last.stamps == stamps:
        texts = last.texts
    else:
        texts = TextSearch(paths)
    _LAST[:] = [_Last(folder, stamps, texts, time.monotonic())]
    return texts


def forget() -> None:
    """Drop the result for the package that was searched last, however recent."""
    _LAST.clear()


class Matching(NamedTuple):
    """The modules of a package that a pattern matches, and the digest of all its modules."""

    folder: str
    pattern: str
    paths: tuple[str, ...]
    content: str
    asked: float


_MATCHING: list[Matching] = []


def that_match(folder: str, pattern: str) -> Matching:
    """Return the modules below a folder that a pattern matches.

    Used for names that the user chose, so it also searches packages that are too large to be
    searched for callers.
    """
    last = _MATCHING[0] if _MATCHING else None
    now = time.monotonic()
    known = last is not None and (last.folder, last.pattern) == (folder, pattern)
    if known and last is not None and now - last.asked < TRUSTED:
        return last
    sought = re.compile(pattern.encode())
    found: list[str] = []
    held: dict[str, str] = {}
    for path in modules_below(folder, MAX_NAMED):
        data = read_bytes(path)
        held[path] = digest(data) if isinstance(data, bytes) else data
        if isinstance(data, bytes) and sought.search(data):
            found.append(path)
    content = digest_of_files(held, held.__getitem__)
    matching = Matching(folder, pattern, tuple(found), content, time.monotonic())
    _MATCHING[:] = [matching]
    return matching
