"""The text of all modules of a package: who calls a function names it, so a search finds it.

Enters a package's folder; leaves the paths of modules that hold a word. Must not parse anything.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache

from flake8_torchperf.digest import digest_of_files, modules_below, read_file

# A name that more modules hold is anybody's: each of them would have to be parsed.
MAX_MODULES = 24


class Texts:
    """The modules below a folder as they were when they were read."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._held: dict[str, bytes] = {}
        digests: dict[str, str] = {}
        for path in paths:
            data, digests[path] = read_file(path)
            if data is not None:
                self._held[path] = data
        # What a cache asks for again, to know whether anything here changed.
        self.content = digest_of_files(paths, digests.__getitem__)
        self._known: dict[str, tuple[str, ...] | None] = {}

    def that_say(self, word: str, near: str) -> tuple[str, ...] | None:
        """The modules that hold a word, in order; None where more than `MAX_MODULES` do.

        Counted are those too in which it is a part of a longer one. The search begins in the folder
        ``near``: what is everywhere is there too.
        """
        if word not in self._known:
            self._known[word] = self._search(word.encode(), near)
        return self._known[word]

    def _search(self, word: bytes, near: str) -> tuple[str, ...] | None:
        found: set[str] = set()
        for path in sorted(self._held, key=lambda path: not path.startswith(near)):
            if word in self._held[path]:
                if len(found) == MAX_MODULES:
                    return None
                found.add(path)
        return tuple(p for p, data in self._held.items() if p in found and _ends(word, data))


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


def read_texts(folder: str) -> Texts:
    """The modules below a folder; read again only when one of them has changed.

    Linting goes through a package file after file: what was asked a moment ago is as it was.
    """
    now = time.monotonic()
    if folder in _ASKED and now - _ASKED[folder][0] < TRUSTED:
        return _ASKED[folder][1]
    texts = _read_texts(tuple((path, *stamp(path)) for path in modules_below(folder)))
    _ASKED.clear()
    _ASKED[folder] = time.monotonic(), texts
    return texts


# Seconds for which a package is taken not to change, and when it was last asked whether it did.
TRUSTED = 2.0
_ASKED: dict[str, tuple[float, Texts]] = {}


def stamp(path: str) -> tuple[int, int]:
    """What changes when a file does: its time and size; of none that can be asked, zeros."""
    try:
        stat = os.stat(path)
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=1)  # linting goes through one package after the other
def _read_texts(stamps: tuple[tuple[str, int, int], ...]) -> Texts:
    return Texts(tuple(path for path, _, _ in stamps))
