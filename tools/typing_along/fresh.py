"""The findings of ``torchperf check`` in a text, without a cache: a process for each text."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

# Line and column, both from 1, code and message.
Row: TypeAlias = "tuple[int, int, str, str]"
# Runs a command in a folder with this standard input; returns its output.
Runner: TypeAlias = "Callable[[Sequence[str], Path, bytes], bytes]"
FORMAT = "%(row)d\t%(col)d\t%(code)s\t%(text)s"


def in_new_process(command: Sequence[str], folder: Path, stdin: bytes) -> bytes:
    """Run a command."""
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True).stdout


def check(folder: Path, path: Path, text: str, run: Runner) -> list[Row]:
    """Return our findings in a text under the name of a file in the folder."""
    name = f"--stdin-display-name={os.path.relpath(path, folder)}"
    module = [sys.executable, "-m", "flake8_torchperf.cli.main"]
    command = [*module, "check", "--no-cache", f"--format={FORMAT}", name, "-"]
    said = run(command, folder, text.encode("utf-8")).decode("utf-8")
    rows = (line.split("\t", 3) for line in said.split("\n") if line)
    return sorted(
        (int(row), int(column), code, words)
        for row, column, code, words in rows
        if code.startswith("TPF")
    )
