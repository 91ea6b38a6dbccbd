"""The maps of files, read when something is looked up in them and shared by all linted files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.project import files
from flake8_torchperf.project.files import NO_PYTHON, decoded, stamp
from flake8_torchperf.project.lazy_index import read_outline
from flake8_torchperf.project.stores.kept import Kept

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap

# The bytes of text whose maps stay in memory from one linted file to the next. A map takes half
# its text, and 27 times that of the functions and classes that were looked up in it: over
# transformers, six times the text of all, 36 MB. With a third of it, each map is read four times.
MAPPED = 6_000_000
_MAPPED: Kept[tuple[str, int, int], tuple[ModuleMap | None, str]] = Kept(MAPPED, in_circles=True)


def read_file(path: str) -> tuple[ModuleMap | None, str]:
    """Map the file at ``path``, with the digest of its content.

    The map is None if the file cannot be read or is not Python.
    """
    modified, size = stamp(path)
    return _MAPPED.made((path, modified, size), size, lambda: _read_file(path))


def _read_file(path: str) -> tuple[ModuleMap | None, str]:
    data, content = files.read_file(path)
    if data is None:
        return None, content
    try:
        return read_outline(decoded(data), Path(path)), content
    except NO_PYTHON:
        return None, content  # flake8 reports the error when it lints that file
