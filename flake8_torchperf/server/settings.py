"""The files that configure a folder; a process is replaced when one of them changes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flake8_torchperf.project.files import stamp

if TYPE_CHECKING:
    from collections.abc import Iterable

# Where flake8 and we look for settings, in a folder and in those above it.
SETTINGS_FILES = ("setup.cfg", "tox.ini", ".flake8", "pyproject.toml")


def configuration_files(folder: str) -> tuple[str, ...]:
    """Return the files that may hold a folder's configuration, whether they exist or not."""
    found: list[str] = []
    home = os.path.expanduser("~")
    while True:
        found += (os.path.join(folder, name) for name in SETTINGS_FILES)
        above = os.path.dirname(folder)
        if above == folder or folder == home:
            return tuple(found)
        folder = above


def stamps(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return a stamp of each file, which changes when the file does."""
    return {path: stamp(path) for path in paths}
