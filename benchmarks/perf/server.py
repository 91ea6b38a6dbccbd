"""`torchperf server`: how long after a key the diagnostics of the text are there, once it is warm.

A name is typed into functions of a file, key by key, so that each text is Python and linted whole.
Run it with the Python of an environment with the extra `server`.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perf.running import at_least_one, existing

if TYPE_CHECKING:
    from typing_along.editor import Buffer, Editor

TOOLS = Path(__file__).resolve().parents[2] / "tools"
TYPED = "total_loss"
# The number of keys before the measurement, in which the server reads and caches modules.
WARM = 10


@dataclass(frozen=True)
class Server:
    """The files that are typed into, the number of keys, and the time between two of them."""

    paths: Sequence[Path]
    keys: int
    every: float

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument("paths", type=Path, nargs="+", metavar="FILE")
        parser.add_argument("--keys", type=int, default=200, help="for each file (default: 200)")
        parser.add_argument(
            "--every", type=float, default=0.15, metavar="S", help="seconds a key (default: 0.15)"
        )

    def measure(self) -> int:
        """Type and print; one server for each file."""
        existing(self.paths)
        at_least_one(keys=self.keys)
        sys.path.insert(0, str(TOOLS))
        print(f"load average: {' '.join(f'{one:.1f}' for one in os.getloadavg())}")
        print(f"{'':44}{'lines':>7}{'keys':>6}{'median':>9}{'99 %':>9}{'most':>9}  ms")
        for path in self.paths:
            taken = asyncio.run(self._typed(path.resolve()))
            lines = path.read_bytes().count(b"\n")
            figures = (statistics.median(taken), _percentile(taken, 99), max(taken))
            columns = "".join(f"{1000 * one:9.0f}" for one in figures)
            print(f"{path.name:44}{lines:7}{len(taken):6}{columns}", flush=True)
        return 0

    async def _typed(self, path: Path) -> list[float]:
        from typing_along.editor import editor

        taken: list[float] = []
        async with editor(_top(path)) as one:
            text = path.read_text(encoding="utf-8")
            buffer = one.open(path, text)
            await one.diagnostics(buffer)
            texts = _texts(text, random.Random(path.name))
            for _ in range(WARM + self.keys):
                seconds = await _seconds(one, buffer, next(texts))
                taken.append(seconds)
                await asyncio.sleep(max(self.every - seconds, 0))
        return taken[WARM:]


async def _seconds(one: Editor, buffer: Buffer, text: str) -> float:
    """Return the seconds from a key to its diagnostics."""
    start = time.perf_counter()
    one.change(buffer, text)
    return (await one.published(buffer)).at - start


def _texts(text: str, rng: random.Random) -> Iterator[str]:
    """Yield the texts while a name is typed into one function after the other."""
    lines = text.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    while True:
        first = rng.choice(functions).body[-1]
        above = "".join(lines[: first.lineno - 1])
        below = "".join(lines[first.lineno - 1 :])
        for end in range(1, len(TYPED) + 1):
            yield f"{above}{' ' * first.col_offset}{TYPED[:end]}\n{below}"


def _percentile(taken: Sequence[float], percent: int) -> float:
    return sorted(taken)[min(len(taken) * percent // 100, len(taken) - 1)]


def _top(path: Path) -> Path:
    """Return the folder that holds the package of a file."""
    folder = path.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder
