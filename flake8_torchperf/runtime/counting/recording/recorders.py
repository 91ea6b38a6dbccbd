"""The recorders of one counter: one for each thread, so that counting needs no lock.

A recorder whose thread has ended serves the next one that starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FrameType

import torch

from flake8_torchperf.runtime.counting.counts import Observation
from flake8_torchperf.runtime.counting.moments import Moments
from flake8_torchperf.runtime.counting.recording.recorder import Recorder
from flake8_torchperf.runtime.counting.recording.tables import Tables, evidence, tables


class Recorders:
    """Makes, finds and adds up the recorders of the threads that a counter counts."""

    def __init__(self, make: Callable[[], Recorder]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._own = make()
        self._all = [self._own]
        self._idle: list[Recorder] = []
        self._here: dict[int, Recorder] = {}
        self._closing: dict[Recorder, Callable[[], None]] = {}
        self._is_open = False

    @property
    def opener(self) -> int:
        """The thread that opened the counter."""
        return self._own.opener

    def open(self) -> Recorder:
        """Return the recorder of this thread, which opens the counter."""
        self._is_open = True
        return self._begin(self._own)

    def join(self) -> Recorder:
        """Return a recorder for this thread, which the open counter counts as well."""
        with self._lock:
            recorder = self._idle.pop() if self._idle else self.unused()
            if recorder not in self._all:
                self._all.append(recorder)
        return self._begin(recorder)

    def _begin(self, recorder: Recorder) -> Recorder:
        recorder.opener = threading.get_ident()
        self._here[recorder.opener] = recorder
        return recorder

    def when_parted(self, recorder: Recorder, closed: Callable[[], None]) -> None:
        """Call ``closed``, once, where the recorder's thread ends or the counter closes."""
        with self._lock:
            self._closing[recorder] = closed
        if not self._is_open:  # It closed while this thread began.
            self.part(recorder)

    def part(self, recorder: Recorder) -> None:
        """End the counting of a thread, unless the counter was closed meanwhile."""
        with self._lock:
            closed = self._closing.pop(recorder, None)
            if closed is None:
                return
            closed()
            self._here.pop(recorder.opener, None)
            self._idle.append(recorder)

    def close(self) -> None:
        """End the counting of all threads."""
        self._is_open = False
        for recorder in list(self._closing):
            self.part(recorder)
        self._here.pop(self.opener, None)

    def here(self) -> Recorder | None:
        """Return the recorder of this thread, if it is counted."""
        return self._here.get(threading.get_ident())

    def unused(self) -> Recorder:
        """Return a new recorder, which counts for nothing by itself."""
        recorder = self._make()
        recorder.timed, recorder.on_host = self._own.timed, self._own.on_host
        recorder.made_on_host = self._own.made_on_host
        recorder.moments = self._own.moments
        recorder.stop, recorder.led = self._own.stop, self._own.led
        return recorder

    def time_waits(self) -> None:
        """Measure waits, in all threads."""
        for recorder in list(self._all):
            recorder.timed = True

    def keep_moments(self, moments: Moments) -> None:
        """Keep when events happen, in all threads."""
        for recorder in list(self._all):
            recorder.moments = moments

    def stop_at_waits(self, stop: Callable[[str, str], None]) -> None:
        """Call ``stop`` with each wait that no region allows, in all threads."""
        for recorder in list(self._all):
            recorder.stop = stop

    def tell(self, led: Callable[[FrameType | None, str], None]) -> None:
        """Tell of each wait, with its frame, in all threads."""
        for recorder in list(self._all):
            recorder.led = led

    def leave_out(
        self, on_host: Callable[[torch.Tensor], bool], made: Callable[[torch.Tensor], bool]
    ) -> None:
        """Leave out reads of tensors of the host, and copies of others, in all threads."""
        for recorder in list(self._all):
            recorder.on_host, recorder.made_on_host = on_host, made

    def clear(self) -> None:
        """Discard all counts."""
        for recorder in list(self._all):
            recorder.clear()

    def evidence(self, level: str, seconds: float, graph_breaks: int) -> Observation:
        """Return the counts of all threads so far, resolved to source lines."""
        return evidence(list(self._all), level, seconds, graph_breaks)

    def tables(self) -> dict[Recorder, Tables]:
        """Return a copy of the counts of all threads so far, which is cheap."""
        return {recorder: tables(recorder) for recorder in list(self._all)}
