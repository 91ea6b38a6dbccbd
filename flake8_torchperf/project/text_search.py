"""The text of all modules of a package: who calls a function names it, so a search finds it.

Enters a package's folder; leaves the paths of modules that hold a word. Must not parse anything.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import NamedTuple

from flake8_torchperf.digest import digest, digest_of_files, modules_below, read_bytes

# A name that more modules hold is anybody's: each of them would have to be parsed.
MOST_MODULES = 24


class TextSearch:
    """The modules below a folder as they were when they were read."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self._read = {path: read_bytes(path) for path in paths}
        self._content: str | None = None
        self._known: dict[str, tuple[str, ...] | None] = {}

    @property
    def content(self) -> str:
        """The digest of all, which a cache asks for again, to know whether anything changed."""
        if self._content is None:
            self._content = digest_of_files(self._read, self._digest)
        return self._content

    def _digest(self, path: str) -> str:
        data = self._read[path]
        return digest(data) if isinstance(data, bytes) else data

    def that_say(self, word: str, near: str) -> tuple[str, ...] | None:
        """The modules that hold a word, in order; None where more than `MOST_MODULES` do.

        Counted are those too in which it is a part of a longer one. The search begins in the folder
        ``near``: what is everywhere is there too.
        """
        if word not in self._known:
            self._known[word] = self._search(word.encode(), near)
        return self._known[word]

    def _search(self, word: bytes, near: str) -> tuple[str, ...] | None:
        around = [path for path in self._read if path.startswith(near)]
        beyond = [path for path in self._read if not path.startswith(near)]
        found: dict[str, bytes] = {}
        for path in (*around, *beyond):
            data = self._read[path]
            if isinstance(data, bytes) and word in data:
                if len(found) == MOST_MODULES:
                    return None
                found[path] = data
        return tuple(path for path in self._read if path in found and _ends(word, found[path]))


def _ends(word: bytes, data: bytes) -> bool:
    """Does a text hold a word that is not the beginning of a longer one?"""
    start = data.find(word)
    while start >= 0:
        end = start + len(word)
        if not (data[end : end + 1].isalnum() or data[end : end + 1] == b"_"):
            return True
        start = data.find(word, end)
    return False


@lru_cache(maxsize=1024)
def is_too_large(folder: str) -> bool:
    """Do the modules below a folder hold too much to be searched, or are there none?"""
    return not modules_below(folder)


# Seconds for which a package is taken not to change.
TRUSTED = 2.0


class _Last(NamedTuple):
    """The package that was searched last: linting goes through one after the other."""

    folder: str
    stamps: list[tuple[int, int]]
    texts: TextSearch
    asked: float


_LAST: list[_Last] = []


def read_texts(folder: str) -> TextSearch:
    """The modules below a folder; read again only when one of them has changed.

    Linting goes through a package file after file: what was asked a moment ago is as it was.
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


def stamp(path: str) -> tuple[int, int]:
    """What changes when a file does: its time and size; of none that can be asked, zeros."""
    try:
        stat = os.stat(path)
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size
