"""The interpreter's way in can be imported first: tools do so before anything was linted."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENTRIES = (
    "hotness.function_heat",
    "absint.engine.analysis",
    "project.resolver",
    "absint.driver.selection",
    "absint.driver.function_analysis",
)


@pytest.mark.parametrize("name", ENTRIES)
def test_it_is_imported_by_itself(name: str) -> None:
    command = [sys.executable, "-c", f"import flake8_torchperf.{name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
