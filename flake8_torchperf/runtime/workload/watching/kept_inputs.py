"""Keeps the arguments of some calls of each owned function, for `torchperf fix --verify`.

They are written when a call begins, since it may change them.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch.utils import _python_dispatch

from flake8_torchperf.history.data_files import relative
from flake8_torchperf.history.kept_inputs import CALL, INDEX, KeptCall
from flake8_torchperf.runtime.workload.steps.step_names import defined

# The calls of a function that are kept: the first is often special, a later one seldom.
SAMPLED = (1, 2, 10)
LARGEST, MOST = 64 * 2**20, 2**30
"""Bytes of tensors for one call, and for all calls of a process."""

_cuda: Any = torch.cuda
# Flags of code that no call by name runs: bodies that run later, functions inside functions.
_RUN_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_NOT_BY_NAME = _RUN_LATER | inspect.CO_NESTED


class KeptInputs:
    """Writes calls of the owned functions into a folder, between `start` and `stop`."""

    def __init__(self, owns: Callable[[str], bool], folder: Path) -> None:
        self._owns = owns
        self._folder = folder
        self._root = os.getcwd()
        # By id of the code object, which is kept so that its id is not used again.
        self._calls: dict[int, int] = {}
        self._names: dict[int, tuple[CodeType, str]] = {}
        self._room = MOST
        self._written = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin; threads started from now on are included."""
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def stop(self) -> None:
        """Stop, but leave a profile function that someone else has set."""
        # A bound method is a new object each time it is looked up: compare, not identify.
        if sys.getprofile() == self._event:
            sys.setprofile(None)
        threading.setprofile(None)

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        named = self._names.get(id(code))
        if named is None:
            named = self._names[id(code)] = (code, self._function(code))
        if not named[1]:
            return
        times = self._calls[id(code)] = self._calls.get(id(code), 0) + 1
        if times in SAMPLED:
            with self._lock:
                self._keep(frame, named[1])

    def _function(self, code: CodeType) -> str:
        """Return the qualified name of an owned function that can be called by it; else ""."""
        if not self._owns(code.co_filename) or code.co_flags & _NOT_BY_NAME:
            return ""
        return defined(code.co_filename).get((code.co_firstlineno, code.co_name), "")

    def _keep(self, frame: FrameType, function: str) -> None:
        code = frame.f_code
        path = relative(os.path.realpath(code.co_filename), os.path.realpath(self._root))
        self._written += 1
        call = KeptCall(path, function, f"{os.getpid()}-{self._written}{CALL}")
        try:
            with _unseen():
                call = self._saved(call, _arguments(frame))
        except Exception as error:  # any object may refuse to be pickled, in its own way
            call = replace(call, file="", problem=f"{type(error).__name__}: {error}"[:200])
        with open(self._folder / f"{os.getpid()}{INDEX}", "a", encoding="utf-8") as file:
            file.write(call.as_line())

    def _saved(self, call: KeptCall, arguments: dict[str, Any]) -> KeptCall:
        """Save the arguments. Raises UnkeptError, and what pickling raises."""
        sizer = Sizer(min(LARGEST, self._room))
        sizer.dump(arguments)
        torch.save(arguments, self._folder / call.file)
        self._room -= sizer.bytes
        files = {name: getattr(sys.modules.get(name), "__file__", None) for name in sizer.modules}
        ours = {
            name: os.path.realpath(one) for name, one in files.items() if one and self._owns(one)
        }
        return replace(call, modules=ours, autograd=torch.is_grad_enabled())


class UnkeptError(Exception):
    """A call that is not kept; ``str`` says why."""


def _arguments(frame: FrameType) -> dict[str, Any]:
    """Return what was passed, by the names of the parameters. Raises UnkeptError."""
    names, several, named, values = inspect.getargvalues(frame)
    if named is not None and values.get(named):
        raise UnkeptError(f"it was given **{named}, which --verify does not pass")
    names = [*names, *([several] if several is not None else [])]
    return {name: values[name] for name in names if name in values}


class Sizer(pickle.Pickler):
    """Adds up the bytes of what is pickled. Raises UnkeptError where they are more than ``most``.

    ``modules`` are the names of the modules of the classes and functions in it.
    """

    def __init__(self, most: int) -> None:
        super().__init__(self)  # The pickler writes by calling `write`.
        self._most, self.bytes = most, 0
        self.modules: set[str] = set()
        self._seen: set[int] = set()

    def write(self, data: bytes) -> int:
        """Count what is written besides tensors."""
        self._add(len(data))
        return len(data)

    def persistent_id(self, obj: Any) -> str | None:
        """Take a tensor by the size of its storage; note where classes and functions are from."""
        if not isinstance(obj, torch.Tensor):
            if isinstance(obj, (type, FunctionType)):
                self.modules.add(obj.__module__)
            return None
        storage = obj.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._add(storage.nbytes())
        return "tensor"

    def _add(self, more: int) -> None:
        self.bytes += more
        if self.bytes > self._most:
            raise UnkeptError(f"its arguments take more than {self._most >> 20:,} MiB")


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Let nothing that pickling does be counted or reported."""
    silent = torch.cuda.is_available() and _cuda.is_initialized()
    before = torch.cuda.get_sync_debug_mode() if silent else 0
    if silent:
        torch.cuda.set_sync_debug_mode(0)
    try:
        with torch._C.DisableTorchFunction(), _python_dispatch._disable_current_modes():
            yield
    finally:
        if silent:
            torch.cuda.set_sync_debug_mode(before)
