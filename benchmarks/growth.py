"""How time and memory grow with the size of what is linted, and what bounds each shape.

    python benchmarks/growth.py [--lines 60000] [--only file,terms] [--no-memory]

Each shape is generated at a quarter, a half and its full size and linted by the plugin alone in a
process of its own; "exponent" is the slope of log time over log size: 1 is in proportion, 2
quadratic. "refused" is where Python's own parser gives up. Memory is the peak of a flake8 process
with the plugin and with the plugin hidden.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cold import _WITHOUT, OURS
from shapes import SHAPES, many_units

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


def main() -> int:
    """Measure and print."""
    arguments = _arguments()
    shapes = {n: SHAPES[n] for n in arguments.only.split(",")} if arguments.only else SHAPES
    print(f"{'shape':10} {'size':>7} {'lines':>7} {'seconds':>22} {'exponent':>8}  bounded by")
    for name, shape in shapes.items():
        full = arguments.lines if name == "file" else shape.full
        sizes = (full // 4, full // 2, full)
        texts = [shape.make(size) for size in sizes]
        seconds = [_seconds(text) for text in texts]
        slope = _slope([pair for pair in zip(sizes, seconds, strict=True) if pair[1] is not None])
        shown = " ".join("refused" if one is None else f"{one:.2f}" for one in seconds)
        lines = texts[2].count("\n")
        print(f"{name:10} {full:7} {lines:7} {shown:>22} {slope:8.2f}  {shape.bound}", flush=True)
    if not arguments.no_memory:
        _memory(arguments.lines)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=60_000, help="of the generated file")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help=", ".join(SHAPES))
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory")
    return parser.parse_args()


def _slope(measured: Sequence[tuple[int, float | None]]) -> float:
    """Of log time over log size, smallest to largest; 0 for what is too short to be timed."""
    (small, first), (large, last) = measured[0], measured[-1]
    if not first or not last or last < 0.005:
        return 0.0
    return math.log(last / max(first, 1e-3)) / math.log(large / small)


def _seconds(text: str) -> float | None:
    """CPU seconds of the plugin for a text, None where Python's own parser refuses it.

    Raises RuntimeError where the plugin does not end well.
    """
    environment = {**os.environ, "TORCHPERF_DEBUG": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "measured.py")
        path.write_text(text)
        command = [sys.executable, "-c", _TIMED, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"the plugin failed:\n{done.stderr[-2000:]}")
    measured = json.loads(done.stdout)
    return None if measured is None else float(measured[0])


def _memory(lines: int) -> None:
    """The peaks of flake8 with and without the plugin on the generated file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "measured.py")
        path.write_text(many_units(lines))
        peaks = [_peak(path, hidden) for hidden in ("-", OURS)]
    ratio = peaks[0] / peaks[1]
    print(
        f"memory at {lines} lines: {peaks[0]:.0f} MB with the plugin, {peaks[1]:.0f} MB without: "
        f"{ratio:.2f}x"
    )


def _peak(path: Path, hidden: str) -> float:
    command = [
        sys.executable,
        "-c",
        _WITHOUT,
        hidden,
        "--isolated",
        "-j1",
        "--select=TPF",
        str(path),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    # In kilobytes on Linux, in bytes on macOS.
    return usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


if __name__ == "__main__":
    raise SystemExit(main())
