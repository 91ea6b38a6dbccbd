"""A profile's counts for a text: a line and a few words for each statement that waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.heat_text import duration
from flake8_torchperf.history.profile import Profiled, read
from flake8_torchperf.syntax.statement_lines import Statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.judgement.heat import Measured
    from flake8_torchperf.options import Options


def counted(name: str, text: str, options: Options) -> Iterator[tuple[int, str]]:
    """Yield line (from 0) and words for each statement of a file that waited in the profile."""
    entries = () if options.profile is None else read(options.profile).entries_of(name)
    if entries:
        for (first, _), told in Profiled(entries, Statements(text)).waited():
            yield first - 1, _words(told)


def _words(told: Measured) -> str:
    """Return for example "ran 4,204 times, waited 3.1 s"."""
    ran = "ran once" if told.times == 1 else f"ran {told.times:,} times"
    if told.seconds is not None:
        return f"{ran}, waited {duration(told.seconds)}"
    return f"{ran}, waited once" if told.waits == 1 else f"{ran}, waited {told.waits:,} times"
