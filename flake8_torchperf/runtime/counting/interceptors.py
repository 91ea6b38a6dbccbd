"""Wraps functions of torch that do not reach the dispatcher on the host, while a counter is open.

`tolist`, `numpy`, `cpu`, `to("cpu")` and formatting read a host tensor without a dispatch, and a
synchronisation is not an operation. A TorchFunctionMode would see them too, but it would double the
cost of every call, and torch.compile would trace into it; these wrappers slow down only the wrapped
functions.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from types import FrameType
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function, has_torch_function_unary

from flake8_torchperf.runtime.counting.cuda_syncs import names_calls
from flake8_torchperf.runtime.counting.dispatch_modes import no_reading
from flake8_torchperf.runtime.counting.hidden_modes import dispatch_modes_aside
from flake8_torchperf.runtime.counting.recording.recorder import Recorder
from flake8_torchperf.runtime.counting.stand_ins import StandIn, hide_from_dynamo
from flake8_torchperf.runtime.counting.threads import by_thread
from flake8_torchperf.runtime.counting.written_devices import as_written

Note = Callable[[Recorder, FrameType, Any, tuple[Any, ...], dict[str, Any], Any], None]
"""(recorder, caller, self or first argument, other arguments, keywords, result)"""

_active: dict[int, list[Recorder]] = by_thread()
_patches: list[_Patch] = []
_lock = threading.Lock()


@dataclass(frozen=True)
class _Patch:
    """One replaced attribute. `own` is True if the holder itself had it, not a base class."""

    holder: Any
    name: str
    original: Any
    wrapper: Any
    own: bool

    def undo(self) -> None:
        if vars(self.holder).get(self.name) is not self.wrapper:
            return  # Someone wrapped the wrapper since; alone, it only passes calls on.
        if self.own:
            setattr(self.holder, self.name, self.original)
        else:
            delattr(self.holder, self.name)


def start_watching(recorder: Recorder) -> None:
    """Report this thread's reads, transfers and synchronisations to a recorder."""
    with _lock:
        if not _active:
            _install()
        _active.setdefault(threading.get_ident(), []).append(recorder)


def stop_watching(recorder: Recorder, thread: int | None = None) -> None:
    """Undo `start_watching`, of this thread or of another; the last removes the wrappers."""
    thread = threading.get_ident() if thread is None else thread
    with _lock:
        _active[thread].remove(recorder)
        if not _active[thread]:
            del _active[thread]
        if not _active:
            _uninstall()


def _install() -> None:
    for name, note in _METHODS.items():
        _replace(torch.Tensor, name, functools.partial(_method, note=note))
    for name in ("tensor", "as_tensor", "asarray"):
        _replace(torch, name, _factory)
        torch.jit._builtins._register_builtin(getattr(torch, name), f"aten::{name}")
    for path, available in _SYNCHRONISING:
        holder, name = _find(path)
        if holder is not None and hasattr(holder, name):
            _replace(holder, name, functools.partial(_waiting, path=path, available=available))
    for holder in (torch.jit, torch.jit._trace):
        for name in ("trace", "trace_module"):
            _replace(holder, name, _aside)
    _replace(torch.jit._trace, "_check_trace", _uncounted)


def _uninstall() -> None:
    builtins: Any = torch.jit._builtins
    table = builtins._get_builtin_table()
    while _patches:
        patch = _patches.pop()
        table.pop(id(patch.wrapper), None)
        patch.undo()


def _replace(holder: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    original = getattr(holder, name)
    wrapper = StandIn(original, wrap(original))
    _patches.append(_Patch(holder, name, original, wrapper, name in vars(holder)))
    setattr(holder, name, wrapper)


def _find(path: str) -> tuple[Any, str]:
    *parents, name = path.split(".")
    holder: Any = sys.modules[parents[0]]
    for parent in parents[1:]:
        holder = getattr(holder, parent, None)
    return holder, name


def _method(original: Any, note: Note) -> Any:
    @functools.wraps(original)
    def wrapper(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        recorders = _active.get(threading.get_ident())
        if recorders is None:
            return _pass_on(original, self, args, kwargs)
        call = functools.partial(_pass_on, original, self, args, kwargs)
        return _observe(recorders, sys._getframe(1), note, call, self, args, kwargs)

    return wrapper


def _pass_on(original: Any, tensor: torch.Tensor, args: Any, kwargs: Any) -> Any:
    # Subclasses and function modes know torch's function by identity, not this wrapper.
    if has_torch_function_unary(tensor):
        return handle_torch_function(original, (tensor,), tensor, *args, **kwargs)
    return original(tensor, *args, **kwargs)


def _observe(
    recorders: list[Recorder],
    frame: FrameType,
    note: Note,
    call: Callable[[], Any],
    operand: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a wrapped call and count it once, without the reads inside it, unless it fails."""
    watching = list(recorders)  # The call may open or close a counter.
    for recorder in watching:
        recorder.inside += 1
    moved = [recorder.transfers for recorder in watching]
    # Asked before the call: its result may be the same tensor, and be the host's from now on.
    known = [recorder.before(operand) for recorder in watching]
    args, kwargs = as_written(frame, args, kwargs)
    began = perf_counter_ns()
    try:
        out = call()
    finally:
        for recorder in watching:
            recorder.inside -= 1
    for recorder, before, of_operand in zip(watching, moved, known, strict=True):
        if not recorder.inside:
            recorder.moved_inside = recorder.transfers != before
            recorder.operand = of_operand
            recorder.began = began
            note(recorder, frame, operand, args, kwargs, out)
            recorder.operand = None
            recorder.began = 0
    return out


def _whole(cause: str) -> Note:
    """Return the note of a method that hands every element of its tensor to Python."""

    def note(
        recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
    ) -> None:
        if recorder.arriving:
            recorder.read_early(frame, cause, (tensor,))
        if not recorder.is_host_copy(tensor) and recorder.waits_for(tensor):
            _copy_down(recorder, frame, cause, tensor)

    return note


def _note_format(
    recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
) -> None:
    recorder.read(frame, "format", tensor)


def _note_cpu(
    recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
) -> None:
    _copy_to_host(recorder, frame, "cpu", tensor, out)


def _note_to(
    recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
) -> None:
    device = _device_argument(args[0] if args else None, kwargs)
    if tensor.device != out.device:
        _note_move(recorder, frame, tensor, args, kwargs, out)
    elif out.device.type == "cpu" and names_host(device):
        _copy_to_host(recorder, frame, "to", tensor, out)
    elif (
        out.device.type == "cpu"
        and device is not None
        and recorder.host_as_device
        and recorder.moves_up(frame, tensor, out)
    ):
        recorder.event(frame, "transfers", "to-device to", tensor.nbytes)


def _note_move(
    recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
) -> None:
    """Note a tensor that was copied to another device."""
    if out.device.type == "cpu":
        _copy_to_host(recorder, frame, "to", tensor, out)
        if kwargs.get("non_blocking"):
            _expect(recorder, tensor, out)
    elif not recorder.moved_inside:
        recorder.transfer(frame, "to", tensor, out)


def _note_cuda(
    recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
) -> None:
    if tensor.device == out.device and out.device.type == "cpu":
        # The host stands in for a device that this machine lacks (`fake_accelerator`).
        recorder.event(frame, "transfers", "to-device cuda", tensor.nbytes)
    else:
        _note_move(recorder, frame, tensor, args, kwargs, out)


def _note_copy(
    recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
) -> None:
    source = args[0] if args else kwargs["other"]
    if not isinstance(source, torch.Tensor):
        return
    if not recorder.moved_inside:
        recorder.transfer(frame, "copy_", source, out)
    if out.device.type == "cpu" and (args[1] if len(args) > 1 else kwargs.get("non_blocking")):
        _expect(recorder, source, out)


def _expect(recorder: Recorder, source: torch.Tensor, copy: torch.Tensor) -> None:
    """Watch for reads of a copy to the host that is still under way."""
    if source.device.type == "cuda":
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        recorder.expect(copy, arrived.query)


def _note_factory(
    recorder: Recorder, frame: FrameType, data: Any, args: Any, kwargs: Any, out: Any
) -> None:
    """Note torch.tensor(data, device=...): made on the host and copied from pageable memory."""
    device = kwargs.get("device", args[1] if len(args) > 1 else None)
    if device is not None and not names_host(device):
        _made_from_host(recorder, frame, "tensor", data, out)


def _note_new_tensor(
    recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
) -> None:
    """Note x.new_tensor(data): made on the host and copied to the device of x or the named one."""
    if recorder.on_device(tensor) and not names_host(kwargs.get("device")):
        data = args[0] if args else kwargs.get("data")
        _made_from_host(recorder, frame, "new_tensor", data, out)


def _made_from_host(recorder: Recorder, frame: FrameType, cause: str, data: Any, out: Any) -> None:
    """Note a tensor filled on the host and copied; one without elements is not copied."""
    if recorder.moved_inside or not out.nbytes:
        return
    if isinstance(data, torch.Tensor) and data.device == out.device:
        return
    if recorder.on_device(out):
        recorder.event(frame, "transfers", f"to-device {cause}", out.nbytes)


def _copy_to_host(recorder: Recorder, frame: FrameType, cause: str, tensor: Any, out: Any) -> None:
    if recorder.waits_for(tensor):
        _copy_down(recorder, frame, cause, tensor)
        recorder.keep_host_copy(out)


def _copy_down(recorder: Recorder, frame: FrameType, cause: str, tensor: Any) -> None:
    recorder.event(frame, "host_reads", cause)
    if not recorder.moved_inside:
        recorder.event(frame, "transfers", f"to-host {cause}", tensor.nbytes)


def _device_argument(first: Any, kwargs: dict[str, Any]) -> Any:
    device = kwargs.get("device", first)
    return device if isinstance(device, (str, torch.device, int)) else None


def names_host(device: Any) -> bool:
    """True if an argument names the host itself.

    Only a string does so. A torch.device of the host in a variable is where a program without an
    accelerator computes; it would be the accelerator where there is one.
    """
    return isinstance(device, str) and device.startswith("cpu")


def _factory(original: Any) -> Any:
    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorders = None if is_compiling() else _active.get(threading.get_ident())
        if recorders is None or ("device" not in kwargs and len(args) < 3):
            return original(*args, **kwargs)
        data = args[0] if args else kwargs.get("data", kwargs.get("obj"))
        call = functools.partial(original, *args, **kwargs)
        frame = sys._getframe(1)
        return _observe(recorders, frame, _note_factory, call, data, args[1:], kwargs)

    return wrapper


def _waiting(original: Any, path: str, available: Callable[[], bool]) -> Any:
    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorders = None if is_compiling() else _active.get(threading.get_ident())
        if recorders is None:
            return original(*args, **kwargs)
        call = functools.partial(_without_device, original, available, args, kwargs)
        note = functools.partial(_note_wait, path, perf_counter_ns())
        watching = list(recorders)
        for recorder in watching:
            recorder.waiting += 1
        try:
            return _observe(watching, sys._getframe(1), note, call, None, args, kwargs)
        finally:
            for recorder in watching:
                recorder.waiting -= 1

    return wrapper


def _aside(original: Any) -> Any:
    """Return the function that traces, with our dispatch modes off torch's stack.

    torch traces a second time and compares the graphs, which fails under any dispatch mode. Reads
    in what is traced are seen by the function mode, which is open in both.
    """

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with dispatch_modes_aside():
            return original(*args, **kwargs)

    return wrapper


def _uncounted(original: Any) -> Any:
    """Return torch's function that compares two traces, whose reads are not the program's."""

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        watching = list(_active.get(threading.get_ident(), ()))
        for recorder in watching:
            recorder.inside += 1
        try:
            with no_reading():
                return original(*args, **kwargs)
        finally:
            for recorder in watching:
                recorder.inside -= 1

    return wrapper


def _note_wait(
    path: str,
    began: int,
    recorder: Recorder,
    frame: FrameType,
    none: Any,
    args: Any,
    kwargs: Any,
    out: Any,
) -> None:
    recorder.event(frame, "synchronisations", path)
    if recorder.timed:
        recorder.waited(frame, perf_counter_ns() - began)


def _without_device(original: Any, available: Callable[[], bool], args: Any, kwargs: Any) -> Any:
    """Call the original, and return None if there is no device to wait for.

    torch then raises AssertionError ("not compiled with CUDA"), RuntimeError or AttributeError (the
    backend's bindings are missing). With a device, every error is passed on.
    """
    try:
        return original(*args, **kwargs)
    except (AssertionError, RuntimeError, AttributeError):
        if available():
            raise
        return None


def _of_tensor(made: Note) -> Note:
    """Return the note, which does nothing where a subclass of Tensor returned something else."""

    def note(
        recorder: Recorder, frame: FrameType, tensor: Any, args: Any, kwargs: Any, out: Any
    ) -> None:
        if isinstance(out, torch.Tensor):
            made(recorder, frame, tensor, args, kwargs, out)

    return note


_METHODS: dict[str, Note] = {
    "tolist": _whole("tolist"),
    "numpy": _whole("numpy"),
    "__array__": _whole("__array__"),
    "cpu": _of_tensor(_note_cpu),
    "to": _of_tensor(_note_to),
    "cuda": _of_tensor(_note_cuda),
    "copy_": _of_tensor(_note_copy),
    "new_tensor": _of_tensor(_note_new_tensor),
    "__repr__": _note_format,
    "__format__": _note_format,
}


# Wrappers of one kind share their code.
_CODES = (
    _method(torch.Tensor.cpu, _note_cpu).__code__,
    _factory(torch.tensor).__code__,
    _waiting(torch.cuda.synchronize, "", torch.cuda.is_available).__code__,
)
for _code in _CODES[:2]:
    names_calls(_code, "original")
for _code in _CODES:
    hide_from_dynamo(_code)


def _always() -> bool:
    return True


# torch.Event and torch.Stream are immutable C types (torch 2.13): their synchronize() is not seen.
_SYNCHRONISING: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("torch.cuda.synchronize", torch.cuda.is_available),
    ("torch.cuda.empty_cache", torch.cuda.is_available),
    ("torch.cuda.Stream.synchronize", torch.cuda.is_available),
    ("torch.cuda.Event.synchronize", torch.cuda.is_available),
    ("torch.accelerator.synchronize", lambda: bool(torch.accelerator.is_available())),
    ("torch.accelerator.empty_cache", lambda: bool(torch.accelerator.is_available())),
    ("torch.mps.synchronize", torch.backends.mps.is_available),
    ("torch.mps.empty_cache", torch.backends.mps.is_available),
    ("torch.xpu.synchronize", torch.xpu.is_available),
    ("torch.xpu.empty_cache", torch.xpu.is_available),
    ("torch.xpu.Stream.synchronize", torch.xpu.is_available),
    ("torch.xpu.Event.synchronize", torch.xpu.is_available),
    ("torch.mtia.synchronize", lambda: bool(torch.mtia.is_available())),
    ("torch.distributed.barrier", _always),
)
