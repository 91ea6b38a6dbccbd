"""Type random edits into files through `torchperf server`, and compare with fresh runs.

    python tools/type_into_server.py --edits 1000 [--seed 7] FOLDER FILE...

FOLDER is the folder that the editor opens, with the files in it; nothing is written there. After
each edit the diagnostics must be those of a `torchperf check` without a cache; none may arrive for
an older text after those for a newer one. The exit status is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import random
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from typing_along.editor import Buffer, Editor, editor
from typing_along.fresh import Row, Runner, check, in_new_process
from typing_along.random_edits import texts_while_typed

# The longest pause between two keys, in seconds: held keys, and a fast typist.
LONGEST_PAUSE = 0.04
# The share of edits that are kept; after others the file is restored, since broken text remains
# broken.
KEPT = 0.3
EVERY = 50


@dataclass
class Tally:
    """The counts of a run: the edits, the keys and findings, and the errors."""

    edits: int = 0
    keys: int = 0
    parsed: int = 0
    findings: int = 0
    memory: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@dataclass
class Typist:
    """The random source of edits, and the longest pause between two keys, in seconds."""

    rng: random.Random
    pause: float


def main() -> int:
    """Type and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--edits", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", flush=True)
    start = time.monotonic()
    tally = type_into(options.folder.resolve(), options.files, options.edits, seed, aloud=True)
    seconds = time.monotonic() - start
    print(
        f"{tally.edits} edits, {tally.keys} keys, {tally.parsed} texts that parse, "
        f"{tally.findings} findings compared, {seconds:.0f} s; memory of server and linter in MB: "
        f"{', '.join(f'{one:.0f}' for one in tally.memory)}"
    )
    for words in tally.wrong:
        print(words)
    return 1 if tally.wrong else 0


def type_into(
    folder: Path,
    files: Sequence[Path],
    edits: int,
    seed: int,
    run: Runner = in_new_process,
    *,
    pause: float = LONGEST_PAUSE,
    aloud: bool = False,
) -> Tally:
    """Type that many edits into the files, in turn; ``run`` runs the check to compare with.

    ``pause`` is the longest between two keys, in seconds.
    """
    typist = Typist(random.Random(seed), pause)
    return asyncio.run(_type(folder, files, edits, typist, run, aloud))


async def _type(
    folder: Path, files: Sequence[Path], edits: int, typist: Typist, run: Runner, aloud: bool
) -> Tally:
    tally = Tally()
    async with editor(folder) as one:
        texts = {file: file.read_text(encoding="utf-8") for file in files}
        buffers = {file: one.open(file.resolve(), texts[file]) for file in files}
        for number in range(edits):
            file = files[number % len(files)]
            path = file.resolve()
            await _type_one(one, buffers[file], typist, tally)
            expected = await asyncio.to_thread(check, folder, path, buffers[file].text, run)
            await _compare(one, buffers[file], expected, tally)
            if typist.rng.random() > KEPT:
                one.change(buffers[file], texts[file])
            if (number + 1) % EVERY == 0:
                tally.memory.append(_memory(one.process))
                if aloud:
                    print(f"{number + 1} edits, {len(tally.wrong)} wrong", flush=True)
        tally.memory.append(_memory(one.process))
        await asyncio.sleep(0.2)
        for file, buffer in buffers.items():
            await one.diagnostics(buffer)
            versions = [p.version or 0 for p in buffer.published]
            if versions != sorted(versions):
                tally.wrong.append(f"{file}: diagnostics of an older text came last: {versions}")
        tally.wrong += [f"the server logged: {words}" for words in one.logged + one.messages]
    return tally


async def _type_one(one: Editor, buffer: Buffer, typist: Typist, tally: Tally) -> None:
    for text in texts_while_typed(buffer.text, typist.rng):
        one.change(buffer, text)
        tally.keys += 1
        await asyncio.sleep(typist.rng.random() * typist.pause)
    tally.edits += 1


async def _compare(one: Editor, buffer: Buffer, expected: Sequence[Row], tally: Tally) -> None:
    shown = sorted(map(_row, await one.diagnostics(buffer)))
    tally.parsed += _parses(buffer.text)
    tally.findings += len(expected)
    if shown != list(expected):
        place = f"{buffer.uri}, version {buffer.version}"
        tally.wrong.append(f"{place}: {shown} instead of {expected}")


def _row(diagnostic: types.Diagnostic) -> Row:
    start = diagnostic.range.start
    return start.line + 1, start.character + 1, str(diagnostic.code), diagnostic.message


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _memory(process: int) -> float:
    """Return the megabytes of a process and those it started; 0 if the system does not say."""
    total = 0.0
    for one in [process, *_children(process)]:
        try:
            words = Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()
        except OSError:
            continue
        total += int(words[1]) * 4096 / 1e6
    return total


def _children(process: int) -> list[int]:
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in listed.split()]


if __name__ == "__main__":
    sys.exit(main())
