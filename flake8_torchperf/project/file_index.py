"""The files in the folders of a project, from one listing per folder.

Each linted file looks up hundreds of paths that an import could name (`torch/nn/Linear.py`), and
most of them are not files.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache

# If a folder changed less than this before it was listed, its names are not cached, because it may
# change again within the same tick of its clock.
SETTLED = 2_000_000_000  # nanoseconds
NO_WORDS: frozenset[str] = frozenset()
# How many folders above a file are searched for its packages.
MAX_PACKAGE_DEPTH = 12
# If the modules of a package hold more bytes than this, the package is not searched for callers,
# because reading the modules takes longer than the rest of a lint.
MAX_TREE = 32_000_000
# If the user names functions that must not wait, a package of up to this size is searched for them.
MAX_NAMED = 128_000_000


class FileIndex:
    """The listings of the folders that are needed while one file is linted."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def holds(self, path: str) -> bool:
        """True if the path is a file; False for a name that no file can have."""
        folder, name = os.path.split(path)
        return name in self._listed(folder) and os.path.isfile(path)

    def _listed(self, folder: str) -> frozenset[str]:
        names = self._names.get(folder)
        if names is None:
            above, name = os.path.split(folder)
            known = self._names.get(above)
            missing = known is not None and name not in known
            names = self._names[folder] = NO_WORDS if missing else _names_in(folder)
        return names


def _names_in(folder: str) -> frozenset[str]:
    try:
        modified = os.stat(folder).st_mtime_ns
        if time.time_ns() - modified < SETTLED:
            return frozenset(os.listdir(folder))
        return _kept_names_in(folder, modified)
    except (OSError, ValueError):
        return NO_WORDS


@lru_cache(maxsize=1024)
def _kept_names_in(folder: str, modified: int) -> frozenset[str]:
    """Return the names in a folder, cached until its modification time changes."""
    return frozenset(os.listdir(folder))


def modules_below(folder: str, most: int = MAX_TREE) -> list[str]:
    """Return the paths of all modules in and below a folder, in order; links are not followed.

    The list is empty if they hold more than ``most`` bytes.
    """
    found: list[str] = []
    total = 0
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name.isidentifier())
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(above, name)
                total += _size(path)
                if total > most:
                    return []
                found.append(path)
    return found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
