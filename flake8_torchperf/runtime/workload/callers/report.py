"""The callers of each statement that waited, for a report. Knows nothing about torch.

Those waits are told that the report counts: where a device reported its waits, these; otherwise the
calls that would wait, or what a library did inside a statement that made no such call itself.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from flake8_torchperf.runtime.counting.counts import INFERRED_WAITS, REPORTED_WAITS
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.exchange import Led, Observed, Place, SyncRow
from flake8_torchperf.runtime.workload.waits import is_on_host, would_wait
from flake8_torchperf.syntax.statement_lines import Span

SHOWN = 5
"""The most callers of a statement that a text lists."""
_COUNTERS = frozenset((*INFERRED_WAITS, *REPORTED_WAITS))
_Way: TypeAlias = "tuple[Place | None, tuple[Place, ...]]"


class Callers:
    """The ways to the waits of a run, by statement."""

    def __init__(self, observed: Observed) -> None:
        self._heard = device_reports.was_heard(observed)
        self._rows: dict[str, list[Led]] = defaultdict(list)
        for row in observed.led:
            self._rows[os.path.realpath(row.frames[0][0])].append(row)

    def at(self, path: str, span: Span) -> list[dict[str, Any]]:
        """Return the ways to the waits of a statement, the most frequent first.

        ``frames`` are the calls outside the statement, the innermost first; ``library`` is the line
        of a library that waited, or None.
        """
        here = [one for one in self._rows.get(path, ()) if span[0] <= one.frames[0][1] <= span[1]]
        ways: dict[_Way, int] = {}
        for one in self._counted(here):
            way = one.library, one.frames[1:]
            ways[way] = ways.get(way, 0) + one.times
        if not any(library or frames for library, frames in ways):
            return []  # Only the statement itself, at module level.
        return [
            {
                "count": times,
                "library": None if library is None else _place(library),
                "frames": [_place(one) for one in frames],
            }
            for (library, frames), times in sorted(ways.items(), key=lambda one: -one[1])
        ]

    def _counted(self, here: Sequence[Led]) -> Iterable[Led]:
        if self._heard:
            return [one for one in here if one.source in REPORTED_WAITS]
        calls = [one for one in here if one.source not in _COUNTERS]
        inside = ("synchronisations",) if calls else INFERRED_WAITS
        rows = [(one, _row(one)) for one in calls]
        told = [one for one, row in rows if would_wait(row)]
        # A statement of which all tensors are the host's is told as such.
        told = told or [one for one, row in rows if is_on_host(row)]
        return [*told, *(one for one in here if one.source in inside)]


def _row(led: Led) -> SyncRow:
    path, line, _ = led.frames[0]
    return SyncRow(path, line, led.source, led.kind, "", led.times, 0, firm=led.firm)


def _place(place: Place) -> dict[str, Any]:
    path, line, function = place
    return {"path": shown(path), "line": line, "function": function}


def shown(path: str) -> str:
    """Return the path of an installed package from its folder, others from the current one."""
    real = os.path.realpath(path)
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = real.rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return rest
    here = os.path.realpath(os.getcwd()) + os.sep
    return real.removeprefix(here)


def in_words(callers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each way to a statement, at most `SHOWN`, and how many more there are."""
    lines = [_way(one) for one in callers[:SHOWN]]
    if more := callers[SHOWN:]:
        lines.append(f"{sum(one['count'] for one in more):,}x from {len(more)} more callers")
    return lines


def _way(caller: Mapping[str, Any]) -> str:
    words = f"{caller['count']:,}x"
    if library := caller["library"]:
        words += f" in {_named(library)}"
    if frames := caller["frames"]:
        words += f" from {', from '.join(map(_named, frames))}"
    return words


def _named(place: Mapping[str, Any]) -> str:
    return f"{place['path']}:{place['line']} {place['function']}"
