"""Notes on a profile whose entries match nothing in the files that were linted."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.history.profile import Profiled, read
from flake8_torchperf.syntax.statement_lines import Statements

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from flake8_torchperf.history.profile import ProfileEntry


def notes(path: Path, linted: Iterable[str]) -> list[str]:
    """Return one line if entries are stale or none of the files is known; else nothing."""
    profile = read(path)
    known = {name: entries for name in linted if (entries := profile.entries_of(name))}
    if not known:
        advice = "its paths start in the folder where the program was started; lint from there"
        return [f"{path} tells of none of these files; {advice}"]
    stale = sum(_stale(name, entries) for name, entries in known.items())
    total = sum(map(len, known.values()))
    if not stale:
        return []
    return [f"{path}: {stale} of {total} entries match no statement any more, and are ignored"]


def _stale(name: str, entries: Iterable[ProfileEntry]) -> int:
    try:
        with open(name, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return 0  # the file has its own message
    return Profiled(entries, Statements(tree)).stale
