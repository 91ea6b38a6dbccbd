"""Adds up the recordings of the processes of one run, as a `MergedRun`.

Ranks and other processes count together; the workers of a DataLoader are listed apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flake8_torchperf.runtime.workload.exchange import Observed, Stepped
from flake8_torchperf.runtime.workload.ranks.recordings import Recording

NOT_STARTED = "not started"
"""The end of a process whose program could not be found or compiled."""


@dataclass(frozen=True)
class MergedRun:
    """One run of one or many processes.

    ``merged`` is the sum over all processes except the workers of DataLoaders, None if no process
    left a result; ``ranks`` holds the sums by rank, empty if there is only one process. ``problem``
    says why a recording cannot be read, ``not_started`` names a program that never ran;
    ``processes`` are those that ``merged`` adds up.
    """

    merged: Observed | None
    ranks: Mapping[int, Observed] = field(default_factory=dict)
    data_workers: tuple[Observed, ...] = ()
    problem: str = ""
    not_started: str = ""
    processes: tuple[Observed, ...] = ()

    @property
    def in_data_workers(self) -> Observed | None:
        """The observations of all workers of DataLoaders together; None if there are none."""
        return merge(self.data_workers) if self.data_workers else None

    def by_rank(self) -> Mapping[int, MergedRun]:
        """Return the part of each rank as a separate run; a process without a rank is rank 0."""
        if self.merged is None:
            return {}
        if not self.ranks:
            return {self.merged.rank or 0: self}
        return {
            rank: MergedRun(
                one,
                data_workers=tuple(worker for worker in self.data_workers if worker.rank == rank),
                processes=tuple(process for process in self.processes if process.rank == rank),
            )
            for rank, one in self.ranks.items()
        }


def bring_together(recordings: Sequence[Recording], expected: Iterable[int] = ()) -> MergedRun:
    """Return the run of these processes. ``expected`` are ranks that should be among them."""
    seen = [one.observed for one in recordings if one.observed is not None]
    began = [one for one in seen if one.ended != NOT_STARTED]
    data_workers = tuple(one for one in began if one.data_worker is not None)
    counted = [one for one in began if one.data_worker is None]
    problem = next((one.problem for one in recordings if one.problem), "")
    if not counted or (len(counted) < len(seen) and not any(one.executed for one in counted)):
        return MergedRun(None, problem=problem, not_started=_not_started(recordings))
    by_rank: dict[int, list[Observed]] = {}
    for one in counted:
        if one.rank is not None:
            by_rank.setdefault(one.rank, []).append(one)
    ranks = {rank: merge(few) for rank, few in sorted(by_rank.items())}
    notes = (*_lost(recordings), *_missing(set(expected) - _known(recordings)))
    merged = merge(counted)
    merged = replace(merged, notes=(*merged.notes, *notes))
    ranks = ranks if len(counted) > 1 else {}
    return MergedRun(merged, ranks, data_workers, problem, processes=tuple(counted))


def _not_started(recordings: Iterable[Recording]) -> str:
    for one in recordings:
        if one.plan and one.observed and one.observed.ended == NOT_STARTED:
            return one.plan.script
    return ""


def _known(recordings: Iterable[Recording]) -> set[int]:
    planned = {one.plan.rank for one in recordings if one.plan is not None}
    seen = {one.observed.rank for one in recordings if one.observed is not None}
    return {one for one in planned | seen if one is not None}


def _missing(ranks: Iterable[int]) -> list[str]:
    return [f"rank {rank} had not started when this report was made" for rank in sorted(ranks)]


def _lost(recordings: Iterable[Recording]) -> list[str]:
    """Return a note for each worker whose recording is missing."""
    notes = []
    for place, one in enumerate(recordings):
        if one.observed is None and one.plan is not None and not one.plan.is_fork_server:
            rank = one.plan.rank
            who = "a process that the workload started" if place else "the first process"
            who = f"rank {rank}" if rank is not None else who
            why = (
                f"cannot be read: {one.problem}"
                if one.problem
                else "is missing: killed, or os._exit"
            )
            notes.append(f"the recording of {who} {why}")
    return notes


def merge(processes: Sequence[Observed]) -> Observed:
    """Return the sum of some processes' observations; ``seconds`` are those of the slowest.

    Lines and synchronisations are only listed one after the other: readers add them up by line. How
    often a line ran is recorded for each process alone.
    """
    first, *others = processes
    if not others:
        return first
    executed: dict[str, frozenset[int]] = {}
    for one in processes:
        for name, lines in one.executed.items():
            executed[name] = executed.get(name, frozenset()) | lines
    return replace(
        first,
        device=", ".join(dict.fromkeys(one.device for one in processes)),
        seconds=max(one.seconds for one in processes),
        totals=_sums([one.totals for one in processes]),
        lines=tuple(line for one in processes for line in one.lines),
        executed=executed,
        syncs=tuple(row for one in processes for row in one.syncs),
        allowed=tuple(row for one in processes for row in one.allowed),
        metrics="\n".join(f"{_name(one)}\n{one.metrics}" for one in processes),
        ended=", ".join(dict.fromkeys(one.ended for one in processes)),
        notes=tuple(dict.fromkeys(note for one in processes for note in one.notes)),
        times={},
        timeline=None,
        led=tuple(row for one in processes for row in one.led),
        steps=_steps([one.steps for one in processes if one.steps is not None]),
        rank=first.rank if all(one.rank == first.rank for one in processes) else None,
    )


def _steps(processes: Sequence[Stepped]) -> Stepped | None:
    """Return the sum of the steps: what one step of one process cost stays the same."""
    if not processes:
        return None
    counted = [one for one in processes if one.counted]
    if not counted:
        return max(processes, key=lambda one: one.seen)
    first = max(counted, key=lambda one: len(one.optimizers))
    return replace(
        first,
        seen=first.warmup + sum(one.counted for one in counted),
        seconds=sum(one.seconds for one in counted),
        totals=_sums([one.totals for one in counted]),
        lines=tuple(line for one in counted for line in one.lines),
        syncs=tuple(row for one in counted for row in one.syncs),
    )


def _name(process: Observed) -> str:
    return "A process without a rank" if process.rank is None else f"Rank {process.rank}"


def _sums(counts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for one in counts for name in one)
    return {name: sum(one.get(name, 0) for one in counts) for name in names}
