"""Whole modules of a project, parsed once and never imported."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.project.answers import record
from flake8_torchperf.project.files import NO_PYTHON, decoded, read_bytes, stamp
from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.project.stores.kept import Kept
from flake8_torchperf.project.stores.module_facts import once_per_module

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.project.resolver import Project

# The bytes of text whose trees stay in memory from one linted file to the next. A tree takes 27
# times its text: 27 MB.
PARSED = 1_000_000
_MODULES: Kept[tuple[str, int, int], ModuleMap] = Kept(PARSED, in_circles=True)


def whole_module(path: str) -> ModuleMap:
    """Return the module in a file; an empty one if the file is not Python."""
    modified, size = stamp(path)
    return _MODULES.made((path, modified, size), size, lambda: _read(path))


def noted_module(path: str, project: Project) -> ModuleMap:
    """Return the linted module, or that in a file of its project, all of which findings depend on.

    The linted text may differ from its file.
    """
    if path == project.linted_path:
        return project.linted
    project.note_whole(path)
    found = whole_module(path)
    record(found.checked)
    return found


def _read(path: str) -> ModuleMap:
    data = read_bytes(path)
    text = ""
    tree = ast.Module([], [])
    try:
        text = decoded(data if isinstance(data, bytes) else b"")
        tree = ast.parse(text)
    except NO_PYTHON:
        pass  # flake8 reports the error when it lints that file
    return read_module(tree, (text,), Path(path))


@once_per_module
def bases_in(module: ModuleMap) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the classes at module level, each with the last names of its bases."""
    return tuple(
        (one.name, tuple(base.rpartition(".")[2] for base in one.bases))
        for one in module.classes.values()
    )
