"""A bar on the terminal for runs that take longer than a moment; rich draws it, where installed."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    import rich.progress

# Seconds before the bar appears. Until then rich is not imported.
AFTER = 1.0


class Bar:
    """Counts files on standard error; draws nothing unless that is a terminal."""

    def __init__(self, total: int, options: argparse.Namespace) -> None:
        quiet = options.quiet or options.verbose
        self._wanted = not quiet and total > 1 and sys.stderr is not None and sys.stderr.isatty()
        self._total = total
        self._done = 0
        self._start = time.monotonic()
        self._bar: rich.progress.Progress | None = None

    def advance(self) -> None:
        """Count one more file."""
        self._done += 1
        if self._bar is None and self._wanted and time.monotonic() - self._start > AFTER:
            self._bar = _bar(self._total)
            self._wanted = self._bar is not None
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)

    def hide(self) -> None:
        """Clear the bar, so that something else can be printed."""
        if self._bar is not None:
            self._bar.stop()

    def show(self) -> None:
        """Draw the bar again."""
        if self._bar is not None:
            self._bar.start()


def _bar(total: int) -> rich.progress.Progress | None:
    if find_spec("rich") is None:
        return None
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("linting"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("", total=total)
    bar.start()
    return bar
