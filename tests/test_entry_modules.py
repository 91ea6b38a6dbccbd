"""The interpreter's way in can be imported first: tools do so before anything was linted."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENTRIES = ("heats", "machine", "project", "reach", "unit")


@pytest.mark.parametrize("name", ENTRIES)
def test_it_is_imported_by_itself(name: str) -> None:
    command = [sys.executable, "-c", f"import flake8_torchperf.interpret.{name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
