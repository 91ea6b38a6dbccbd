"""When the events of one process happened, for a timeline. Knows nothing about torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from types import CodeType
from typing import Any

from flake8_torchperf.runtime.counting.user_frames import lines_of

MOST = 200_000
"""The most moments that are kept: some 40 MB of a trace, which Perfetto still opens quickly."""


@dataclass(frozen=True)
class Moment:
    """One event. ``began`` and ``took`` are in nanoseconds of the system's monotonic clock.

    ``category`` is a counter's name, "graph_breaks" or the category of a `SyncRow`; ``kind``,
    ``operation``, ``times`` and ``firm`` are as there. ``size`` is the bytes copied.
    """

    began: int
    took: int
    thread: int
    category: str
    kind: str
    operation: str
    path: str
    line: int
    times: int
    size: int
    firm: bool


@dataclass(frozen=True)
class Timeline:
    """The moments of a process that began at ``began``; ``dropped`` more were not kept.

    ``threads`` are the names of its threads, by the numbers that the moments have.
    """

    process: int
    began: int
    threads: tuple[str, ...]
    moments: tuple[Moment, ...]
    dropped: int

    def to_data(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return {**vars(self), "moments": [list(vars(one).values()) for one in self.moments]}


def timeline_of(data: Mapping[str, Any]) -> Timeline:
    """Return the timeline that `Timeline.to_data` wrote."""
    moments = tuple(Moment(*values) for values in data["moments"])
    return Timeline(**{**data, "threads": tuple(data["threads"]), "moments": moments})


class Moments:
    """Collects moments, in whatever thread they happen."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew, now."""
        self._lock = threading.Lock()  # A forked process may have inherited a held one.
        self._began = perf_counter_ns()
        # A moment without its place, and the code object and offset of that.
        self._kept: list[tuple[tuple[int, int, int, str, str, str, int, int, bool], CodeType, int]]
        self._kept = []
        self._threads: dict[tuple[int, str], int] = {}
        self._dropped = 0

    def add(
        self,
        place: tuple[CodeType, int],
        began: int,
        category: str,
        kind: str,
        operation: str,
        *,
        times: int = 1,
        size: int = 0,
        firm: bool = False,
    ) -> None:
        """Keep an event that began at a time and ends now; 0 for one that takes no time."""
        now = perf_counter_ns()
        took = now - began if began else 0
        # Threads reuse the numbers of those that ended, but seldom under the same name.
        thread = (threading.get_ident(), threading.current_thread().name)
        with self._lock:
            if len(self._kept) >= MOST:
                self._dropped += 1
                return
            number = self._threads.setdefault(thread, len(self._threads))
            event = (began or now, took, number, category, kind, operation, times, size, firm)
            self._kept.append((event, *place))

    def timeline(self) -> Timeline:
        """Return what was kept so far."""
        # Without the lock, which this thread may hold: a signal's handler writes the results.
        kept, threads = list(self._kept), [name for _, name in list(self._threads)]
        lines: dict[CodeType, dict[int, int]] = {}
        moments = []
        for (began, took, thread, category, kind, operation, times, size, firm), code, at in kept:
            if code not in lines:
                lines[code] = lines_of(code)
            path, line = code.co_filename, lines[code].get(at, code.co_firstlineno)
            moments.append(
                Moment(
                    began, took, thread, category, kind, operation, path, line, times, size, firm
                )
            )
        return Timeline(os.getpid(), self._began, tuple(threads), tuple(moments), self._dropped)
