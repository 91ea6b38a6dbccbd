"""The maps of files, read when something is looked up in them and shared by all linted files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.project import files
from flake8_torchperf.project.files import NO_PYTHON, decoded, stamp
from flake8_torchperf.project.lazy_index import read_outline, text_read
from flake8_torchperf.project.module_index import forget
from flake8_torchperf.project.stores.kept import Kept

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap

# The bytes of text whose trees stay in memory from one linted file to the next, in their maps. A
# map takes half its text, and 27 times that of the functions and classes that were looked up in it.
# Maps of 6 MB of text stand for 1.3 MB over transformers, and for 4.5 MB over vLLM, which takes
# 130 MB; with 1.15 MB, all of vLLM's package stays within 300 MB.
MAPPED = 1_150_000
# A map without any definition takes as much as the trees of this part of its text.
_WITHOUT_TREES = 54
_MAPPED: Kept[tuple[str, int, int], tuple[ModuleMap | None, str]] = Kept(
    MAPPED, lambda found: forget(found[0])
)


def read_file(path: str) -> tuple[ModuleMap | None, str]:
    """Map the file at ``path``, with the digest of its content.

    The map is None if the file cannot be read or is not Python.
    """
    modified, size = stamp(path)
    key, least = (path, modified, size), size // _WITHOUT_TREES
    found = _MAPPED.made(key, least, lambda: _read_file(path))
    if found[0] is not None:
        _MAPPED.weigh(key, least + text_read(found[0]))
    return found


def _read_file(path: str) -> tuple[ModuleMap | None, str]:
    data, content = files.read_file(path)
    if data is None:
        return None, content
    try:
        return read_outline(decoded(data), Path(path)), content
    except NO_PYTHON:
        return None, content  # flake8 reports the error when it lints that file
