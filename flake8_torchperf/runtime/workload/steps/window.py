"""Counts the steps of a process, and keeps what was counted in those after the warm-up.

Tables are copied where the warm-up ends and where each step after it does; only the difference of
the first and the last copy becomes lines. Work after the last step thus belongs to none.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from time import perf_counter

from flake8_torchperf.runtime.counting.counter import DispatchCounter
from flake8_torchperf.runtime.counting.counts import Counts, total
from flake8_torchperf.runtime.counting.recording.recorder import Recorder
from flake8_torchperf.runtime.counting.recording.tables import NO_TABLES, Tables, line_evidence
from flake8_torchperf.runtime.workload.exchange import Stepped
from flake8_torchperf.runtime.workload.steps.markers import Markers
from flake8_torchperf.runtime.workload.steps.step_names import OPTIMIZER, PROFILER, named_function
from flake8_torchperf.runtime.workload.sync_recorder import Key, Witness


@dataclass(frozen=True)
class _Copy:
    """The counts at the end of a step. ``at`` is in seconds, without those spent copying."""

    at: float
    graph_breaks: int
    tables: dict[Recorder, Tables]
    seen: dict[Key, tuple[int, int]]


@dataclass
class _Marked:
    """The steps that one marker ended."""

    seen: int = 0
    first: _Copy | None = None
    last: _Copy | None = None


@dataclass
class _All:
    """The steps by marker, and the seconds spent on copies."""

    marked: dict[str, _Marked] = field(default_factory=dict)
    spent: float = 0.0


class Steps:
    """Give its ``markers`` each function that returns, and ask for `stepped` at the end."""

    def __init__(self, step: str, warmup: int, counter: DispatchCounter, witness: Witness) -> None:
        self.markers = Markers(named_function(step), self._ended)
        self._step = step
        self._warmup = warmup
        self._counter = counter
        self._witness = witness
        self._all = _All()
        self._start = self._copy()

    def begin(self) -> None:
        """Forget all steps; the first begins now."""
        self._all = _All()
        self._start = self._copy()

    def _copy(self) -> _Copy:
        began = perf_counter()
        tables, seen = self._counter.tables(), self._witness.seen()
        at = began - self._all.spent
        self._all.spent += perf_counter() - began
        return _Copy(at, self._counter.graph_breaks, tables, seen)

    def _ended(self, marker: str) -> None:
        if self._step in (OPTIMIZER, PROFILER) and marker != self._step:
            return
        marked = self._all.marked.setdefault(marker, _Marked())
        marked.seen += 1
        if marked.seen == self._warmup:
            marked.first = self._copy()
        elif marked.seen > self._warmup:
            marked.last = self._copy()

    def stepped(self) -> Stepped:
        """Return the steps so far: those of optimizers, unless only a profiler went on."""
        marker, marked = max(
            self._all.marked.items(),
            key=lambda one: (one[1].seen > self._warmup, one[0] == OPTIMIZER),
            default=(self._step, _Marked()),
        )
        optimizers = self.markers.optimizers if marker == OPTIMIZER else ()
        first, last = marked.first or self._start, marked.last
        if last is None:
            return Stepped(marker, optimizers, self._warmup, marked.seen)
        lines = line_evidence(
            {
                recorder: tables.since(first.tables.get(recorder, NO_TABLES))
                for recorder, tables in last.tables.items()
            }
        )
        # The last part of a key is the reason of a region that allows to wait.
        seen = {
            key: (times, numel)
            for key, (all_times, numel) in last.seen.items()
            if not key[-1] and (times := all_times - first.seen.get(key, (0, 0))[0])
        }
        breaks = Counts(graph_breaks=last.graph_breaks - first.graph_breaks)
        return Stepped(
            marker,
            optimizers,
            self._warmup,
            marked.seen,
            last.at - first.at,
            asdict(total(one.counts for one in lines) + breaks),
            tuple(one.to_dict() for one in lines),
            self._witness.rows_of(seen),
        )
