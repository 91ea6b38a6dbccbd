"""flake8 with and without the plugin: one core, a new process each, in turn.

Run it with the Python of an environment in which flake8-torchperf is installed; ``--before`` names
another one, with the version to compare with.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perf.running import (
    OURS,
    THEIRS,
    Run,
    UsageError,
    at_least_one,
    existing,
    flake8,
    in_turn,
    lines_of_python,
    one_core,
    print_table,
    python_files,
    run,
)

# The most files that one run of flake8 gets: the length of a command line is limited.
_MOST_ARGUMENTS = 2000


@dataclass(frozen=True)
class Cold:
    """The files that are timed, and the plugin or the environment to compare with."""

    paths: Sequence[Path]
    rounds: int
    every: int
    stdin: bool
    against: str | None
    before: Path | None

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="files or trees")
        parser.add_argument("--rounds", type=int, default=5, help="runs of each (default: 5)")
        parser.add_argument("--every", type=int, default=1, metavar="N", help="every n-th file")
        parser.add_argument(
            "--stdin", action="store_true", help="one file on standard input, as editors do"
        )
        parser.add_argument("--against", choices=[THEIRS], help="time this plugin too")
        parser.add_argument(
            "--before", type=Path, metavar="ENV", help="time the torchperf of this environment too"
        )

    def measure(self) -> int:
        """Run each way once to fill the disk's cache, then in turn; print."""
        files = self._files()
        one_core()
        lines = lines_of_python(files)
        print(
            f"{', '.join(map(str, self.paths))}: {len(files)} files, "
            f"{lines} lines, {self.rounds} runs each, one core, in turn"
        )
        ways = self._ways(files if self.every > 1 else self.paths)
        in_turn(ways, 1)
        taken = in_turn(ways, self.rounds)
        print_table(taken, added=self.stdin)
        _print_how_others_compare(taken)
        return 0

    def _files(self) -> list[Path]:
        existing(self.paths)
        at_least_one(rounds=self.rounds, every=self.every)
        if self.stdin and (len(self.paths) > 1 or not self.paths[0].is_file()):
            raise UsageError("--stdin takes one file")
        if self.against and importlib.util.find_spec(self.against) is None:
            raise UsageError(f"{THEIRS} is not installed here: pip install {THEIRS}")
        if self.before and not _python_of(self.before).exists():
            raise UsageError(f"{self.before} is no virtual environment with a bin/python")
        files = python_files(self.paths, self.every)
        if self.every > 1 and len(files) > _MOST_ARGUMENTS:
            raise UsageError(f"{len(files)} files are too many for one command: a larger --every")
        return files

    def _ways(self, paths: Sequence[Path]) -> dict[str, Callable[[], Run]]:
        ways = {
            "flake8": self._way(paths, OURS, THEIRS),
            "flake8 + torchperf": self._way(paths, THEIRS),
        }
        if self.against:
            ways[f"flake8 + {THEIRS}"] = self._way(paths, OURS)
        if self.before:
            python = str(_python_of(self.before))
            ways["flake8 + the one before"] = self._way(paths, THEIRS, python=python)
        return ways

    def _way(
        self, paths: Sequence[Path], *hidden: str, python: str = sys.executable
    ) -> Callable[[], Run]:
        given = [f"--stdin-display-name={paths[0]}", "-"] if self.stdin else [*map(str, paths)]
        # Selecting both plugins' codes leaves flake8's own checks to run and their output out.
        command = flake8("--select=TPF,TOR", *given, hidden=hidden, python=python)
        return partial(run, command, stdin=paths[0].read_bytes() if self.stdin else b"")


def _print_how_others_compare(taken: Mapping[str, Sequence[Run]]) -> None:
    cpu = {name: statistics.median(run.cpu for run in runs) for name, runs in taken.items()}
    first, ours, *others = cpu
    added_by_ours = cpu[ours] - cpu[first]
    for name in others:
        if added_by_ours > 0:
            times = (cpu[name] - cpu[first]) / added_by_ours
            print(f"{name} adds {times:.1f} times the CPU time that torchperf adds")


def _python_of(environment: Path) -> Path:
    return environment.absolute() / "bin" / "python"
