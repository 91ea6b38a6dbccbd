"""Which files lie in the folders of a project: a folder is listed, not asked for file after file.

Most of what an import could name (`torch/nn/Linear.py`) is no file, and for each linted file
hundreds of such paths are looked for.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache

# A folder that changed less than this before it was listed may change again within the same tick
# of its clock: its names are not kept.
SETTLED = 2_000_000_000  # nanoseconds
NONE: frozenset[str] = frozenset()


class FileIndex:
    """The folders looked into while one file is linted."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def holds(self, path: str) -> bool:
        """Is there a file of that path? False for a name that no file can have."""
        folder, name = os.path.split(path)
        return name in self._listed(folder) and os.path.isfile(path)

    def _listed(self, folder: str) -> frozenset[str]:
        names = self._names.get(folder)
        if names is None:
            above, name = os.path.split(folder)
            known = self._names.get(above)
            missing = known is not None and name not in known
            names = self._names[folder] = NONE if missing else _names_in(folder)
        return names


def _names_in(folder: str) -> frozenset[str]:
    try:
        modified = os.stat(folder).st_mtime_ns
        if time.time_ns() - modified < SETTLED:
            return frozenset(os.listdir(folder))
        return _kept_names_in(folder, modified)
    except (OSError, ValueError):
        return NONE


@lru_cache(maxsize=1024)
def _kept_names_in(folder: str, modified: int) -> frozenset[str]:
    """The names, from file to file as long as the folder's time of change is the same."""
    return frozenset(os.listdir(folder))
