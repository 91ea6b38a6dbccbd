"""Run flake8 with the plugin as a user does, in a process of its own: `fork_server` starts it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import fork_server
from environments import clean_environment

_RESULT = re.compile(
    r"(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): (?P<code>[A-Z]\d*\w*) (?P<text>.*)"
)


@dataclass(frozen=True)
class Result:
    """One line of flake8's output; ``line`` and ``column`` count from 1, as printed."""

    path: str
    line: int
    column: int
    code: str
    text: str


@dataclass(frozen=True)
class Run:
    """What flake8 printed, and its exit status."""

    status: int
    output: str
    errors: str

    @property
    def results(self) -> list[Result]:
        rows = [_RESULT.fullmatch(line) for line in self.output.splitlines()]
        assert all(rows), f"not flake8's format:\n{self.output}\n{self.errors}"
        return [
            Result(row["path"], int(row["line"]), int(row["column"]), row["code"], row["text"])
            for row in rows
            if row
        ]

    @property
    def codes(self) -> list[str]:
        return [result.code for result in self.results]


def flake8(
    *arguments: str | Path,
    cwd: Path | None = None,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    python: str | Path = sys.executable,
    isolated: bool = True,
) -> Run:
    """``python -m flake8 ARGUMENTS``; isolated from the repository's configuration unless told."""
    # Elsewhere, what is installed there is to be linted with, not this checkout.
    variables = dict(os.environ) if str(python) == sys.executable else clean_environment()
    command = [str(python), "-m", "flake8", *(["--isolated"] if isolated else [])]
    done = fork_server.run(
        [*command, *arguments],
        cwd=cwd,
        env={**variables, **(environment or {})},
        stdin=(stdin or "").encode(),
    )
    return Run(done.returncode, decoded(done.stdout), decoded(done.stderr))


def decoded(output: bytes) -> str:
    """What a process printed, as text, with Python's line ends."""
    return output.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
