"""Watches the calls and lines of a process, and says what was observed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from flake8_torchperf.runtime.api.contracts import ContractFrames
from flake8_torchperf.runtime.api.text_report import metrics_report
from flake8_torchperf.runtime.counting.counter import DispatchCounter, Level
from flake8_torchperf.runtime.counting.moments import Moments
from flake8_torchperf.runtime.workload.copies.queued import pinned_of_this_machine
from flake8_torchperf.runtime.workload.exchange import Observed, Plan
from flake8_torchperf.runtime.workload.gate.stop import raise_at_wait
from flake8_torchperf.runtime.workload.ownership import owner_of
from flake8_torchperf.runtime.workload.ranks.environment import given_rank
from flake8_torchperf.runtime.workload.steps.window import Steps
from flake8_torchperf.runtime.workload.sync_recorder import Witness
from flake8_torchperf.runtime.workload.timeline.breaks import noted
from flake8_torchperf.runtime.workload.watching.executed_lines import ExecutedLines
from flake8_torchperf.runtime.workload.watching.kept_inputs import KeptInputs


class Watch:
    """The counter, the witness and the lines of one process.

    ``tick`` is called now and then while the program runs.
    """

    def __init__(self, plan: Plan, tick: Callable[[], None] | None = None) -> None:
        owns = owner_of(plan.owners, plan.defaults)
        level: Level = "reads" if plan.level == "reads" else "full"
        self._counter = DispatchCounter(level, owner=owns)
        waits = (lambda: self._counter.device_waits) if torch.cuda.is_available() else None
        frames = None if plan.contracts is None else ContractFrames(plan.contracts)
        around = None if frames is None else frames.around
        pinned = pinned_of_this_machine()
        self._moments = Moments() if plan.trace else None
        self._witness = Witness(owns, waits, around, tick, pinned, self._moments)
        self._counter.leave_out(self._witness.is_on_host, self._witness.was_made_on_host)
        self._inputs = KeptInputs(owns, Path(plan.inputs)) if plan.inputs else None
        self._steps: Steps | None = None
        if plan.warmup is not None:
            self._steps = Steps(plan.step, plan.warmup, self._counter, self._witness)
        markers = None if self._steps is None else self._steps.markers
        self._lines = ExecutedLines(owns, counts=plan.profile, markers=markers)
        self._owns = owns
        self._rank = given_rank()
        self._counter.time_waits()
        self._counter.tell(self._witness.chains.add)
        if self._moments is not None:
            self._counter.keep_moments(self._moments)
        self._counter.count_every_thread()
        if plan.stops:
            self._counter.stop_at_waits(raise_at_wait)

    @contextlib.contextmanager
    def watching(self, around: FrameType | None = None) -> Iterator[None]:
        """Watch the lines and calls of this thread, and the lines of the frames ``around``."""
        with self._counter, self._witness, self._ranks_noted(), self._breaks_noted():
            self.forget()  # The witness's own preparation was counted.
            self._lines.start(around)
            if self._inputs is not None:
                self._inputs.start()
            try:
                yield
            finally:
                if self._inputs is not None:
                    self._inputs.stop()
                self._lines.stop()

    def forget(self) -> None:
        """Discard all counts. Lines that ran remain noted: `sys.monitoring` tells them once."""
        self._counter.reset()
        self._witness.forget()
        self._lines.forget_times()
        if self._moments is not None:
            self._moments.clear()
        if self._steps is not None:
            self._steps.begin()

    def _breaks_noted(self) -> contextlib.AbstractContextManager[None]:
        """Note graph breaks for a timeline."""
        if self._moments is None:
            return contextlib.nullcontext()
        return noted(self._moments, self._owns)

    @contextlib.contextmanager
    def _ranks_noted(self) -> Iterator[None]:
        """Remember the process's rank beyond the end of its process group."""
        distributed: Any = torch.distributed
        if not distributed.is_available():
            yield
            return
        destroy = distributed.destroy_process_group

        def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
            self._rank = rank_in_group(self._rank)
            return destroy(*args, **kwargs)

        distributed.destroy_process_group = destroy_process_group
        try:
            yield
        finally:
            self._rank = rank_in_group(self._rank)
            distributed.destroy_process_group = destroy

    def observed(self, ended: str) -> Observed:
        """Return the observations so far."""
        evidence = self._counter.evidence
        device = (
            torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        )
        worker = torch.utils.data.get_worker_info()
        notes = []
        if self._lines.uncounted:
            notes.append(
                "threads that ran before counting began, or that C code started, are not counted: "
                f"{self._lines.uncounted} of their lines are left out"
            )
        if self._lines.disturbed:
            notes.append(
                "the workload set a trace function of its own (a debugger, coverage.py): "
                "lines that ran after that may be missing"
            )
        timeline = None if self._moments is None else self._moments.timeline()
        if timeline and timeline.dropped:
            notes.append(
                f"the trace holds the first {len(timeline.moments):,} events: {timeline.dropped:,} "
                "more are left out"
            )
        return Observed(
            torch=torch.__version__,
            device=str(device or "cpu"),
            level=evidence.level,
            seconds=evidence.seconds,
            totals=evidence.totals.to_dict(),
            lines=tuple(one.to_dict() for one in evidence.lines),
            executed={name: frozenset(ran) for name, ran in self._lines.by_file.items()},
            syncs=self._witness.rows,
            metrics=metrics_report(evidence),
            ended=ended,
            notes=tuple(notes),
            rank=rank_in_group(self._rank),
            data_worker=None if worker is None else worker.id,
            times=self._lines.times,
            timeline=timeline,
            allowed=tuple(one.to_dict() for one in evidence.allowed),
            led=self._witness.chains.rows,
            steps=None if self._steps is None else self._steps.stepped(),
        )


def rank_in_group(otherwise: int | None) -> int | None:
    """Return the rank in the default process group, else ``otherwise`` or the given rank."""
    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return given_rank() if otherwise is None else otherwise
