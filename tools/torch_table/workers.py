"""Rows measured in separate processes, one after the other, and saved as they come.

Takes names and the script that measures them, started with `--worker`; returns a row for each
name. A name that ends its process is noted, and the other names are measured in a new process. The
journal holds the rows of an interrupted run, which the next run continues.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

# As many in a row may end their process before it is taken for a fault of the machine.
LOST_IN_A_ROW = 20
# One may take this long before it counts as lost: the first loads kernels.
SECONDS_EACH = 120
# Where the progress is not shown on a terminal, a line is written this often.
SECONDS_BETWEEN_LINES = 10.0
Row = dict[str, Any]
Run = Callable[[list[str]], Iterator[Row]]
LOST = "the process ended"
ENDED = {"": LOST}


class LostDevice(RuntimeError):
    """No measurement is possible: the machine fails, not the measured operations."""


def gather(names: list[str], run: Run, keep: Callable[[Row], None] = lambda row: None) -> Row:
    """Return the result of every name. After a name that ends its process, a new one continues.

    ``keep`` gets each row as it comes. Raises LostDevice if one process after the other ends
    without a row.
    """
    found: Row = {}
    left = list(names)
    lost = 0
    while left:
        done = 0
        for row in run(left):
            found[row["name"]] = row["seen"]
            keep(row)
            done += 1
        if done < len(left):
            found[left[done]] = ENDED
            keep({"name": left[done], "seen": ENDED})
        lost = lost + 1 if done == 0 else 0
        if lost >= LOST_IN_A_ROW:
            raise LostDevice(f"{lost} processes in a row ended without a row, from {names[0]} on")
        left = left[done + 1 :]
    return found


def process(script: Path, names: list[str], seconds: float = SECONDS_EACH) -> Iterator[Row]:
    """Yield the rows of a worker, until one takes longer than it may or no more come."""
    command = [sys.executable, str(script), "--worker"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("\n".join(names))
        child.stdin.close()
        while True:
            late = threading.Timer(seconds, child.kill)
            late.start()
            line = child.stdout.readline()
            late.cancel()
            if not line.endswith("\n"):
                return
            yield json.loads(line)


def serve(rows: Iterable[tuple[str, Any]]) -> None:
    """In the worker: print one line of JSON with each name and its result."""
    for name, seen in rows:
        print(json.dumps({"name": name, "seen": seen}), flush=True)


class Journal:
    """Rows in a file next to the output of a whole run: first the versions, then row by row."""

    def __init__(self, output: Path, versions: Mapping[str, str]) -> None:
        self._path = output.with_name(f"{output.name}.part")
        self._versions = dict(versions)
        self.rows = self._read()
        self._file: TextIO = self._path.open("w", encoding="utf-8")
        self._write(self._versions)
        for name, seen in self.rows.items():
            self._write({"name": name, "seen": seen})

    def _read(self) -> Row:
        """Return the rows of an earlier run with the same versions, without a torn last line."""
        if not self._path.is_file():
            return {}
        versions, *lines = self._path.read_text(encoding="utf-8").split("\n")[:-1] or [""]
        if versions != json.dumps(self._versions):
            return {}
        rows = (json.loads(line) for line in lines)
        return {row["name"]: row["seen"] for row in rows}

    def keep(self, row: Row) -> None:
        """Write a row at once."""
        self.rows[row["name"]] = row["seen"]
        self._write(row)

    def _write(self, data: Any) -> None:
        self._file.write(json.dumps(data) + "\n")
        self._file.flush()

    def close(self, *, done: bool) -> None:
        """Close the file, and remove it if its rows are all in the output."""
        self._file.close()
        if done:
            self._path.unlink()


class Progress:
    """A display of progress: one line that changes on a terminal, else a line now and then."""

    def __init__(
        self, total: int, out: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total, self._out, self._clock = total, out, clock
        self._done = 0
        self._told = clock() - SECONDS_BETWEEN_LINES

    def tell(self, row: Row) -> None:
        """Count one more name as done."""
        self._done += 1
        last = self._done == self._total
        text = f"{self._done}/{self._total} {row['name']}"
        if self._out.isatty():
            print(f"\r\033[K{text[:100]}", end="\n" if last else "", file=self._out, flush=True)
        elif last or self._clock() - self._told >= SECONDS_BETWEEN_LINES:
            self._told = self._clock()
            print(text, file=self._out, flush=True)


def measured(
    names: list[str],
    script: Path,
    output: Path,
    versions: Mapping[str, str],
    run: Run | None = None,
) -> Row:
    """Return the rows of all names, with those of an interrupted run; rows are saved as they come.

    Raises LostDevice, and leaves the journal for the next run.
    """
    journal = Journal(output, versions)
    left = [name for name in names if name not in journal.rows]
    if len(left) < len(names):
        print(f"{len(names) - len(left)} rows kept from a run that was broken off", file=sys.stderr)
    progress = Progress(len(left), sys.stderr)

    def keep(row: Row) -> None:
        journal.keep(row)
        progress.tell(row)

    done = False
    try:
        gather(left, run or (lambda some: process(script, some)), keep)
        done = True
    finally:
        journal.close(done=done)
    return {name: journal.rows[name] for name in names}
