"""Records each call that synchronises, or would on an accelerator: its line, kind and operand.

A function mode sees calls as they are written (`x[mask]`, `if t`, `int(t)`), a recorder of the
counter's sees the reads that happen inside (`torch.arange(t)`). The results are `exchange.SyncRow`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.overrides import TorchFunctionMode

from flake8_torchperf.project.file_index import is_test_path
from flake8_torchperf.runtime.allowed_regions import allowed_here
from flake8_torchperf.runtime.counting import dispatch_modes, threads
from flake8_torchperf.runtime.counting.cuda_syncs import names_calls
from flake8_torchperf.runtime.counting.hidden_modes import hide_modes, stop_hiding
from flake8_torchperf.runtime.counting.moments import Moments
from flake8_torchperf.runtime.counting.recording.recorder import ITERATION, Recorder
from flake8_torchperf.runtime.counting.stand_ins import hide_from_dynamo
from flake8_torchperf.runtime.counting.user_frames import lines_of
from flake8_torchperf.runtime.counting.written_devices import as_written
from flake8_torchperf.runtime.workload.callers.chains import Chains
from flake8_torchperf.runtime.workload.copies.queued import QUEUED_CALLS, IsPinned, queued
from flake8_torchperf.runtime.workload.copies.to_device import COPY_CALLS, copied
from flake8_torchperf.runtime.workload.exchange import QUEUED, SyncRow
from flake8_torchperf.runtime.workload.host_provenance import (
    DEVICE_FACTORIES,
    Maker,
    Origins,
    tensors_in,
)
from flake8_torchperf.runtime.workload.sync_kinds import (
    DIRECT,
    KERNEL_KINDS,
    MASK_FILL,
    alone,
    may_wait,
    waiting_kind,
)

Key = tuple[int, int, str, str, str, str, bool, str]
"""(id of the code object, instruction offset, and of `SyncRow` category, kind, operation, contract,
firm and allowed)"""

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
# A call that enters torch through these is the caller's own: they only pass it on.
_PASSING = tuple(
    _TORCH + name.replace("/", os.sep)
    for name in (
        "functional.py",
        "_tensor.py",
        "_tensor_str.py",
        "_jit_internal.py",
        "overrides.py",
        "nn/functional.py",
        "utils/_contextlib.py",
    )
)
_DISPATCHING = tuple(
    _TORCH + name.replace("/", os.sep) for name in ("_ops.py", "utils/_python_dispatch.py")
)
_autograd: Any = torch.autograd
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _Reads(Recorder):
    """Receives each scalar read that dispatches; the witness decides where it belongs."""

    def __init__(self, scalars: list[torch.Tensor]) -> None:
        super().__init__(lambda _: False, True)
        self._scalars = scalars

    def read(self, frame: FrameType | None, cause: str, tensor: torch.Tensor) -> None:
        self._scalars.append(tensor)


class _Here(threading.local):
    """The part of the witness that belongs to one thread."""

    def __init__(self) -> None:
        self.scalars: list[torch.Tensor] = []
        self.reads = _Reads(self.scalars)
        self.began = 0
        """When the call began that was just watched, if that is kept."""


class Witness(TorchFunctionMode):
    """Open it around the workload, in its main thread; then read `rows`.

    It watches the threads that start meanwhile as well.

    ``waits`` returns how many waits the device has reported so far; it is omitted without a device
    that reports any. ``contract`` names the function that must not wait and that led to a frame.
    ``tick`` is called before each call that is watched. ``is_pinned`` tells pinned memory, on a
    machine that can pin any. ``moments`` keeps when each of the rows happened.
    """

    steps_aside = True

    def __init__(
        self,
        owns: Callable[[str], bool],
        waits: Callable[[], int] | None = None,
        contract: Callable[[FrameType], str] | None = None,
        tick: Callable[[], None] | None = None,
        is_pinned: IsPinned | None = None,
        moments: Moments | None = None,
    ) -> None:
        super().__init__()
        self._moments = moments
        self._is_pinned = is_pinned
        self._tick = tick
        self._contract = contract
        self._owns = owns
        self._waits = waits
        self._owned: dict[int, bool] = {}
        self._codes: dict[int, CodeType] = {}
        self._names: dict[Any, str] = {}
        self._plain: set[Any] = set()
        self._seen: dict[Key, list[int]] = {}
        self._origins = Origins()
        self._here = _Here()
        self._lock = threading.Lock()
        self._followed: Any = None
        self._is_open = False
        self._buffers: Any = None
        self._backward: Any = None
        self._from_numpy: Any = None
        self.chains = Chains(self._is_owned, self._dispatches)

    def __enter__(self) -> Witness:
        self._origins.calibrate()
        hide_modes()
        register: Any = torch.nn.modules.module.register_module_buffer_registration_hook
        self._buffers = register(self._buffer)
        dispatch_modes.start_reading(self._here.reads)
        self._backward = _autograd._engine_run_backward
        _autograd._engine_run_backward = self._run_backward
        # No mode sees this one (torch/overrides.py, get_ignored_functions).
        self._from_numpy, torch.from_numpy = torch.from_numpy, self._shared
        super().__enter__()  # type: ignore[no-untyped-call]
        followed = threads.Followed(self._enter_thread, everywhere=True)
        self._followed = followed.following()
        self._followed.__enter__()
        self._is_open = True
        return self

    def _enter_thread(self) -> Callable[[], None]:
        """Watch this thread as well, until what is returned is called in it."""
        dispatch_modes.start_reading(self._here.reads)
        super().__enter__()  # type: ignore[no-untyped-call]

        def leave() -> None:
            super(Witness, self).__exit__(None, None, None)  # type: ignore[no-untyped-call]
            dispatch_modes.stop_reading(self._here.reads)

        return leave

    def __exit__(self, *error: Any) -> None:
        self._is_open = False
        self._followed.__exit__(*error)
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        stop_hiding()
        torch.from_numpy = self._from_numpy
        _autograd._engine_run_backward = self._backward
        dispatch_modes.stop_reading(self._here.reads)
        self._buffers.remove()

    def _run_backward(self, *args: Any, **kwargs: Any) -> Any:
        """Watch backward too: torch removes a mode while it handles `loss.backward()`."""
        overrides: Any = torch.overrides
        if self in overrides._get_current_function_mode_stack():
            return self._backward(*args, **kwargs)
        super().__enter__()  # type: ignore[no-untyped-call]
        try:
            return self._backward(*args, **kwargs)
        finally:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _shared(self, ndarray: Any) -> torch.Tensor:
        """Replace ``torch.from_numpy``: the array's own memory, always on the host."""
        made: torch.Tensor = self._from_numpy(ndarray)
        if not is_compiling():
            self._origins.mark_host(made)
        return made

    def _buffer(self, module: Any, name: str, tensor: Any) -> None:
        self._origins.mark_device(tensor)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if is_compiling() or not self._is_open:
            return func(*args, **kwargs)
        if self._tick is not None:
            self._tick()
        name = self._names.get(func) or self._name(func)
        scalars = self._here.scalars
        if scalars:
            scalars.clear()
        began = 0 if self._moments is None else perf_counter_ns()
        if func in self._plain:  # Most calls: they wait, copy and make nothing by themselves.
            out = func(*args, **kwargs)
            if not scalars:
                if self._origins.marked and isinstance(out, (torch.Tensor, tuple, list)):
                    self._origins.follow(name, args, kwargs, out, None)
                return out
            self._here.began = began
            return self._judge(sys._getframe(1), name, args, kwargs, out)
        waited = self._waits() if self._waits is not None else 0
        out = func(*args, **kwargs)
        self._here.began = began
        if self._waits is not None and (waited := self._waits() - waited):
            self._note_device(sys._getframe(1), name, waited, args)
        return self._judge(sys._getframe(1), name, args, kwargs, out)

    def _judge(self, caller: FrameType, name: str, args: Any, kwargs: Any, out: Any) -> Any:
        """Note how a call waited and where its result lies; return the result."""
        if name in _MINDED or "device" in kwargs:
            args, kwargs = as_written(self._caller(caller), args, kwargs)
        if name in QUEUED_CALLS:
            self._note_queued(caller, name, args, kwargs, out)
        kind = waiting_kind(name, args, kwargs)
        if name == "unbind" and caller.f_code is ITERATION:
            kind = "iter"
        copy = copied(name, args, kwargs, out, self._origins.is_host) if name in COPY_CALLS else ""
        if kind or copy or self._here.scalars or name in DEVICE_FACTORIES:
            frame = self._frame(caller)
            if frame is not None:
                self._note(frame, name, kind, args)
                if copy:
                    self._add(frame, "copy", copy, name, _count(out))
            by = self._by(frame) if frame is not None else self._torchs(caller, name)
            self._origins.follow(name, args, kwargs, out, by)
        elif not isinstance(out, (bool, int, float)):
            self._origins.follow(name, args, kwargs, out, None)
        return out

    def _note_queued(self, caller: FrameType, name: str, args: Any, kwargs: Any, out: Any) -> None:
        """Record a copy with `non_blocking=True` at the owned line that led to it.

        That may be the move of a module or of a batch, which torch or a library makes of many.
        """
        kind = queued(name, args, kwargs, out, self._origins.is_host, self._is_pinned)
        frame: FrameType | None = caller if kind else None
        while frame is not None and not self._is_owned(frame.f_code):
            frame = frame.f_back
        if frame is not None:
            self._add(frame, QUEUED, kind, name, _count(out))

    def _note_device(self, caller: FrameType, name: str, times: int, args: tuple[Any, ...]) -> None:
        """Record the waits that the device itself reported while an owned line called this."""
        frame = self._frame(caller)
        if frame is not None:
            numel = max(map(_count, tensors_in(args)), default=1)
            self._add(frame, "device", "waited", name, numel, times)

    def _name(self, func: Any) -> str:
        name = str(getattr(func, "__name__", func))
        if name == "__get__":  # `x.T` and `x.shape` call the getter of a property.
            name = "property"
        self._names[func] = name
        if self._waits is None and not may_wait(name) and name not in _MINDED:
            self._plain.add(func)
        return name

    def is_on_host(self, tensor: torch.Tensor) -> bool:
        """True if this tensor lies on the host on every machine."""
        return self._origins.is_host(tensor, firmly=True)

    def was_made_on_host(self, tensor: torch.Tensor) -> bool:
        """True if this tensor was made on the host in this run."""
        return self._origins.is_host(tensor)

    def _by(self, frame: FrameType) -> Maker:
        """Return the maker that an owned line is: a test stands in for callers with a device."""
        is_test = is_test_path(frame.f_code.co_filename)
        return Maker.CALLER if is_test else Maker.PROGRAM

    def _torchs(self, frame: FrameType, name: str) -> Maker | None:
        """Return `Maker.TORCH` if torch's own code calls this factory for itself, else None."""
        if name not in DEVICE_FACTORIES:
            return None
        caller = self._caller(frame)
        return Maker.TORCH if caller and caller.f_code.co_filename.startswith(_TORCH) else None

    def _frame(self, frame: FrameType | None) -> FrameType | None:
        """Return the frame that made the call, if it is an owned one."""
        caller = self._caller(frame)
        return caller if caller is not None and self._is_owned(caller.f_code) else None

    def _caller(self, frame: FrameType | None) -> FrameType | None:
        """Return the frame that made the call, owned or not."""
        while frame is not None:
            if not self._passes(frame.f_code):
                break
            frame = frame.f_back
        return frame

    def _passes(self, code: CodeType) -> bool:
        """True if a frame with this code only passes a call on to torch."""
        file = code.co_filename
        return (file in _PASSING or file.startswith(_OURS)) and not self._is_owned(code)

    def _dispatches(self, code: CodeType) -> bool:
        """True if a frame with this code is between a line of a library and its operation."""
        return self._passes(code) or code.co_filename in _DISPATCHING

    def _is_owned(self, code: CodeType) -> bool:
        owned = self._owned.get(id(code))
        if owned is None:
            owned = self._owned[id(code)] = self._owns(code.co_filename)
            self._codes[id(code)] = code
        return owned

    def _note(self, frame: FrameType, name: str, kind: str, args: tuple[Any, ...]) -> None:
        operands = [one for one in tensors_in(args) if not one.is_meta]
        numel = max(map(_count, operands), default=1)
        is_host = self._origins.is_host
        # A kernel's own check may read a scalar in C++; then that is how it waits. A number that is
        # assigned through a mask is made a tensor on the host, and read there in inference mode.
        scalars = self._here.scalars
        if scalars and name not in DIRECT and kind not in SELF_CONTAINED:
            read = DIRECT_BY_CALL.get(name)
            if read is None:
                passed = any(_count(one) == 1 for one in operands)
                read = "scalar-arg" if passed else "internal"
            category = "extra" if read == "internal" else "sync"
            if all(is_host(one) for one in scalars):
                category = "host"
            firm = category == "host" and all(is_host(one, firmly=True) for one in scalars)
            self._add(frame, category, read, name, numel, firm=firm)
            if kind in ("", "iter", read):
                return
        if not kind or not operands:
            return
        if kind == "mask-assign" and _fills(args, is_host):
            kind = MASK_FILL
        category = _CATEGORY.get(kind, "extra" if kind in KERNEL_KINDS else "sync")
        firm = False
        if kind == "copy-to-host":
            down = is_host(operands[0], firmly=True) and not is_host(operands[-1])
            category = "sync" if down else ""
        elif category == "sync" and is_host(read := _read_operand(kind, args, operands)):
            category = "host"
            firm = is_host(read, firmly=True)
        elif name == "to" and not _spells_host(frame.f_code):
            category = "extra"
        if category:
            self._add(frame, category, kind, name, numel, firm=firm)

    def _add(
        self,
        frame: FrameType,
        category: str,
        kind: str,
        name: str,
        numel: int,
        times: int = 1,
        *,
        firm: bool = False,
    ) -> None:
        allowed = allowed_here()
        if self._moments is not None:
            at, began = (frame.f_code, frame.f_lasti), self._here.began
            self._moments.add(at, began, category, kind, name, times=times, firm=firm)
        if category != QUEUED and not allowed:
            self.chains.add(frame, category, kind, times=times, firm=firm)
        promised = "" if self._contract is None else self._contract(frame)
        place = id(frame.f_code), frame.f_lasti
        key = (*place, category, kind, name, promised, firm, allowed)
        with self._lock:
            seen = self._seen.setdefault(key, [0, 0])
            seen[0] += times
            seen[1] = max(seen[1], numel)

    def forget(self) -> None:
        """Discard everything seen so far."""
        self._seen.clear()
        self.chains.forget()

    def seen(self) -> dict[Key, tuple[int, int]]:
        """Return a copy of how often each was seen so far, with its most elements: cheap."""
        return {key: (times, numel) for key, (times, numel) in list(self._seen.items())}

    @property
    def rows(self) -> tuple[SyncRow, ...]:
        """The rows of everything seen, one for each kind at each line."""
        return self.rows_of(self.seen())

    def rows_of(self, counted: Mapping[Key, tuple[int, int]]) -> tuple[SyncRow, ...]:
        """Return the rows of some part of what was seen."""
        lines: dict[int, dict[int, int]] = {}
        merged: dict[tuple[str, int, str, str, str, str, bool, str], list[int]] = {}
        for key, seen in counted.items():
            code_id, offset, *_ = key
            code = self._codes[code_id]
            table = lines.setdefault(code_id, lines_of(code))
            line = table.get(offset, code.co_firstlineno)
            place = (code.co_filename, line, *key[2:])
            total = merged.setdefault(place, [0, 0])
            total[0] += seen[0]
            total[1] = max(total[1], seen[1])
        return tuple(
            SyncRow(*place[:5], times, numel, *place[5:])
            for place, (times, numel) in sorted(merged.items())
        )


names_calls(Witness.__torch_function__.__code__, "func")
hide_from_dynamo(Witness.__torch_function__.__code__)

# Calls of which more than the reads inside them is noted.
_MINDED = frozenset(("unbind", *COPY_CALLS, *QUEUED_CALLS, *DEVICE_FACTORIES))
_CATEGORY = {"iter": "iter", MASK_FILL: "fill"}
SELF_CONTAINED = KERNEL_KINDS | {MASK_FILL}
"""Kinds of calls in which what else is read is their own affair."""

DIRECT_BY_CALL = {
    "__getitem__": "scalar-index",
    "__setitem__": "scalar-index",
    "tensor": "tensor-of-tensors",
    "as_tensor": "tensor-of-tensors",
    "asarray": "tensor-of-tensors",
    # It looks for negative classes, but not on CUDA (aten/src/ATen/native/Onehot.cpp).
    "one_hot": "internal",
    # It checks its weights, but not on CUDA (benchmarks/measured_syncs.json).
    "multinomial": "internal",
}
"""The kind of a scalar read inside these calls."""


def _spells_host(code: CodeType) -> bool:
    """True if a function's code names the host itself.

    Where the device comes from elsewhere, it is the host only because this machine has no other.
    """
    return any(isinstance(one, str) and one.startswith("cpu") for one in code.co_consts)


def _count(tensor: Any) -> int:
    """Return the number of elements; 0 under torch.jit.trace, which makes sizes tensors."""
    count = tensor.numel() if isinstance(tensor, torch.Tensor) else 0
    return count if isinstance(count, int) else 0


def _fills(args: tuple[Any, ...], is_host: Callable[[Any], bool]) -> bool:
    """True if the value assigned through a mask is a single number that lies on the host.

    The index and the value come last, in `__setitem__` and in `index_put_` alike.
    """
    if len(args) < 3:
        return False
    index, value = args[1:3]
    index = tuple(index) if isinstance(index, list) else index
    return isinstance(value, torch.Tensor) and not value.dim() and is_host(value) and alone(index)


def _read_operand(kind: str, args: tuple[Any, ...], operands: list[torch.Tensor]) -> Any:
    """Return the tensor whose elements the host needs to know."""
    if kind in ("mask-index", "mask-assign"):
        masks = [one for one in tensors_in(args[1]) if one.dtype in (torch.bool, torch.uint8)]
        return masks[0]
    if kind == "scalar-arg":
        return operands[-1]
    if kind == "repeat-interleave" and len(operands) > 1:
        return operands[1]
    return operands[0]
