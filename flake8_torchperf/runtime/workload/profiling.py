"""Makes a `Profile` by statement from the `Observed` results of one process.

If CUDA reported its waits, these are used, with their time. Otherwise the waits are those that the
calls would cause on a device, as counts only. Knows nothing about torch.
"""

from __future__ import annotations

import ast
import os
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from flake8_torchperf.history.data_files import relative
from flake8_torchperf.history.profile import (
    SHOWN,
    STEP_COUNTS,
    Profile,
    ProfileEntry,
    StepCounts,
    keyed,
)
from flake8_torchperf.runtime.counting.counts import Counts, total
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow, Times
from flake8_torchperf.runtime.workload.statement_costs import StatementCosts
from flake8_torchperf.runtime.workload.waits import statement_waits
from flake8_torchperf.syntax.statement_lines import Span, Statements


def profile_of(observed: Observed, folder: str) -> Profile:
    """Return the profile of one process that was started in this folder."""
    lines: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in observed.lines:
        lines[os.path.realpath(line["path"])].append(line)
    syncs: dict[str, list[SyncRow]] = defaultdict(list)
    for row in observed.calls:
        syncs[os.path.realpath(row.path)].append(row)
    times: dict[str, list[Times]] = defaultdict(list)
    for name, pieces in observed.times.items():
        times[os.path.realpath(name)] += pieces
    root = os.path.realpath(folder)
    files: dict[str, tuple[ProfileEntry, ...]] = {}
    for path in sorted({*times, *lines}):
        source = _source(path)
        if source is not None:
            one = _File(observed, source, lines[path], syncs[path], times[path])
            if entries := tuple(one.entries()):
                files[relative(path, root)] = entries
    return Profile(files, 1, (observed.device,), steps=_steps(observed))


def _steps(observed: Observed) -> StepCounts | None:
    """Return what the steps after the warm-up did; None if none were counted."""
    steps = observed.steps
    if steps is None or not steps.counted:
        return None
    costs = StatementCosts(observed)
    waits = 0
    for path in {os.path.realpath(line["path"]) for line in steps.lines}:
        if (source := _source(path)) is not None:
            waits += sum(row["counted"]["waits"] for row in costs.of(path, source.splitlines()))
    counts = {name: steps.totals[name] for name in STEP_COUNTS if name != "waits"}
    return StepCounts(steps.counted, {"waits": waits, **counts})


def _source(path: str) -> str | None:
    """Return the text of a file; None where it is gone, or never was one (``<string>``)."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


class _File:
    """The observations of the lines of one file, by statement."""

    def __init__(
        self,
        observed: Observed,
        source: str,
        lines: Iterable[Mapping[str, Any]],
        syncs: Iterable[SyncRow],
        times: Iterable[Times],
    ) -> None:
        self._statements = Statements(source)
        self._lines = source.splitlines()
        self._heard = device_reports.was_heard(observed)
        self._dispatches = observed.level == "full"
        self._spent: dict[Span, list[Counts]] = defaultdict(list)
        for line in lines:
            span = self._statements.span(line["line"])
            self._spent[span].append(Counts(**line["counts"]))
        self._syncs: dict[Span, list[SyncRow]] = defaultdict(list)
        for row in syncs:
            self._syncs[self._statements.span(row.line)].append(row)
        self._times: dict[Span, int] = {}
        for piece in times:
            self._count(piece)

    def _count(self, piece: Times) -> None:
        """Count the statements of one function by the counts of its lines.

        A statement began as often as the first of its lines that ran. The head of a loop runs again
        in each round: the head of `for` at one place, the test of `while` at two, before and after
        the body. A lambda or a comprehension in a statement is a separate function.
        """
        began: dict[Span, int] = {}
        first: dict[Span, int] = {}
        for line, times in piece:
            statement = self._statements.at(line)
            if statement is None:
                continue
            span = statement.span
            if span not in began:
                began[span], first[span] = times, line
            elif isinstance(statement.node, ast.While) and line == first[span]:
                began[span] += times
            elif isinstance(statement.node, (ast.For, ast.AsyncFor)):
                began[span] = max(began[span], times)
        for span, times in began.items():
            self._times[span] = max(self._times.get(span, 0), times)

    def entries(self) -> Iterable[ProfileEntry]:
        """Yield an entry for each statement that ran, in the order of the text."""
        for statement, (function, digest, nth) in keyed(self._statements):
            span = statement.span
            spent = total(self._spent.get(span, ()))
            if span not in self._times and span not in self._spent:
                continue
            rows = self._syncs.get(span, ())
            waits, seconds = statement_waits(rows, spent, heard=self._heard)
            # A line with counts ran, even if the trace function was removed.
            times = self._times.get(span) or max(waits, 1)
            operations = spent.dispatches if self._dispatches else None
            text = " ".join(line.strip() for line in self._lines[span[0] - 1 : span[1]])[:SHOWN]
            place = (span[0], function, digest, nth, text)
            yield ProfileEntry(*place, 1, times, waits, seconds, operations)
