"""``torchperf profile``: shows what a recorded run spent, and merges several runs into one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import Parser, add_parser, complain, fail

if TYPE_CHECKING:
    from flake8_torchperf.history.profile import Profile, ProfileEntry

# The number of statements shown by default.
SHOWN = 20


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``profile`` with ``merge`` and ``show``."""
    parser = add_parser(
        commands,
        "profile",
        "show or merge profiles that torchperf run --save-profile wrote",
        "torchperf profile show profile.json\n"
        "  torchperf profile merge profile.json rank0.json rank1.json",
    )
    parser.set_defaults(run=lambda _: complain(parser, "name merge or show"))
    actions = parser.add_subparsers(metavar="merge|show", parser_class=Parser)
    show = actions.add_parser("show", help="list the statements that cost most")
    show.add_argument("file", type=Path, metavar="FILE")
    show.add_argument(
        "--limit",
        type=_limit,
        default=SHOWN,
        metavar="N",
        help=f"how many (default: {SHOWN}; 0: all that waited or ran)",
    )
    show.set_defaults(run=run_show)
    merge = actions.add_parser("merge", help="write the sum of several profiles")
    merge.add_argument("out", type=Path, metavar="OUT")
    merge.add_argument("files", type=Path, nargs="+", metavar="FILE")
    merge.set_defaults(run=run_merge)


def _limit(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is no number of statements")
    return int(word)


def run_merge(arguments: argparse.Namespace) -> int:
    """Add up profiles; returns the exit status."""
    from flake8_torchperf.cli.profile.written_profiles import save_profile, unsuitable
    from flake8_torchperf.history.profile import ProfileError, merge, read

    if problem := unsuitable(arguments.out):
        return fail(f"profile merge: {problem}")
    try:
        merged = merge(read(path) for path in arguments.files)
    except ProfileError as error:
        return fail(f"profile merge: {error}")
    return save_profile("profile merge", arguments.out, merged)


def run_show(arguments: argparse.Namespace) -> int:
    """Print the statements of a profile that cost most; returns the exit status."""
    from flake8_torchperf.cli.profile.written_profiles import number
    from flake8_torchperf.history.profile import STEP_COUNTS, ProfileError, read
    from flake8_torchperf.runtime.counting.counts import mean_in_words

    try:
        profile = read(arguments.file)
    except ProfileError as error:
        return fail(f"profile show: {error}")
    entries = _dearest(profile)
    shown = entries[: arguments.limit] if arguments.limit else entries
    _print(shown)
    measured = any(entry.seconds is not None for _, entry in entries)
    how = "waits reported by the device" if measured else "waits inferred from the calls, no times"
    devices = f" on {', '.join(profile.devices)}" if profile.devices else ""
    left = len(entries) - len(shown)
    rest = f"; {number(left, 'statement')} not shown" if left else ""
    print(f"{number(profile.runs, 'run')}{devices}, {how}{rest}")
    if (steps := profile.steps) is not None:
        each = ", ".join(mean_in_words(steps.each(name), name, digits=4) for name in STEP_COUNTS)
        print(f"{number(steps.steps, 'step')} after the warm-up; in each {each}")
    return 0


def _dearest(profile: Profile) -> list[tuple[str, ProfileEntry]]:
    """Return the entries with their files, the most costly first."""
    entries = [(name, entry) for name, listed in profile.files.items() for entry in listed]
    entries.sort(key=lambda pair: (pair[0], pair[1].line))
    entries.sort(key=lambda pair: pair[1].measured.cost, reverse=True)
    return entries


HEAD = ("ran", "waits", "seconds", "operations", "place", "statement")


def _print(entries: list[tuple[str, ProfileEntry]]) -> None:
    rows = [_row(name, entry) for name, entry in entries]
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        _print_plain(rows)
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        _print_plain(rows)
        return
    table = Table(box=None, pad_edge=False)
    for name in HEAD:
        table.add_column(name, justify="left" if name in HEAD[-2:] else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _print_plain(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
    for row in (HEAD, *rows):
        numbers = [cell.rjust(width) for cell, width in zip(row[:-2], widths, strict=False)]
        print("  ".join((*numbers, row[-2].ljust(widths[-2]), row[-1])).rstrip())


def _row(name: str, entry: ProfileEntry) -> tuple[str, ...]:
    from flake8_torchperf.findings.message import printable

    return (
        f"{entry.times:,}",
        f"{entry.waits:,}",
        "-" if entry.seconds is None else f"{entry.seconds:.3f}",
        "-" if entry.operations is None else f"{entry.operations:,}",
        printable(f"{name}:{entry.line} {entry.function}"),
        printable(entry.text),
    )
