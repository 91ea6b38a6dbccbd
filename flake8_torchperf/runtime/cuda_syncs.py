"""The waits that CUDA itself reports, through torch's sync debug mode, at the lines that made them.

torch warns "called a synchronizing CUDA operation" (c10/cuda/CUDAFunctions.cpp,
warn_or_error_on_sync) from inside the call; Python runs `warnings.showwarning` on that very stack.
"""

from __future__ import annotations

import sys
import threading
import warnings
from types import FrameType
from typing import Any

import torch

from flake8_torchperf.runtime.modes import CountingMode
from flake8_torchperf.runtime.recorder import Recorder

_MESSAGE = "called a synchronizing CUDA operation"
# torch's own notice, once a process, that the mode does not see every wait.
_NOTICE = "Synchronization debug mode is a prototype feature"
_DISPATCH = CountingMode.__torch_dispatch__.__code__


_open: list[SyncWatch] = []
_queued = threading.Event()


class SyncWatch:
    """While open, reports this thread's waits to a recorder and passes all other warnings on."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._caught: Any = None
        self._shown: Any = None
        self._mode_before: int | None = None  # None as long as CUDA has not started.

    def __enter__(self) -> SyncWatch:
        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        warnings.filterwarnings("always", message=_MESSAGE)
        warnings.filterwarnings("ignore", message=_NOTICE)
        self._shown = warnings.showwarning
        warnings.showwarning = self._show
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
            self._caught.__exit__(None, None, None)

    def _show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        ours = str(message).startswith(_MESSAGE)
        if ours and threading.get_ident() == self.recorder.opener:
            frame = sys._getframe(1)
            # A wrapped torch.cuda.Stream.synchronize() is counted as what it is.
            if not self.recorder.waiting:
                self.recorder.event(frame, "device_syncs", _operation(frame))
        if not ours or self._mode_before:
            self._shown(message, category, filename, lineno, file, line)


def _queue() -> None:
    """Switch on what is open when the program first uses CUDA.

    Counting alone must not start it: a process that forks afterwards could use it no more.
    """
    if not _queued.is_set():
        _queued.set()
        cuda: Any = torch.cuda
        cuda._lazy_call(_switch_all_on)


def _switch_all_on() -> None:
    for watch in _open:
        watch.switch_on()


def _operation(frame: FrameType | None) -> str:
    """The operation being dispatched, found in the counting mode's own frame."""
    while frame is not None:
        if frame.f_code is _DISPATCH:
            return str(frame.f_locals["func"]._schema.name)
        frame = frame.f_back
    return "below the dispatcher"
