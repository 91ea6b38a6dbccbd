"""Writes the timelines of a run's processes as one trace in Chrome's format.

Perfetto and chrome://tracing open it. The format is "Trace Event Format" of the Chromium project;
times are in microseconds. Knows nothing about torch.
"""

from __future__ import annotations

import json
import linecache
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from flake8_torchperf.runtime.counting.moments import Moment, Timeline
from flake8_torchperf.runtime.workload.copies.report import REASONS
from flake8_torchperf.runtime.workload.device_reports import was_heard
from flake8_torchperf.runtime.workload.exchange import (
    IN_ONE_PIECE,
    NON_BLOCKING,
    QUEUED,
    Observed,
    SyncRow,
)
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun
from flake8_torchperf.runtime.workload.summary import shown_path
from flake8_torchperf.runtime.workload.waits import would_wait

WAIT, TRANSFER, SEEMING, BREAK = "wait", "transfer", "looks asynchronous", "graph break"
"""The categories of the slices."""

_READ = "host_reads"

Event = dict[str, Any]


def as_trace(run: MergedRun, command: Iterable[str]) -> str:
    """Return the text of the file. Times count from the start of the first process."""
    processes = [(one, one.timeline) for one in (*run.processes, *run.data_workers) if one.timeline]
    zero = min((timeline.began for _, timeline in processes), default=0)
    events: list[Event] = []
    for observed, timeline in processes:
        events += _names(observed, timeline)
        events += _events(observed, timeline, zero)
    data = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "command": " ".join(command),
            "torch": run.merged.torch if run.merged else "",
            "device": run.merged.device if run.merged else "",
            "dropped": sum(timeline.dropped for _, timeline in processes),
        },
    }
    return json.dumps(data) + "\n"


def _names(observed: Observed, timeline: Timeline) -> Iterator[Event]:
    name = "program" if observed.rank is None else f"rank {observed.rank}"
    if observed.data_worker is not None:
        name += f", data worker {observed.data_worker}"
    named = {"ph": "M", "pid": timeline.process, "ts": 0}
    yield {**named, "name": "process_name", "tid": 0, "args": {"name": name}}
    for number, thread in enumerate(timeline.threads):
        yield {**named, "name": "thread_name", "tid": number, "args": {"name": thread}}


def _events(observed: Observed, timeline: Timeline, zero: int) -> Iterator[Event]:
    heard = was_heard(observed)
    shown = [(one, _shown(one, heard)) for one in timeline.moments]
    calls = _Intervals(
        one for one, told in shown if told and told[0] == WAIT and one.category != _READ
    )
    for one, told in sorted(shown, key=lambda pair: pair[0].began):
        # A counter sees the read in a call as well.
        if told is None or (one.category == _READ and calls.meet(one)):
            continue
        category, name = told
        event = {
            "name": name,
            "cat": category,
            "ts": (one.began - zero) / 1e3,
            "pid": timeline.process,
            "tid": one.thread,
            "args": _arguments(one, heard),
        }
        if category == BREAK:
            yield {**event, "ph": "i", "s": "t"}  # an instant, of its thread
        else:
            yield {**event, "ph": "X", "dur": one.took / 1e3}


class _Intervals:
    """The times of some moments, by thread."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        # Where each begins, in order, and how late those end that have begun by then.
        self._begun: dict[int, list[int]] = {}
        self._ended: dict[int, list[int]] = {}
        for one in sorted(moments, key=lambda one: one.began):
            ended = self._ended.setdefault(one.thread, [])
            self._begun.setdefault(one.thread, []).append(one.began)
            ended.append(max([one.began + one.took, *ended[-1:]]))

    def meet(self, moment: Moment) -> bool:
        """True if one of them and this moment happened at the same time."""
        end = moment.began + moment.took
        place = bisect_right(self._begun.get(moment.thread, []), end)
        return place > 0 and self._ended[moment.thread][place - 1] >= moment.began


def _shown(moment: Moment, heard: bool) -> tuple[str, str] | None:
    """Return the category and name of a slice; None for a moment that is not shown.

    Where the device reported its waits, these are the waits, and the calls are not asked.
    """
    match moment.category:
        case "graph_breaks":
            return BREAK, moment.operation
        case "transfers":
            return TRANSFER, moment.operation
        case "synchronisations":
            return WAIT, moment.operation
        case "device_syncs":
            return (WAIT, moment.operation) if heard else None
        case "host_reads":
            return None if heard else (WAIT, moment.operation)
        case "queued":
            kind = moment.kind.removeprefix(IN_ONE_PIECE)
            if kind == NON_BLOCKING:
                return None
            return SEEMING, f"{moment.operation}: {REASONS[kind]}"
    if heard or not would_wait(_row(moment)):
        return None
    return WAIT, moment.operation


def _row(moment: Moment) -> SyncRow:
    return SyncRow(
        moment.path,
        moment.line,
        moment.category,
        moment.kind,
        moment.operation,
        moment.times,
        0,
        firm=moment.firm,
    )


def _arguments(moment: Moment, heard: bool) -> dict[str, Any]:
    told = {
        "file": shown_path(moment.path),
        "line": moment.line,
        "kind": moment.kind or moment.category,
        "count": moment.times,
        "source": linecache.getline(moment.path, moment.line).strip(),
    }
    if moment.size:
        told["bytes"] = moment.size
    if moment.category not in (QUEUED, "transfers", "graph_breaks", "synchronisations"):
        told["how"] = "reported by the device" if heard else "inferred"
    return told
