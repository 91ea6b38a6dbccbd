"""The growth of time and memory with the size of the linted file, and what bounds each shape.

Each shape is generated at a quarter, a half and its full size and linted by the plugin alone in a
separate process; "exponent" is the slope of log time over log size: 1 is linear, 2 quadratic.
"refused" means that Python's own parser gives up. Memory is the peak of a flake8 process with the
plugin and with the plugin hidden.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shapes import SHAPES, Shape, many_units

from perf.running import OURS, UsageError, at_least_one, flake8, run

# Lints one file and prints its seconds: the best of two, since a machine is rarely idle.
_TIMED = """
import ast, io, json, sys, time
from flake8_torchperf.plugin import TorchPerfPlugin
sys.setrecursionlimit(1000)
def go(text, name):
    try:
        tree = ast.parse(text)
    except (RecursionError, MemoryError):
        print("null")  # Python itself refuses it
        sys.exit()
    lines = list(io.StringIO(text))
    began = time.process_time()
    rows = list(TorchPerfPlugin(tree, lines, name).run())
    return time.process_time() - began, len(rows)
go("import torch\\ndef step(x: torch.Tensor):\\n    return x.item()\\n", "warm.py")
text = open(sys.argv[1]).read()
best = min(go(text, "measured.py") for _ in range(2))
print(json.dumps(best))
"""


@dataclass(frozen=True)
class Growth:
    """The shapes that are made, and the lines of the file of many models."""

    lines: int
    only: str
    no_memory: bool

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument(
            "--lines", type=int, default=60_000, help="of the generated file (default: 60000)"
        )
        parser.add_argument("--only", default="", metavar="NAME,NAME", help=", ".join(SHAPES))
        parser.add_argument("--no-memory", action="store_true", help="leave out the memory")

    def measure(self) -> int:
        """Generate, lint and print, a line for each shape."""
        at_least_one(lines=self.lines)
        names = self.only.split(",") if self.only else list(SHAPES)
        if unknown := [name for name in names if name not in SHAPES]:
            raise UsageError(f"no shape {', '.join(unknown)}; there are {', '.join(SHAPES)}")
        print(f"{'shape':10} {'size':>7} {'lines':>7} {'seconds':>22} {'exponent':>8}  bounded by")
        for name in names:
            self._print_shape(name, SHAPES[name])
        if not self.no_memory:
            self._print_memory()
        return 0

    def _print_shape(self, name: str, shape: Shape) -> None:
        full = self.lines if name == "file" else shape.full
        sizes = (full // 4, full // 2, full)
        texts = [shape.make(size) for size in sizes]
        seconds = [_seconds(text) for text in texts]
        slope = _slope([pair for pair in zip(sizes, seconds, strict=True) if pair[1] is not None])
        shown = " ".join("refused" if one is None else f"{one:.2f}" for one in seconds)
        lines = texts[2].count("\n")
        print(f"{name:10} {full:7} {lines:7} {shown:>22} {slope:8.2f}  {shape.bound}", flush=True)

    def _print_memory(self) -> None:
        """Print the peaks of flake8 with and without the plugin on the generated file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "measured.py")
            path.write_text(many_units(self.lines))
            ours, bare = (
                run(flake8("--select=TPF", str(path), hidden=hidden)).peak
                for hidden in ((), (OURS,))
            )
        print(
            f"memory at {self.lines} lines: {ours:.0f} MB with the plugin, {bare:.0f} MB without: "
            f"{ours / bare:.2f}x"
        )


def _slope(measured: Sequence[tuple[int, float | None]]) -> float:
    """Return the slope of log time over log size; 0 for times too short to measure."""
    (small, first), (large, last) = measured[0], measured[-1]
    if not first or not last or last < 0.005:
        return 0.0
    return math.log(last / max(first, 1e-3)) / math.log(large / small)


def _seconds(text: str) -> float | None:
    """Return the plugin's CPU seconds for a text, None if Python's own parser refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "measured.py")
        path.write_text(text)
        # With this set, errors of the plugin are raised.
        environment = {**os.environ, "TORCHPERF_DEBUG": "1"}
        done = run([sys.executable, "-c", _TIMED, str(path)], environment=environment)
    measured = json.loads(done.output)
    return None if measured is None else float(measured[0])
