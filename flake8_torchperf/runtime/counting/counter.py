"""DispatchCounter: opens everything that counts, always closes it, and returns evidence."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter
from types import FrameType
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import _pop_mode, _push_mode

from flake8_torchperf.runtime.counting import dispatch_modes, interceptors, threads
from flake8_torchperf.runtime.counting.counts import Observation
from flake8_torchperf.runtime.counting.cuda_syncs import SyncWatch
from flake8_torchperf.runtime.counting.moments import Moments
from flake8_torchperf.runtime.counting.recording.recorder import Recorder
from flake8_torchperf.runtime.counting.recording.recorders import Recorders
from flake8_torchperf.runtime.counting.recording.tables import Tables
from flake8_torchperf.runtime.counting.user_frames import Owner, owner_predicate

Level = Literal["full", "reads"]

_latest: DispatchCounter | None = None


def latest() -> DispatchCounter | None:
    """Return the counter of this process that was opened last, open or closed."""
    return _latest


class DispatchCounter:
    """Counts, per source line and per operation, what PyTorch code makes the device and host do.

        with DispatchCounter() as counter:
            train_step(batch)
        print(counter.evidence.totals.host_reads)

    It counts the thread that opened it, including what autograd runs for that thread, the threads
    that it starts meanwhile and the calls that it submits to a `ThreadPoolExecutor`. Threads that
    ran before are not counted, nor are those that C code starts. Counters nest, each counting
    everything under it. One counter may be opened again, inside itself (once counted) or later
    (counts add up; `reset` forgets them).

    level: "full" counts everything. "reads" counts host reads, transfers and synchronisations only,
        at a fraction of the cost.
    owner: which files count as the user's, as a predicate over file names or as files and folders;
        events belong to the innermost line of such a file. Default: all but torch and the standard
        library.
    host_as_device: whether a tensor on the host counts as if it lay on an accelerator, so that
        `loss.item()` is a host read. Default: True if this machine has no accelerator. Then `cpu()`
        and `to("cpu")` count as transfers to the host, `to(torch.device("cpu"))` and
        `torch.tensor(data, device=torch.device("cpu"))` as transfers to the device, as they would
        be with an accelerator. `x.to(x.device)`, a second `to` of the same tensor and what torch
        does inside itself (step counters of an optimizer, norms of gradients) do not.

    Raises ValueError for another level, TypeError if owner is a single path, and RuntimeError if a
    counter that is open in one thread is opened or closed in another.
    """

    def __init__(
        self,
        level: Level = "full",
        *,
        owner: Owner = None,
        host_as_device: bool | None = None,
    ) -> None:
        if level not in ("full", "reads"):
            raise ValueError(f"level is 'full' or 'reads', not {level!r}")
        if host_as_device is None:
            host_as_device = not torch.accelerator.is_available()
        self.level: Level = level
        self._recorders = Recorders(lambda: Recorder(owner_predicate(owner), host_as_device))
        self._everywhere = False
        self._depth = 0
        self._open = ExitStack()
        self._began = 0.0
        self._seconds = 0.0
        self._breaks_before = 0
        self._breaks = 0

    def __enter__(self) -> DispatchCounter:
        global _latest
        if self._depth:
            self._same_thread()
            self._depth += 1
            return self
        recorder = self._recorders.open()
        followed = threads.Followed(self._enter_thread, everywhere=self._everywhere)
        with ExitStack() as opening:
            opening.callback(self._recorders.close)
            if torch.cuda.is_available():
                opening.enter_context(SyncWatch(self._recorders))
            interceptors.start_watching(recorder)
            opening.callback(interceptors.stop_watching, recorder)
            if self.level == "full":
                opening.enter_context(dispatch_modes.CountingMode(recorder))
            else:
                dispatch_modes.start_reading(recorder)
                opening.callback(dispatch_modes.stop_reading, recorder)
            opening.enter_context(followed.following())
            self._open = opening.pop_all()
        self._depth = 1
        _latest = self
        self._breaks_before = _graph_breaks()
        self._began = perf_counter()
        return self

    def __exit__(self, *error: Any) -> None:
        self._same_thread()
        self._depth -= 1
        if self._depth:
            return
        self._seconds += perf_counter() - self._began
        self._breaks += _graph_breaks() - self._breaks_before
        self._open.close()

    def _enter_thread(self) -> Callable[[], None]:
        """Count this thread too, until what is returned is called in it or the counter closes."""
        recorder = self._recorders.join()
        interceptors.start_watching(recorder)
        if self.level == "full":
            # Not entered as the opener's is: its flags, one for all threads, are set already.
            _push_mode(mode := dispatch_modes.CountingMode(recorder))
        else:
            dispatch_modes.start_reading(recorder)
        thread = threading.get_ident()

        def closed() -> None:
            interceptors.stop_watching(recorder, thread)
            if self.level == "reads":
                dispatch_modes.stop_reading(recorder, thread)
            else:
                mode.count_into(self._recorders.unused())

        def leave() -> None:
            self._recorders.part(recorder)
            if self.level == "full":
                _pop_mode()

        self._recorders.when_parted(recorder, closed)
        return leave

    @property
    def device_waits(self) -> int:
        """The waits that CUDA has reported in this thread, without the cost of `evidence`."""
        recorder = self._recorders.here()
        return 0 if recorder is None else recorder.device_waits

    def time_waits(self) -> None:
        """Measure the duration of each wait that CUDA reports or that the program asks for."""
        self._recorders.time_waits()

    def keep_moments(self, moments: Moments) -> None:
        """Keep when each wait and transfer happens, for a timeline."""
        self._recorders.keep_moments(moments)

    def stop_at_waits(self, stop: Callable[[str, str], None]) -> None:
        """Call ``stop`` with the counter and cause of each event that no region allows."""
        self._recorders.stop_at_waits(stop)

    def tell(self, led: Callable[[FrameType | None, str], None]) -> None:
        """Call ``led`` with the innermost frame and the counter of each wait that counts."""
        self._recorders.tell(led)

    def leave_out(
        self, on_host: Callable[[torch.Tensor], bool], made: Callable[[torch.Tensor], bool]
    ) -> None:
        """Count no read of a tensor if ``on_host`` is true of it, nor a copy unless ``made`` is."""
        self._recorders.leave_out(on_host, made)

    def count_every_thread(self) -> None:
        """Count all threads that start while the counter is open, whoever starts them."""
        self._everywhere = True

    def _same_thread(self) -> None:
        if threading.get_ident() != self._recorders.opener:
            raise RuntimeError(
                "this DispatchCounter is open in another thread: use one counter per thread"
            )

    @property
    def evidence(self) -> Observation:
        """The counts so far; also available while the counter is open."""
        seconds = self._seconds
        if self._depth:
            seconds += perf_counter() - self._began
        return self._recorders.evidence(self.level, seconds, self.graph_breaks)

    def tables(self) -> dict[Recorder, Tables]:
        """Return a copy of the counts so far by thread, without the cost of `evidence`."""
        return self._recorders.tables()

    @property
    def graph_breaks(self) -> int:
        """The graph breaks so far."""
        return self._breaks + (_graph_breaks() - self._breaks_before if self._depth else 0)

    def reset(self) -> None:
        """Discard all counts; an open counter continues from zero."""
        self._recorders.clear()
        self._seconds = 0.0
        self._breaks = 0
        self._breaks_before = _graph_breaks()
        self._began = perf_counter()


def _graph_breaks() -> int:
    """Return the number of graph breaks of torch.compile in this process; 0 if it was not used."""
    utils = sys.modules.get("torch._dynamo.utils")
    return sum(utils.counters["graph_break"].values()) if utils is not None else 0
