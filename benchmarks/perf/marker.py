"""`torchperf check` over a tree outside any project, then with a marker of a project above it.

The tree's Python files are copied to a temporary folder. Both outputs must be the same, byte for
byte. The peak is that of the largest process.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perf.check import CHECK
from perf.running import (
    Run,
    UsageError,
    at_least_one,
    existing,
    in_turn,
    lines_of_python,
    print_table,
    python_files,
    run,
)

WITHOUT, WITH = "without a marker", "with a marker"


@dataclass(frozen=True)
class Marker:
    """The tree that is checked, and the number of processes."""

    tree: Path
    jobs: int

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument("tree", type=Path, metavar="TREE", help="as a wheel is unpacked")
        parser.add_argument("--jobs", type=int, default=2, help="processes of each (default: 2)")

    def measure(self) -> int:
        """Check the copy without and with a marker, and print both."""
        from flake8_torchperf.project.file_index import upwards
        from flake8_torchperf.project.import_roots import is_marked

        existing([self.tree])
        at_least_one(jobs=self.jobs)
        files = python_files([self.tree])
        with tempfile.TemporaryDirectory() as folder:
            if any(map(is_marked, upwards(folder))):
                raise UsageError(f"{folder} is inside a project: set TMPDIR to a folder outside")
            for file in files:
                copy = Path(folder, file.relative_to(self.tree))
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            print(f"{self.tree}: {len(files)} files, {lines_of_python(files)} lines", flush=True)
            plain = partial(run, [*CHECK, "--no-torchperf-cache", f"--jobs={self.jobs}", folder])
            ways: dict[str, Callable[[], Run]] = {
                WITHOUT: plain,
                WITH: partial(_marked, folder, plain),
            }
            taken = in_turn(ways, 1)
        print_table(taken)
        for name, (one,) in taken.items():
            print(f"{name:24}{one.peak:8.0f} MB")
        if taken[WITHOUT][0].output != taken[WITH][0].output:
            print("the findings differ", file=sys.stderr)
            return 1
        return 0


def _marked(folder: str, plain: Callable[[], Run]) -> Run:
    Path(folder, ".git").mkdir()
    return plain()
