"""The map in the interpreter's package names each of its modules, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import flake8_torchperf.interpret as package


def test_the_map_of_the_interpreter_is_complete() -> None:
    named = re.findall(r"`(\w+)`", package.__doc__ or "")
    (folder,) = package.__path__
    modules = [path.stem for path in Path(folder).glob("*.py") if path.stem != "__init__"]
    assert sorted(named) == sorted(modules)
