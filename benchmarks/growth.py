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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cold import _WITHOUT, OURS

HEAD = "import torch\nfrom torch import nn\n\n\n"
# One model with a training loop: what a generated file repeats.
UNIT = '''\
class Net{i}(nn.Module):
    """A layer and a head."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for row in x:
            if row.isnan().any():
                x = torch.where(x > 0, self.inner(x), x)
        return x * self.scale + helper{i}(x)


def helper{i}(x: torch.Tensor, rate: float = 0.5) -> torch.Tensor:
    total = 0.0
    for part in x.split(4):
        total += part.sum().item() * rate
    names = {{"a": 1, "b": 2, "c": [3, 4, 5]}}
    return x.clamp(min=total).to(torch.float32) + len(names)


def train_step{i}(net: Net{i}, batch: torch.Tensor, target: torch.Tensor) -> float:
    loss = (net(batch) - target).pow(2).mean()
    loss.backward()
    value = loss.item()
    return value + float(helper{i}(batch).sum())


'''
STEP = "def step(x: torch.Tensor, n: int):\n"


@dataclass(frozen=True)
class Shape:
    """A kind of source: ``make`` gives it at a size, ``full`` is the size the issue asks for."""

    full: int
    make: Callable[[int], str]
    bound: str


def _file(lines: int) -> str:
    count = lines // UNIT.count("\n")
    return HEAD + "".join(UNIT.format(i=i) for i in range(count))


def _terms(count: int) -> str:
    return HEAD + STEP + "    y = " + " + ".join(["x"] * count) + "\n    return y.item()\n"


def _calls(count: int) -> str:
    return HEAD + STEP + "    y = x" + ".abs()" * count + "\n    return y.item()\n"


def _branches(count: int) -> str:
    body = "".join(f"    if n == {i}:\n        x = x + {i}\n" for i in range(count))
    return HEAD + STEP + body + "    return x.item()\n"


def _elifs(count: int) -> str:
    body = "".join(f"    elif n == {i}:\n        x = x + {i}\n" for i in range(1, count))
    return HEAD + STEP + f"    if n == 0:\n        pass\n{body}    return x.item()\n"


def _loops(count: int) -> str:
    """Side by side where Python's parser allows no deeper nest (100 indents)."""
    lines, depth = [], 0
    for i in range(count):
        lines.append(f"{' ' * (depth + 1)}for r{i} in x:\n")
        depth = (depth + 1) % 90
        if depth == 0:
            lines.append(f"{' ' * 91}x = x + r{i}.item()\n")
    if depth:
        lines.append(f"{' ' * (depth + 1)}x = x + r{count - 1}.item()\n")
    return HEAD + STEP + "".join(lines) + " return x\n"


def _classes(count: int) -> str:
    """Each calls two others, round in a circle."""
    return HEAD + "".join(
        f"class A{i}(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n"
        f"        self.one = A{(i + 1) % count}()\n        self.two = A{(i * 7 + 3) % count}()\n\n"
        f"    def forward(self, x):\n        y = self.one(x) + self.two.forward(x)\n"
        f"        return y.item() if y.sum() > 0 else self.two(self.one(y))\n\n\n"
        for i in range(count)
    )


def _functions(count: int) -> str:
    """Each calls the next two: without summaries the calls would double at every step."""
    return HEAD + "".join(
        f"def step{i}(x: torch.Tensor):\n    y = step{(i + 1) % count}(x)\n"
        f"    return step{(i + 2) % count}(y) + y.sum().item()\n\n\n"
        for i in range(count)
    )


def _closures(count: int) -> str:
    """Nested functions that call themselves and each other in several places."""
    return HEAD + "".join(
        f"def outer{i}(x: torch.Tensor):\n"
        "    def walk(y):\n        if isinstance(y, list):\n"
        "            return [walk(z) for z in y] + [other(z) for z in y]\n"
        "        return walk(y[0]) if len(y) else other(y).item()\n\n"
        "    def other(y):\n        return walk(y) if y.any() else walk(other(y[1]))\n\n"
        "    return walk(x)\n\n\n"
        for i in range(count)
    )


def _bases(count: int) -> str:
    chain = "".join(f"class B{i + 1}(B{i}):\n    pass\n\n\n" for i in range(count))
    return (
        HEAD + "class B0(nn.Module):\n    x: torch.Tensor\n\n\n" + chain
        + f"class Net(B{count}):\n    def step(self):\n        return self.x.item()\n"
    )  # fmt: skip


def _names(count: int) -> str:
    """A table: one literal with that many entries, and a loop over it."""
    entries = "".join(f"    'key{i}': ({i}, 'text', [{i}, None]),\n" for i in range(count))
    return (
        HEAD + f"TABLE = {{\n{entries}}}\n\n\n" + STEP + "    return x[TABLE['key1'][0]].item()\n"
    )


SHAPES = {
    "file": Shape(60_000, _file, "functions are interpreted one by one, summaries once for each"),
    "terms": Shape(3_000, _terms, "a chain to the left is folded in a loop, not by recursion"),
    "calls": Shape(900, _calls, "beyond 110 expressions in one another the inner ones are Unknown"),
    "branches": Shape(2_000, _branches, "20,000 steps a function; then all is Unknown"),
    "elifs": Shape(900, _elifs, "20,000 steps a function; then all is Unknown"),
    "loops": Shape(200, _loops, "a loop's body is run three times at most; 20,000 steps"),
    "classes": Shape(500, _classes, "calls are followed 5 deep and never into one that is running"),
    "functions": Shape(2_000, _functions, "one summary for each function and kind of arguments"),
    "closures": Shape(200, _closures, "a nested function is not called while it is running"),
    "bases": Shape(500, _bases, "classes are followed once each"),
    "names": Shape(20_000, _names, "20,000 steps a function, 2,000 a constant"),
}
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
        path.write_text(_file(lines))
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
