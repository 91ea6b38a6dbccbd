"""``torchperf fix``: flake8's options and our own in, fixed files or a diff out.

Must not import flake8 before it is run: the other commands load this module too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import INTERRUPTED, fail
from flake8_torchperf.cli.settings.command_line import OLDEST_BUILT_ON

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

SUMMARY = "rewrite what a fix can, and leave everything else as it is"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``fix`` for the list of commands; `cli.main` hands its arguments to `fix`."""
    commands.add_parser("fix", help=SUMMARY, add_help=False)


def fix(arguments: Sequence[str]) -> int:
    """Fix files and return the exit status."""
    return _run(arguments, first=False)[0]


def fix_first(arguments: Sequence[str]) -> int | None:
    """Fix files for ``check --fix``; return the exit status, or None if a check is to follow."""
    status, goes_on = _run(arguments, first=True)
    return None if goes_on else status


def _run(arguments: Sequence[str], *, first: bool) -> tuple[int, bool]:
    """Return the exit status, and whether a check follows."""
    import flake8

    if flake8.__version_info__ < OLDEST_BUILT_ON:
        return fail(f"fix needs flake8 6 or newer, and this is {flake8.__version__}"), False
    from flake8_torchperf.cli.fix.run import run

    try:
        return run(arguments, first=first), first
    except KeyboardInterrupt:
        print("torchperf: fix: interrupted", file=sys.stderr)
        return INTERRUPTED, False
