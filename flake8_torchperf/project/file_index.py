"""The files in the folders of a project, from one listing per folder.

Each linted file looks up hundreds of paths that an import could name (`torch/nn/Linear.py`), and
most of them are not files.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# If a folder changed less than this before it was listed, its names are not cached, because it may
# change again within the same tick of its clock.
SETTLED = 2_000_000_000  # nanoseconds
NO_WORDS: frozenset[str] = frozenset()
INIT = "__init__.py"
# The folders of installed packages.
SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})
# Folders that hold copies of modules or the modules of others, unless they are packages.
LEFT_OUT = SITE_FOLDERS | {"build", "dist", "node_modules", "__pycache__"}
# The file at the top of a virtual environment.
VENV_FILE = "pyvenv.cfg"
# The most files below a folder whose modules are searched; more are data, and listing them is slow.
MAX_FILES = 50_000
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

    def holds_named(self, path: str) -> bool:
        """True if the path, without suffix, is a module or a folder with an ``__init__.py``."""
        return self.holds(f"{path}.py") or self.holds(os.path.join(path, INIT))

    def holds_module(self, path: str) -> bool:
        """True if the path, without suffix, is a module, or a folder with modules in or below it.

        Only the folders directly below it are searched.
        """
        if self.holds_named(path):
            return True
        names = self._listed(path)
        if any(name.endswith(".py") for name in names):
            return True
        below = (os.path.join(path, name) for name in sorted(names) if name.isidentifier())
        return any(name.endswith(".py") for folder in below for name in self._listed(folder))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in order."""
        return sorted(self._listed(folder))

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


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and each one above it, up to the root of the file system."""
    above = os.path.dirname(folder)
    while folder and above != folder:
        yield folder
        folder, above = above, os.path.dirname(above)
    if folder:
        yield folder


def modules_below(folder: str, most: int = MAX_TREE) -> list[str]:
    """Return the paths of all modules in and below a folder; see `files_below`."""
    return files_below(folder, (".py",), most)


def files_below(
    folder: str, endings: tuple[str, ...], most: int, largest: int | None = None
) -> list[str]:
    """Return the paths of files in and below a folder, in order; links are not followed.

    Hidden folders, virtual environments and `LEFT_OUT` are left out, and so are files of more than
    ``largest`` bytes. The list is empty if the others hold more than ``most`` bytes, or if there
    are more than `MAX_FILES` files of any kind.
    """
    found: list[str] = []
    total = files = 0
    top = folder.rstrip(os.sep)
    for above, folders, names in os.walk(folder):
        if above.rstrip(os.sep) != top and _is_left_out(above, names):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += len(names)
        if files > MAX_FILES:
            return []
        for name in sorted(names):
            if name.endswith(endings):
                path = os.path.join(above, name)
                size = _size(path)
                if largest is not None and size > largest:
                    continue
                total += size
                if total > most:
                    return []
                found.append(path)
    return found


def _is_left_out(folder: str, names: list[str]) -> bool:
    return VENV_FILE in names or (os.path.basename(folder) in LEFT_OUT and INIT not in names)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def is_test_name(name: str) -> bool:
    """True if pytest collects a module of this name."""
    return name.startswith("test_") or name.endswith("_test") or name == "conftest"


def is_test_path(path: str) -> bool:
    """True if pytest collects a file of this name."""
    return is_test_name(os.path.splitext(os.path.basename(path))[0])
