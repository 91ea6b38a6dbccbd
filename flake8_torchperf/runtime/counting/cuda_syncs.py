"""Records the waits that CUDA itself reports, in torch's sync debug mode, with their lines.

torch warns "called a synchronizing CUDA operation" (c10/cuda/CUDAFunctions.cpp,
warn_or_error_on_sync) from inside the call, and Python shows the warning on the same stack.
Programs filter warnings and pytest records them. So the filter for this warning always comes first,
and the function that receives all warnings that no filter ignores catches this one.
"""

from __future__ import annotations

import sys
import threading
import warnings
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, SupportsIndex

import torch

from flake8_torchperf.runtime.counting.dispatch_modes import CountingMode
from flake8_torchperf.runtime.counting.recording.recorders import Recorders

_MESSAGE = "called a synchronizing CUDA operation"
# torch's own notice, once a process, that the mode does not see every wait.
_NOTICE = "Synchronization debug mode is a prototype feature"
_DISPATCH = CountingMode.__torch_dispatch__.__code__
_MODULE: Any = warnings

_open: list[SyncWatch] = []
_queued = threading.Event()
_calls: dict[CodeType, str] = {}


def names_calls(code: CodeType, variable: str) -> None:
    """Register the local variable of this code that holds the function that a program called."""
    _calls[code] = variable


class _Filters(list[Any]):
    """Warning filters of which the first `pinned` remain first when a program inserts others."""

    pinned = 0

    def insert(self, index: SupportsIndex, item: Any) -> None:
        super().insert(max(int(index), self.pinned), item)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(key, slice):  # how catch_warnings copies them
            found = _Filters(found)
            found.pinned = self.pinned
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):  # how resetwarnings empties them
            value = [*super().__getitem__(slice(self.pinned)), *value]
        super().__setitem__(key, value)


class SyncWatch:
    """While open, reports the waits of each thread to its recorder, and passes warnings on."""

    def __init__(self, recorders: Recorders) -> None:
        self.recorders = recorders
        self._caught: Any = None
        self._shown: Any = None
        self._mode_before: int | None = None  # None as long as CUDA has not started.

    def __enter__(self) -> SyncWatch:
        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        filters = _MODULE.filters = _Filters(_MODULE.filters)
        warnings.filterwarnings("always", message=_MESSAGE)
        warnings.filterwarnings("ignore", message=_NOTICE)
        filters.pinned = 2
        self._shown = _MODULE._showwarnmsg
        _MODULE._showwarnmsg = self._show
        _open.append(self)
        try:
            cuda: Any = torch.cuda
            if cuda.is_initialized():
                self.switch_on()
            else:
                _queue()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def switch_on(self) -> None:
        """Make CUDA report its waits."""
        self._mode_before = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("warn")

    def __exit__(self, *error: object) -> None:
        _open.remove(self)
        try:
            if self._mode_before is not None:
                torch.cuda.set_sync_debug_mode(self._mode_before)
                self._mode_before = None
        finally:
            _MODULE._showwarnmsg = self._shown
            self._caught.__exit__(None, None, None)

    def _show(self, shown: Any) -> None:
        ours = str(shown.message).startswith(_MESSAGE)
        recorder = self.recorders.here() if ours else None
        # A wrapped torch.cuda.Stream.synchronize() is counted as a synchronisation instead.
        if recorder is not None and not recorder.waiting:
            frame = sys._getframe(1)
            recorder.device_waits += 1
            recorder.began = perf_counter_ns()
            took = _drained() if recorder.timed else 0
            recorder.event(frame, "device_syncs", _operation(frame))
            recorder.began = 0
            if recorder.timed:
                recorder.waited(frame, took)
        if not ours or self._mode_before:
            self._shown(shown)


def _drained() -> int:
    """Wait for the work on the stream, and return the nanoseconds that this took.

    The call that is about to wait reports it first (c10/cuda/CUDAFunctions.cpp, memcpy_and_sync),
    so the work that it would wait for can be measured by itself. A stream that is being captured
    must not be waited for.
    """
    if torch.cuda.is_current_stream_capturing():
        return 0
    stream: Any = torch._C._CudaStreamBase  # the class below torch.cuda.Stream, which is wrapped
    mode = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode(0)
    began = perf_counter_ns()
    try:
        stream.synchronize(torch.cuda.current_stream())
    finally:
        took = perf_counter_ns() - began
        torch.cuda.set_sync_debug_mode(mode)
    return took


def _queue() -> None:
    """Arrange for open watches to be switched on when the program first uses CUDA.

    Counting must not start CUDA: a process that forks afterwards could no longer use it.
    """
    if not _queued.is_set():
        _queued.set()
        cuda: Any = torch.cuda
        cuda._lazy_call(_switch_all_on)


def _switch_all_on() -> None:
    for watch in _open:
        watch.switch_on()


def _operation(frame: FrameType | None) -> str:
    """Return the operation being dispatched, or else the function of torch that the program called.

    The first is found in the counting mode's own frame, the second in one that `names_calls` names.
    """
    while frame is not None:
        if frame.f_code is _DISPATCH:
            return str(frame.f_locals["func"]._schema.name)
        if variable := _calls.get(frame.f_code):
            called = frame.f_locals[variable]
            return str(getattr(called, "__name__", called))
        frame = frame.f_back
    return "below the dispatcher"
