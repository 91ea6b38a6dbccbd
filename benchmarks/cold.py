"""Times flake8 with and without the plugin: one core, a new process each, in turn.

    python benchmarks/cold.py PATH... [--rounds 5] [--against torchfix] [--before ENV] [--stdin]

Run it with the Python of an environment in which flake8-torchperf is installed; ``--before`` names
another one, with the version to compare with. Figures are the processor's time, which other work on
the machine changes little, and wall-clock time beside it. A run in which a file was not analysed
(TPF900) is no measurement and ends the script.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
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
# What stands in the output where a plugin gave up: it took next to no time, and found nothing.
GAVE_UP = b" TPF900 "
# Of a few thousand files flake8 is given so many at once: a command line has an end.
_MOST_ARGUMENTS = 2000


@dataclass(frozen=True)
class Run:
    """What one run of flake8 took."""

    cpu: float
    wall: float
    results: int


def all_analysed(output: bytes, name: str) -> None:
    """Raise RuntimeError, with the first line that says so, where a file was not analysed."""
    for line in output.splitlines():
        if GAVE_UP in line:
            raise RuntimeError(f"{name} did not analyse every file:\n{line.decode()}")


@dataclass(frozen=True)
class Way:
    """One way of running flake8: this Python's, with these plugins hidden."""

    name: str
    hidden: tuple[str, ...]
    python: str = sys.executable

    def run(self, paths: Sequence[Path], *, stdin: bool) -> Run:
        """Lint once in a new process."""
        hidden = ",".join(self.hidden) or "-"
        # Selecting both plugins' codes leaves flake8's own checks to run and their output out.
        options = ["--isolated", "-j1", "--select=TPF,TOR"]
        if stdin:
            options += [f"--stdin-display-name={paths[0]}", "-"]
        else:
            options += map(str, paths)
        command = [self.python, "-c", _WITHOUT, hidden, *options]
        text = paths[0].read_bytes() if stdin else b""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(command, input=text, capture_output=True, check=False)
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in _FINE or done.stderr:
            told = (done.stdout + done.stderr).decode(errors="replace")
            raise RuntimeError(f"flake8 failed, {self.name}:\n{told}")
        all_analysed(done.stdout, self.name)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return Run(cpu, wall, len(done.stdout.splitlines()))


def one_core() -> None:
    """Keep this process and those it starts on a single core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def python_files(paths: Sequence[Path], every: int) -> list[Path]:
    """The Python files under the paths, or every n-th of them."""
    found = [f for path in paths for f in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return found[::every]


def lines_of_python(files: Sequence[Path]) -> int:
    """Lines of the files."""
    return sum(file.read_bytes().count(b"\n") for file in files)


def measure(
    ways: Sequence[Way], paths: Sequence[Path], rounds: int, *, stdin: bool
) -> dict[Way, list[Run]]:
    """Run every way once to fill the disk's cache, then in turn, so that drift hits all alike."""
    for way in ways:
        way.run(paths, stdin=stdin)
    taken: dict[Way, list[Run]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            taken[way].append(way.run(paths, stdin=stdin))
    return taken


def report(taken: dict[Way, list[Run]], *, stdin: bool) -> None:
    """Print the median, the fastest and the slowest run of each, and what it adds to flake8."""
    cpu = {way: statistics.median(run.cpu for run in runs) for way, runs in taken.items()}
    wall = {way: statistics.median(run.wall for run in runs) for way, runs in taken.items()}
    first = next(iter(cpu))
    added = "+ ms CPU" if stdin else "x CPU"
    print(
        f"{'':24}{'CPU s':>8}{'min':>8}{'max':>8}{added:>10}"
        f"{'wall s':>9}{'+ ms' if stdin else 'x':>8}{'results':>9}"
    )
    for way, runs in taken.items():
        seconds = [run.cpu for run in runs]
        if stdin:
            ratios = (1000 * (cpu[way] - cpu[first]), 1000 * (wall[way] - wall[first]))
            told = (f"{ratios[0]:10.0f}", f"{ratios[1]:8.0f}")
        else:
            told = (f"{cpu[way] / cpu[first]:10.2f}", f"{wall[way] / wall[first]:8.2f}")
        print(
            f"{way.name:24}{cpu[way]:8.2f}{min(seconds):8.2f}{max(seconds):8.2f}{told[0]}"
            f"{wall[way]:9.2f}{told[1]}{runs[0].results:9d}"
        )
    ours, *others = list(cpu)[1:]
    added_by_ours = cpu[ours] - cpu[first]
    for way in others:
        if added_by_ours > 0:
            times = (cpu[way] - cpu[first]) / added_by_ours
            print(f"{way.name} adds {times:.1f} times the CPU time that torchperf adds")


def read_arguments() -> argparse.Namespace:
    """What is to be timed; ends the script with one line where that cannot be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", help="files or trees")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (default: 5)")
    parser.add_argument("--every", type=int, default=1, help="take every n-th file (default: 1)")
    parser.add_argument(
        "--stdin", action="store_true", help="one file on standard input, as editors do"
    )
    parser.add_argument("--against", choices=[THEIRS], help="time this plugin too")
    parser.add_argument(
        "--before", type=Path, metavar="ENV", help="time the torchperf of this environment too"
    )
    arguments = parser.parse_args()
    for path in arguments.paths:
        if not path.exists():
            parser.error(f"there is no {path}")
    if arguments.rounds < 1 or arguments.every < 1:
        parser.error("--rounds and --every must be at least 1")
    if arguments.stdin and (len(arguments.paths) > 1 or not arguments.paths[0].is_file()):
        parser.error("--stdin takes one file")
    if arguments.against and importlib.util.find_spec(THEIRS) is None:
        parser.error(f"{THEIRS} is not installed here: pip install {THEIRS}")
    if arguments.before and not python_of(arguments.before).exists():
        parser.error(f"{arguments.before} is no virtual environment with a bin/python")
    return arguments


def python_of(environment: Path) -> Path:
    """The Python of a virtual environment."""
    return environment.absolute() / "bin" / "python"


def main() -> int:
    """Measure and print."""
    arguments = read_arguments()
    ways = [Way("flake8", (OURS, THEIRS)), Way("flake8 + torchperf", (THEIRS,))]
    if arguments.against:
        ways.append(Way(f"flake8 + {THEIRS}", (OURS,)))
    if arguments.before:
        ways.append(Way("flake8 + the one before", (THEIRS,), str(python_of(arguments.before))))
    one_core()
    files = python_files(arguments.paths, arguments.every)
    paths = files if arguments.every > 1 else arguments.paths
    if len(paths) > _MOST_ARGUMENTS:
        sys.exit(f"{len(paths)} files are too many for one command: use a larger --every")
    print(
        f"{', '.join(map(str, arguments.paths))}: {len(files)} files, "
        f"{lines_of_python(files)} lines, {arguments.rounds} runs each, one core, in turn"
    )
    report(measure(ways, paths, arguments.rounds, stdin=arguments.stdin), stdin=arguments.stdin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
