"""`torchperf check`, with an empty and with a full cache, against flake8 --select TPF.

Run it with the Python of an environment in which flake8-torchperf is installed. All outputs must be
the same, byte for byte.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perf.running import (
    Run,
    at_least_one,
    existing,
    in_turn,
    lines_of_python,
    print_table,
    python_files,
    run,
)

FLAKE8 = [sys.executable, "-m", "flake8", "--isolated", "--select=TPF"]
CHECK = [sys.executable, "-m", "flake8_torchperf.cli.main", "check", "--isolated"]
WITH_FLAKE8, ALONE = "flake8 --select TPF", "check --no-cache"
FIRST, SECOND = "check, first run", "check, second run"


@dataclass(frozen=True)
class Check:
    """The path that is checked, the number of rounds, and of processes."""

    path: Path
    rounds: int
    jobs: int

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument("path", type=Path, metavar="PATH", help="a file or a tree")
        parser.add_argument("--rounds", type=int, default=3, help="rounds of all (default: 3)")
        parser.add_argument("--jobs", type=int, default=2, help="processes of each (default: 2)")

    def measure(self) -> int:
        """Time flake8, and checks without, with an empty and with a full cache, in turn; print."""
        existing([self.path])
        at_least_one(rounds=self.rounds, jobs=self.jobs)
        lines = lines_of_python(python_files([self.path]))
        print(f"{self.path}: {lines} lines, {self.jobs} processes, in turn", flush=True)
        taken: dict[str, list[Run]] = {}
        for _ in range(self.rounds):
            for name, runs in self._one_round().items():
                taken.setdefault(name, []).extend(runs)
        print_table(taken)
        _print_ratios(taken)
        return 0

    def _one_round(self) -> dict[str, list[Run]]:
        options = [f"--jobs={self.jobs}", str(self.path)]
        with tempfile.TemporaryDirectory() as folder:
            remembering = [*CHECK, f"--torchperf-cache-dir={folder}", *options]
            ways: dict[str, Callable[[], Run]] = {
                WITH_FLAKE8: partial(run, [*FLAKE8, *options]),
                ALONE: partial(run, [*CHECK, "--no-torchperf-cache", *options]),
                FIRST: partial(run, remembering),
                SECOND: partial(run, remembering),
            }
            taken = in_turn(ways, 1)
        for name, (one,) in taken.items():
            if one.output != taken[WITH_FLAKE8][0].output:
                raise RuntimeError(f"{name} prints something else than flake8")
        return taken


def _print_ratios(taken: Mapping[str, Sequence[Run]]) -> None:
    """Print how many times as fast each way is, as the median of the ratios within each round."""
    print(f"{'how many times as fast':28}{'CPU':>8}{'wall':>8}")
    for text, slow, fast in (
        ("check --no-cache / flake8", WITH_FLAKE8, ALONE),
        ("first run / flake8", WITH_FLAKE8, FIRST),
        ("second run / first run", FIRST, SECOND),
        ("second run / flake8", WITH_FLAKE8, SECOND),
    ):
        rounds = list(zip(taken[slow], taken[fast], strict=True))
        cpu = statistics.median(one.cpu / other.cpu for one, other in rounds)
        wall = statistics.median(one.wall / other.wall for one, other in rounds)
        print(f"{text:28}{cpu:8.1f}{wall:8.1f}")
