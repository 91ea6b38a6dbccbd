"""The text of all modules of a package: who calls a function names it, so a search finds it.

Enters a package's folder; leaves the paths of modules that hold a word. Must not parse anything.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache

from flake8_torchperf.digest import digest_of_files, modules_below, read_file


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
        self._known: dict[str, tuple[str, ...]] = {}

    def that_say(self, word: str) -> tuple[str, ...]:
        """The modules that hold a word, be it a part of a longer one."""
        found = self._known.get(word)
        if found is None:
            sought = word.encode()
            found = tuple(path for path, data in self._held.items() if sought in data)
            self._known[word] = found
        return found


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
