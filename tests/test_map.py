"""The map in the interpreter's package names rooms and modules that are there."""

from __future__ import annotations

import re
from pathlib import Path

import flake8_torchperf.absint as package


def test_the_map_of_the_interpreter_names_modules_that_are_there() -> None:
    named = re.findall(r"`(\w+)`", package.__doc__ or "")
    (folder,) = map(Path, package.__path__)
    modules = {path.stem for path in folder.rglob("*.py")}
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert rooms
    assert rooms <= set(named) <= modules | rooms
    assert len(set(named)) == len(named)
