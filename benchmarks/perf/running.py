"""Runs a command in a new process, measures what it used, and prints the figures of several.

Compare the processor times: other work on the machine changes them little. Wall-clock time is shown
as well. A run in which a file was not analysed (TPF900) does not count as a measurement.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OURS, THEIRS = "flake8-torchperf", "torchfix"
# Output that contains this is from a plugin that gave up: it took almost no time and found nothing.
GAVE_UP = b" TPF900 "
# flake8's own exit statuses for "nothing found" and "something found".
_FINE = (0, 1)
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


class UsageError(ValueError):
    """Options that cannot be measured; the text is one line for the person who gave them."""


@dataclass(frozen=True)
class Run:
    """The seconds and megabytes that a process and those it started used, and its output."""

    cpu: float
    wall: float
    peak: float
    output: bytes


def run(
    command: Sequence[str], *, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> Run:
    """Run a command once; raises RuntimeError if it fails or leaves a file out.

    Python keeps the bytecode of modules, as it does for an installed package: without, each run
    would compile the plugin's sources but not flake8's, which pip compiled.
    """
    given_environment = os.environ if environment is None else environment
    kept = {k: v for k, v in given_environment.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(stdin)
        given.seek(0)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=output, stderr=errors, env=kept)
        # Of this one process and those it waited for, where RUSAGE_CHILDREN knows only the sum and
        # the largest of all that were ever started here.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        said, complaint = output.read(), errors.read()
    if process.returncode not in _FINE or b"Traceback" in complaint:
        told = (said + complaint).decode(errors="replace")[-4000:]
        raise RuntimeError(f"failed: {' '.join(command)}\n{told}")
    all_analysed(said, " ".join(command))
    # In kilobytes on Linux, in bytes on macOS.
    peak = used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    return Run(used.ru_utime + used.ru_stime, wall, peak, said)


def all_analysed(output: bytes, name: str) -> None:
    """Raise RuntimeError, with the first line that says so, where a file was not analysed."""
    for line in output.splitlines():
        if GAVE_UP in line:
            raise RuntimeError(f"{name} did not analyse every file:\n{line.decode()}")


def flake8(*arguments: str, hidden: Sequence[str] = (), python: str = sys.executable) -> list[str]:
    """Return the command that runs flake8 on one core, with these plugins hidden from it."""
    return [python, "-c", _WITHOUT, ",".join(hidden) or "-", "--isolated", "-j1", *arguments]


def one_core() -> None:
    """Keep this process and those it starts on a single core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def in_turn(ways: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    """Run each way ``rounds`` times, in turn, so that drift affects all of them equally."""
    taken: dict[str, list[Run]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            taken[name].append(way())
    return taken


def print_table(taken: Mapping[str, Sequence[Run]], *, added: bool = False) -> None:
    """Print the median, the fastest and the slowest run of each, and how they compare to the first.

    ``added`` compares by milliseconds more instead of by the ratio.
    """
    cpu = {name: statistics.median(run.cpu for run in runs) for name, runs in taken.items()}
    wall = {name: statistics.median(run.wall for run in runs) for name, runs in taken.items()}
    first = next(iter(taken))
    print(
        f"{'':24}{'CPU s':>8}{'min':>8}{'max':>8}{'+ ms CPU' if added else 'x CPU':>10}"
        f"{'wall s':>9}{'+ ms' if added else 'x':>8}{'results':>9}"
    )
    for name, runs in taken.items():
        seconds = [run.cpu for run in runs]
        if added:
            more, later = (1000 * (own[name] - own[first]) for own in (cpu, wall))
            told = (f"{more:10.0f}", f"{later:8.0f}")
        else:
            told = (f"{cpu[name] / cpu[first]:10.2f}", f"{wall[name] / wall[first]:8.2f}")
        print(
            f"{name:24}{cpu[name]:8.2f}{min(seconds):8.2f}{max(seconds):8.2f}{told[0]}"
            f"{wall[name]:9.2f}{told[1]}{runs[0].output.count(bytes([10])):9d}"
        )


def existing(paths: Sequence[Path]) -> None:
    """Raise UsageError for the first of the paths that does not exist."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no {path}")


def at_least_one(**counts: int) -> None:
    """Raise UsageError where a count, named like its option, is below one."""
    for name, count in counts.items():
        if count < 1:
            raise UsageError(f"--{name} must be at least 1")


def python_files(paths: Sequence[Path], every: int = 1) -> list[Path]:
    """Return the Python files under the paths, or every n-th of them."""
    found = [f for path in paths for f in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return found[::every]


def lines_of_python(files: Sequence[Path]) -> int:
    """Return the number of lines in the files."""
    return sum(file.read_bytes().count(b"\n") for file in files)
