"""Run ``torchperf`` with a terminal for its output, as a person does."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from flake8_run import Run
from hangs import HANG


def on_terminal(*arguments: str, cwd: Path) -> Run:
    """``torchperf ARGUMENTS``; the terminal's text stands in ``output``, errors apart."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "flake8_torchperf.cli.main", *arguments]
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE
    ) as started:
        os.close(theirs)
        parts = []
        while part := _read(ours):
            parts.append(part)
        assert started.stderr is not None
        errors = started.stderr.read().decode()
        status = started.wait(timeout=HANG)
    os.close(ours)
    return Run(status, b"".join(parts).decode().replace("\r\n", "\n"), errors)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so where the other end was closed
        return b""
