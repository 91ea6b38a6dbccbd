"""Fuzz the linter: mutated torch sources and made-up modules, until the time is over.

    python tools/fuzz.py --minutes 10 [--seed 7] [--kind text,tree,module] [--sources FOLDER ...]

Every text that breaks a promise (a crash, a place outside the file, two runs that differ) is
minimised, printed and saved in --out. The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fuzzing.check import BrokenError, check, minimised
from fuzzing.modules import modules
from fuzzing.mutations import text_mutation, tree_mutation
from fuzzing.sources import NoSourcesError, Pieces, files_below, torch_files

KINDS = ("text", "tree", "module")


@dataclass
class Tally:
    """The counts of a run, its slowest text, and the texts that broke a promise."""

    texts: int = 0
    valid: int = 0
    findings: int = 0
    slowest: float = 0.0
    slow_text: str = ""
    broken: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Fuzz and report."""
    arguments = _arguments()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", flush=True)
    try:
        files = files_below(arguments.sources) if arguments.sources else torch_files()
    except NoSourcesError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 2
    tally = Tally()
    end = time.monotonic() + arguments.minutes * 60
    for text in _texts(Pieces(files), arguments.kind, random.Random(seed)):
        if time.monotonic() > end:
            break
        _try(text, tally, arguments.out)
    _report(tally, arguments)
    return 1 if tally.broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: 10)")
    parser.add_argument("--seed", type=int, help="repeat a run (default: a new one, printed)")
    parser.add_argument(
        "--kind", type=_kinds, default=KINDS, help="comma-separated: text, tree, module"
    )
    parser.add_argument(
        "--sources", type=Path, nargs="+", help="folders to mutate (default: torch)"
    )
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"), help="where texts are kept")
    return parser.parse_args()


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    if not set(kinds) <= set(KINDS):
        raise argparse.ArgumentTypeError(f"{text!r}: choose from {', '.join(KINDS)}")
    return kinds


def _texts(pieces: Pieces, kinds: tuple[str, ...], rng: random.Random) -> Iterator[str]:
    made = modules(rng) if "module" in kinds else iter(())
    while True:
        kind = rng.choice(kinds)
        if kind == "module":
            yield next(made)
        elif kind == "text":
            yield text_mutation(pieces.draw(rng), rng)
        else:
            grafted = tree_mutation(pieces.draw(rng), pieces.draw(rng), rng)
            if grafted is not None:
                yield grafted


def _try(text: str, tally: Tally, out: Path) -> None:
    tally.texts += 1
    try:
        checked = check(text)
    except BrokenError as broken:
        if broken.kind in tally.broken:
            return
        small = minimised(text, broken.kind)
        tally.broken[broken.kind] = small
        out.mkdir(exist_ok=True)
        path = out / f"broken-{len(tally.broken)}.py"
        path.write_text(small, encoding="utf-8", newline="")
        print(f"\n== {broken}\n-- minimised, in {path}:\n{small!r}\n", flush=True)
        return
    tally.valid += checked.valid
    tally.findings += len(checked.rows)
    if checked.seconds > tally.slowest:
        tally.slowest, tally.slow_text = checked.seconds, text


def _report(tally: Tally, arguments: argparse.Namespace) -> None:
    print(
        f"{tally.texts} texts, {tally.valid} of them Python, {tally.findings} findings; "
        f"slowest {tally.slowest:.2f} s for {tally.slow_text.count(chr(10))} lines; "
        f"{len(tally.broken)} broken promises"
    )
    if tally.slow_text:
        arguments.out.mkdir(exist_ok=True)
        (arguments.out / "slowest.py").write_text(tally.slow_text, encoding="utf-8", newline="")
    for kind in tally.broken:
        print(f"  {kind}")


if __name__ == "__main__":
    raise SystemExit(main())
