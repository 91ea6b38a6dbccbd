"""Times torchperf check, with nothing and with everything remembered, against flake8 --select TPF.

    python benchmarks/check.py PATH [--rounds 3] [--jobs 2]

Run it with the Python of an environment in which flake8-torchperf is installed. What each prints
must be the same, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cold import all_analysed, lines_of_python, python_files

# flake8's own exit statuses for "nothing found" and "something found".
_FINE = (0, 1)
FLAKE8 = [sys.executable, "-m", "flake8", "--isolated", "--select=TPF"]
CHECK = [sys.executable, "-m", "flake8_torchperf.cli.main", "check", "--isolated"]


@dataclass(frozen=True)
class Timed:
    """One run: how long it took, the processor's time of all its processes, what it printed."""

    seconds: float
    processor: float
    output: bytes


def timed(command: list[str]) -> Timed:
    """Run a command in a new process."""
    start, used = time.perf_counter(), processor_time()
    done = subprocess.run(command, capture_output=True, check=False)
    seconds, processor = time.perf_counter() - start, processor_time() - used
    if done.returncode not in _FINE or b"Traceback" in done.stderr:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr.decode()}")
    all_analysed(done.stdout, " ".join(command))
    return Timed(seconds, processor, done.stdout)


def processor_time() -> float:
    """What the processes started here, and theirs, have used so far."""
    times = os.times()
    return times.children_user + times.children_system


def one_round(path: Path, jobs: int) -> dict[str, Timed]:
    """flake8, a check that remembers nothing yet, and two that do, one after the other."""
    options = [f"--jobs={jobs}", str(path)]
    with tempfile.TemporaryDirectory() as folder:
        remembering = [*CHECK, f"--torchperf-cache-dir={folder}", *options]
        taken = {
            "flake8 --select TPF": timed([*FLAKE8, *options]),
            "check --no-cache": timed([*CHECK, "--no-torchperf-cache", *options]),
            "check, first run": timed(remembering),
            "check, second run": timed(remembering),
        }
    first = next(iter(taken.values()))
    for name, run in taken.items():
        if run.output != first.output:
            raise RuntimeError(f"{name} prints something else than flake8")
    return taken


def report(rounds: list[dict[str, Timed]]) -> None:
    """Print medians, and ratios as the median of each round's own ratio."""
    names = list(rounds[0])
    print(f"{'':28}{'median s':>10}{'min':>8}{'max':>8}{'processor s':>13}")
    for name in names:
        seconds = [taken[name].seconds for taken in rounds]
        processor = statistics.median(taken[name].processor for taken in rounds)
        middle = statistics.median(seconds)
        print(f"{name:28}{middle:10.2f}{min(seconds):8.2f}{max(seconds):8.2f}{processor:13.2f}")
    flake8, alone, first, second = names
    print(f"{'how many times as fast':28}{'':26}{'processor':>13}")
    for text, slow, fast in (
        ("check --no-cache / flake8", flake8, alone),
        ("first run / flake8", flake8, first),
        ("second run / first run", first, second),
        ("second run / flake8", flake8, second),
    ):
        wall = statistics.median(taken[slow].seconds / taken[fast].seconds for taken in rounds)
        used = statistics.median(taken[slow].processor / taken[fast].processor for taken in rounds)
        print(f"{text:28}{wall:10.1f}{'':16}{used:13.1f}")
    print(f"findings: {rounds[0][flake8].output.count(chr(10).encode())}")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path, help="a file or a tree")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all four (default: 3)")
    parser.add_argument("--jobs", type=int, default=2, help="processes of each (default: 2)")
    arguments = parser.parse_args()
    if not arguments.path.exists():
        parser.error(f"there is no {arguments.path}")
    if arguments.rounds < 1 or arguments.jobs < 1:
        parser.error("--rounds and --jobs must be at least 1")
    lines = lines_of_python(python_files([arguments.path], 1))
    print(f"{arguments.path}: {lines} lines, {arguments.jobs} processes, in turn", flush=True)
    report([one_round(arguments.path, arguments.jobs) for _ in range(arguments.rounds)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
