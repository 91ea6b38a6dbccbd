"""The map in the interpreter's package names modules that are there."""

from __future__ import annotations

import re
from pathlib import Path

import flake8_torchperf.interpret as package


def test_the_map_of_the_interpreter_names_modules_that_are_there() -> None:
    named = re.findall(r"`(\w+)`", package.__doc__ or "")
    (folder,) = package.__path__
    assert named
    assert {path.stem for path in Path(folder).glob("*.py")}.issuperset(named)
    assert len(set(named)) == len(named)
