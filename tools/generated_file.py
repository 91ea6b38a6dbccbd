"""The common part of commands that generate a file: write it, or compare the committed one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Gives the path of a file and its text.
Generate: TypeAlias = "Callable[[], tuple[Path, str]]"

ROOT = Path(__file__).resolve().parent.parent
# Differing lines that are shown, of each side, and the characters of each.
SHOWN = 20
WIDTH = 300


class Instead(NamedTuple):
    """An option of one generator, with which the text is made in another way."""

    help: str
    generate: Generate


def main(description: str, generate: Generate, options: Mapping[str, Instead] | None = None) -> int:
    """Run the command line of a generator; returns the exit status.

    `--check` writes nothing and exits with 1 if the committed file differs. ``options`` are the
    generator's own, by their names: "--carry".
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="compare with the committed file")
    ways = parser.add_mutually_exclusive_group()
    for name, instead in (options or {}).items():
        ways.add_argument(
            name, action="store_const", dest="generate", const=instead.generate, help=instead.help
        )
    parser.set_defaults(generate=generate)
    arguments = parser.parse_args()
    check = arguments.check
    path, text = arguments.generate()
    name = path.relative_to(ROOT)
    if not check:
        path.write_text(text, encoding="utf-8")
        print(f"{name}: {len(text)} bytes")
        return 0
    committed = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    fresh = text.splitlines()
    if committed == fresh:
        return 0
    gone, new = set(committed) - set(fresh), set(fresh) - set(committed)
    for mark, lines in (("-", gone), ("+", new)):
        for line in sorted(lines)[:SHOWN]:
            print(f"{mark} {line}"[:WIDTH])
    print(f"{name} differs: run tools/{Path(sys.argv[0]).name}")
    return 1
