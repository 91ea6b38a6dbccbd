"""Whole modules of a project, parsed once and never imported."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.project.files import read_bytes, stamp
from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.project.resolver import NO_PYTHON, decoded

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ModuleMap

# How many parsed modules stay cached from one linted file to the next.
KEPT_MODULES = 16


def whole_module(path: str) -> ModuleMap:
    """Return the module in a file; an empty one if the file is not Python."""
    return _read(path, *stamp(path))


@lru_cache(maxsize=KEPT_MODULES)
def _read(path: str, modified: int, size: int) -> ModuleMap:
    data = read_bytes(path)
    text = ""
    tree = ast.Module([], [])
    try:
        text = decoded(data if isinstance(data, bytes) else b"")
        tree = ast.parse(text)
    except NO_PYTHON:
        pass  # flake8 reports the error when it lints that file
    return read_module(tree, (text,), Path(path))
