"""The lines that waited in a profiled run although the linter finds nothing in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.findings.heat_text import duration
from flake8_torchperf.findings.message import printable
from flake8_torchperf.history.profile import SHOWN, Profiled, read
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.runtime.api.free_lines import allowed_lines
from flake8_torchperf.syntax.statement_lines import Statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from flake8_torchperf.judgement.heat import Measured
    from flake8_torchperf.options import Options

# More would hide the findings above them; `torchperf profile show` has them all.
AT_MOST = 20


def unfound(path: Path, linted: Iterable[str], options: Options) -> list[str]:
    """Return a line per statement that waited without a finding in any scope, costliest first."""
    profile = read(path)
    everything = replace(options, scope=Level.COLD, profile=None, baseline=None, cache=False)
    waited: list[tuple[tuple[float, int, int], str]] = []
    for name in linted:
        entries = profile.entries_of(name)
        if any(entry.waits for entry in entries):
            text = _text(name)
            profiled = Profiled(entries, Statements(text))
            waited += ((told.cost, row) for told, row in _of_file(name, text, profiled, everything))
    waited.sort(key=lambda one: one[0], reverse=True)
    rows = [row for _, row in waited[:AT_MOST]]
    if len(waited) > AT_MOST:
        more = len(waited) - AT_MOST
        rows.append(f"{path}: {more} more such lines: torchperf profile show {path}")
    return rows


def _of_file(
    name: str, text: str, profiled: Profiled, everything: Options
) -> Iterator[tuple[Measured, str]]:
    waited = profiled.waited()
    if not waited:
        return
    try:
        found = {profiled.span(one.line) for one in lint(text, name, everything)}
    except (SyntaxError, ValueError, RecursionError):
        return  # the file has its own message
    allowed, lines = allowed_lines(name), text.splitlines()
    for span, told in waited:
        if span in found or span[0] in allowed:
            continue
        times = "once" if told.waits == 1 else f"{told.waits:,} times"
        took = f", {duration(told.seconds)}" if told.seconds else ""
        shown = " ".join(line.strip() for line in lines[span[0] - 1 : span[1]])[:SHOWN]
        where = f"{name}:{span[0]}: waited {times} in the profile{took}, without a finding"
        yield told, f"{where}: {printable(shown)}"


def _text(name: str) -> str:
    """Return the text of a file; "" if it cannot be read, which is reported elsewhere."""
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""
