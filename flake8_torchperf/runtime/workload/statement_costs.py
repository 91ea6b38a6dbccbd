"""The costs of each statement of a run, under the keys by which profiles recognise statements.

`torchperf compare` reads it from two reports. Knows nothing about torch.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flake8_torchperf.history.profile import SHOWN, keyed
from flake8_torchperf.runtime.counting.counts import Counts, total
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.exchange import NON_BLOCKING, Observed, SyncRow
from flake8_torchperf.runtime.workload.waits import is_on_host, statement_waits
from flake8_torchperf.syntax.statement_lines import Span, Statements


class StatementCosts:
    """The costs in a run, by file, and those in its steps after the warm-up."""

    def __init__(self, observed: Observed) -> None:
        heard = device_reports.was_heard(observed)
        self._whole = _Part(observed.lines, observed.calls, observed.queued, heard=heard)
        self._counted: _Part | None = None
        steps = observed.steps
        if steps is not None and steps.counted:
            part = replace(observed, syncs=steps.syncs)
            self._counted = _Part(steps.lines, part.calls, part.queued, heard=heard)

    def of(self, path: str, source: Sequence[str]) -> list[dict[str, Any]]:
        """Return a row for each statement that waited, copied, or read tensors of the host."""
        statements = Statements("\n".join(source))
        whole = self._whole.costs(path, statements)
        counted = None if self._counted is None else self._counted.costs(path, statements)
        rows = []
        for statement, (function, digest, nth) in keyed(statements):
            span = statement.span
            costs = whole.get(span, {})
            if any(costs.values()):
                text = " ".join(line.strip() for line in source[span[0] - 1 : span[1]])[:SHOWN]
                place = {"function": function, "digest": digest, "nth": nth, "text": text}
                row = {"line": span[0], **place, **costs}
                if counted is not None:
                    row["counted"] = counted.get(span, dict.fromkeys(costs, 0))
                rows.append(row)
        return rows


class _Part:
    """The events of a whole run, or of a part of it."""

    def __init__(
        self,
        lines: Iterable[Mapping[str, Any]],
        calls: Iterable[SyncRow],
        queued: Iterable[SyncRow],
        *,
        heard: bool,
    ) -> None:
        self._heard = heard
        self._lines: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for line in lines:
            self._lines[os.path.realpath(line["path"])].append(line)
        self._calls = _by_path(calls)
        self._queued = _by_path(queued)

    def costs(self, path: str, statements: Statements) -> dict[Span, dict[str, int]]:
        """Return the costs of the statements of a file in which anything was counted."""
        spent: dict[Span, list[Counts]] = defaultdict(list)
        for line in self._lines.get(path, ()):
            spent[statements.span(line["line"])].append(Counts(**line["counts"]))
        calls = _by_span(self._calls.get(path, ()), statements)
        queued = _by_span(self._queued.get(path, ()), statements)
        return {
            span: dict(
                _costs(
                    total(spent.get(span, ())),
                    calls.get(span, ()),
                    queued.get(span, ()),
                    heard=self._heard,
                )
            )
            for span in {*spent, *calls, *queued}
        }


def _by_path(rows: Iterable[SyncRow]) -> Mapping[str, list[SyncRow]]:
    found: dict[str, list[SyncRow]] = defaultdict(list)
    for row in rows:
        found[os.path.realpath(row.path)].append(row)
    return found


def _by_span(rows: Iterable[SyncRow], statements: Statements) -> Mapping[Span, list[SyncRow]]:
    found: dict[Span, list[SyncRow]] = defaultdict(list)
    for row in rows:
        found[statements.span(row.line)].append(row)
    return found


def _costs(
    counts: Counts, calls: Sequence[SyncRow], queued: Sequence[SyncRow], *, heard: bool
) -> Iterator[tuple[str, int]]:
    """Yield the waits, the reads on the host alone, and the copies by whether they can wait."""
    yield "waits", statement_waits(calls, counts, heard=heard)[0]
    yield "on_host", sum(row.times for row in calls if is_on_host(row))
    asynchronous = sum(row.times for row in queued if row.kind == NON_BLOCKING)
    seeming = sum(row.times for row in queued) - asynchronous
    yield "waiting_transfers", max(0, counts.transfers - asynchronous - seeming)
    yield "non_blocking_transfers", asynchronous
    yield "seeming_transfers", seeming
