"""The counts of threads at some moment, and what they are by source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from flake8_torchperf.runtime.counting.counts import (
    ELSEWHERE,
    AllowedEvidence,
    Counts,
    LineEvidence,
    Observation,
    OpEvidence,
    total,
)
from flake8_torchperf.runtime.counting.op_schemas import Operation
from flake8_torchperf.runtime.counting.recording.recorder import Recorder
from flake8_torchperf.runtime.counting.user_frames import lines_of, qualified_name


@dataclass(frozen=True)
class Tables:
    """The counts of one thread at some moment, by place: cheap to copy, not yet lines.

    ``cells`` holds dispatches and nanoseconds by code object, offset and operation; ``events``,
    ``waited`` and ``shapes`` are the recorder's, the last its ``allowed_shapes``.
    """

    cells: Mapping[tuple[int, int, int], tuple[int, int]]
    events: Mapping[tuple[int, int, str, str, str], tuple[int, int]]
    waited: Mapping[tuple[int, int, str], int]
    shapes: Mapping[tuple[int, int, str, str], int]

    def since(self, before: Tables) -> Tables:
        """Return what was counted after an earlier moment."""
        return Tables(
            {
                key: both
                for key, now in self.cells.items()
                if any(both := _less(now, before.cells, key))
            },
            {
                key: both
                for key, now in self.events.items()
                if any(both := _less(now, before.events, key))
            },
            _counted_since(self.waited, before.waited),
            _counted_since(self.shapes, before.shapes),
        )


NO_TABLES = Tables({}, {}, {}, {})


def _counted_since(now: Mapping[Any, int], before: Mapping[Any, int]) -> dict[Any, int]:
    return {key: n - before.get(key, 0) for key, n in now.items() if n != before.get(key, 0)}


def _less(now: tuple[int, int], before: Mapping[Any, tuple[int, int]], key: Any) -> tuple[int, int]:
    first, second = before.get(key, (0, 0))
    return now[0] - first, now[1] - second


def tables(recorder: Recorder) -> Tables:
    """Return a copy of the counts of a thread, which may go on counting."""
    return Tables(
        {(code, at, id(cell[5])): (cell[0], cell[1]) for code, at, cell in recorder.all_cells()},
        {key: (seen[0], seen[1]) for key, seen in list(recorder.events.items())},
        dict(list(recorder.nanoseconds_waited.items())),
        dict(list(recorder.allowed_shapes.items())),
    )


def line_evidence(counted: Mapping[Recorder, Tables]) -> tuple[LineEvidence, ...]:
    """Return the counts of some threads, added up and resolved to source lines."""
    return _in_order(_resolved(counted).lines())


def _resolved(counted: Mapping[Recorder, Tables]) -> _Lines:
    resolved = _Lines()
    for recorder, seen in counted.items():
        resolved.add(recorder, seen)
    return resolved


def _in_order(lines: Iterable[LineEvidence]) -> tuple[LineEvidence, ...]:
    return tuple(sorted(lines, key=lambda one: (one.path, one.line)))


def evidence(
    recorders: Sequence[Recorder], level: str, seconds: float, graph_breaks: int
) -> Observation:
    """Return the counts of some threads so far, added up and resolved to source lines."""
    resolved = _resolved({recorder: tables(recorder) for recorder in recorders})
    lines = _in_order(resolved.lines())
    totals = total(one.counts for one in lines) + Counts(graph_breaks=graph_breaks)
    allowed = tuple(sorted(resolved.allowed(), key=lambda one: (one.path, one.line, one.reason)))
    return Observation(level, seconds, lines, _by_operation(recorders), totals, allowed)


def _by_operation(recorders: Sequence[Recorder]) -> tuple[OpEvidence, ...]:
    dispatches: dict[str, int] = defaultdict(int)
    nanoseconds: dict[str, int] = defaultdict(int)
    samples: dict[str, list[int]] = defaultdict(list)
    for recorder in recorders:
        for _, _, cell in recorder.all_cells():
            name = recorder.operations[id(cell[5])].name
            dispatches[name] += cell[0]
            nanoseconds[name] += cell[1]
        for func, durations in list(recorder.durations.items()):
            samples[recorder.operations[func].name].extend(list(durations))
    names = sorted(dispatches, key=lambda name: (-dispatches[name], name))
    return tuple(
        OpEvidence(name, dispatches[name], nanoseconds[name] / 1e9, tuple(samples[name]))
        for name in names
    )


class _Lines:
    """Gathers the cells and events of recorders by source line."""

    def __init__(self) -> None:
        self.ops: dict[tuple[str, int, str], dict[str, int]] = {}
        self.events: dict[tuple[str, int, str], dict[str, dict[str, int]]] = {}
        self.counts: dict[tuple[str, int, str], Counts] = defaultdict(Counts)
        self.by_reason: dict[tuple[str, int, str, str], Counts] = defaultdict(Counts)
        self.line_tables: dict[int, dict[int, int]] = {}

    def add(self, recorder: Recorder, seen: Tables) -> None:
        codes = recorder.codes
        for (code, offset, func), cell in seen.cells.items():
            self._add_cell(self._line(codes, code, offset), recorder.operations[func], cell)
        for (code, offset, counter, cause, reason), (times, size) in seen.events.items():
            key = self._line(codes, code, offset)
            if reason:
                self._add_allowed(key, reason, _counts_of(counter, cause, times, size))
            else:
                self._add_event(key, counter, cause, times, size)
        for (code, offset, reason), waited in seen.waited.items():
            key = self._line(codes, code, offset)
            if reason:
                self._add_allowed(key, reason, Counts(waited=waited / 1e9))
            else:
                self.counts[key] += Counts(waited=waited / 1e9)
        for (code, offset, name, reason), times in seen.shapes.items():
            key = self._line(codes, code, offset)
            self._add_allowed(key, reason, Counts(dynamic_shapes=times))
            self.counts[key] += Counts(dynamic_shapes=-times)
            self._add_cause(key, "dynamic_shapes", name, -times)

    def lines(self) -> list[LineEvidence]:
        return [
            LineEvidence(*key, counts, self.ops.get(key, {}), self.events.get(key, {}))
            for key, counts in self.counts.items()
        ]

    def allowed(self) -> list[AllowedEvidence]:
        return [AllowedEvidence(*key, counts) for key, counts in self.by_reason.items()]

    def _line(
        self, codes: Mapping[int, CodeType], code_id: int, offset: int
    ) -> tuple[str, int, str]:
        code = codes.get(code_id)
        if code is None:
            return ELSEWHERE, 0, ""
        if code_id not in self.line_tables:
            self.line_tables[code_id] = lines_of(code)
        line = self.line_tables[code_id].get(offset, code.co_firstlineno)
        return code.co_filename, line, qualified_name(code)

    def _add_cell(self, key: tuple[str, int, str], op: Operation, cell: tuple[int, int]) -> None:
        times, nanoseconds = cell
        ops = self.ops.setdefault(key, {})
        ops[op.name] = ops.get(op.name, 0) + times
        self.counts[key] += Counts(
            dispatches=times,
            dynamic_shapes=times * op.dynamic,
            allocations=times * op.allocates,
            factories=times * op.factory,
            seconds=nanoseconds / 1e9,
        )
        if op.dynamic:
            self._add_cause(key, "dynamic_shapes", op.name, times)

    def _add_event(
        self, key: tuple[str, int, str], counter: str, cause: str, times: int, size: int
    ) -> None:
        self._add_cause(key, counter, cause, times)
        self.counts[key] += _counts_of(counter, cause, times, size)

    def _add_allowed(self, key: tuple[str, int, str], reason: str, counts: Counts) -> None:
        place = (*key, reason)
        self.by_reason[place] += counts

    def _add_cause(self, key: tuple[str, int, str], counter: str, cause: str, times: int) -> None:
        causes = self.events.setdefault(key, {}).setdefault(counter, {})
        causes[cause] = causes.get(cause, 0) + times
        if not causes[cause]:
            del causes[cause]


def _counts_of(counter: str, cause: str, times: int, size: int) -> Counts:
    """Return the counts of an event that happened several times."""
    moved = {}
    if counter == "transfers" and cause.startswith("to-host"):
        moved = {"bytes_to_host": size}
    elif counter == "transfers":
        moved = {"bytes_to_device": size, "copies_to_device": times}
    return Counts(**{counter: times, **moved})
