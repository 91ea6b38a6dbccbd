"""Times flake8 with and without the plugin on a tree: one core, a new process each, in turn.

    python benchmarks/cold.py PATH [--rounds 5] [--against torchfix]

Run it with the Python of an environment in which flake8-torchperf is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Runs flake8 as if the named distributions were not installed: flake8 finds its plugins among
# importlib.metadata's distributions, and a plugin that is only deselected would still run.
_WITHOUT = """
import importlib.metadata, sys
hidden = set(sys.argv.pop(1).split(","))
known = importlib.metadata.distributions
def visible(**context):
    return (d for d in known(**context) if d.metadata["Name"].lower() not in hidden)
importlib.metadata.distributions = visible
from flake8.main.cli import main
sys.exit(main())
"""
OURS, THEIRS = "flake8-torchperf", "torchfix"
# flake8's own exit statuses for "nothing found" and "something found".
_FINE = (0, 1)


@dataclass(frozen=True)
class Way:
    """One way of running flake8: with these plugins hidden."""

    name: str
    hidden: tuple[str, ...]

    def run(self, path: Path) -> tuple[float, int]:
        """Lint once in a new process; return wall-clock seconds and the number of results."""
        hidden = ",".join(self.hidden) or "-"
        # Selecting both plugins' codes leaves flake8's own checks to run and their output out.
        options = ["--isolated", "-j1", "--select=TPF,TOR", str(path)]
        command = [sys.executable, "-c", _WITHOUT, hidden, *options]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode not in _FINE or done.stderr:
            raise RuntimeError(f"flake8 failed, {self.name}:\n{done.stdout}{done.stderr}")
        return seconds, len(done.stdout.splitlines())


def one_core() -> None:
    """Keep this process and those it starts on a single core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def lines_of_python(path: Path) -> int:
    """Lines of the Python files under ``path``."""
    files = path.rglob("*.py") if path.is_dir() else [path]
    return sum(file.read_bytes().count(b"\n") for file in files)


def measure(ways: Sequence[Way], path: Path, rounds: int) -> dict[Way, list[tuple[float, int]]]:
    """Run every way once to fill the disk's cache, then in turn, so that drift hits all alike."""
    for way in ways:
        way.run(path)
    taken: dict[Way, list[tuple[float, int]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            taken[way].append(way.run(path))
    return taken


def report(taken: dict[Way, list[tuple[float, int]]]) -> None:
    """Print the median, the fastest and the slowest run of each, and the ratio of the medians."""
    medians = {way: statistics.median(s for s, _ in runs) for way, runs in taken.items()}
    base = next(iter(medians.values()))
    print(f"{'':28}{'median s':>10}{'min':>8}{'max':>8}{'ratio':>8}{'results':>9}")
    for way, runs in taken.items():
        seconds = [s for s, _ in runs]
        print(
            f"{way.name:28}{medians[way]:10.2f}{min(seconds):8.2f}{max(seconds):8.2f}"
            f"{medians[way] / base:8.2f}{runs[0][1]:9d}"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path, help="a file or a tree")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (default: 5)")
    parser.add_argument("--against", choices=[THEIRS], help="time this plugin too")
    arguments = parser.parse_args()
    if not arguments.path.exists():
        parser.error(f"there is no {arguments.path}")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    ways = [Way("flake8", (OURS, THEIRS)), Way("flake8 + torchperf", (THEIRS,))]
    if arguments.against:
        if importlib.util.find_spec(THEIRS) is None:
            parser.error(f"{THEIRS} is not installed here: pip install {THEIRS}")
        ways.append(Way(f"flake8 + {THEIRS}", (OURS,)))
    one_core()
    lines = lines_of_python(arguments.path)
    print(f"{arguments.path}: {lines} lines, {arguments.rounds} runs each, one core, in turn")
    report(measure(ways, arguments.path, arguments.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
