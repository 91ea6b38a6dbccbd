"""The counts of one thread so far, keyed by code object and instruction offset.

Modes, kernels and wrappers write here while the user's code runs. Lines are resolved only when
`evidence` is called, because a dispatch must stay cheap.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

from flake8_torchperf.runtime.allowed_regions import allowed_here
from flake8_torchperf.runtime.counting.counts import INFERRED_WAITS, REPORTED_WAITS
from flake8_torchperf.runtime.counting.moments import Moments
from flake8_torchperf.runtime.counting.op_schemas import (
    MASK_SENSITIVE,
    MASKED_WRITES,
    TRANSFERS,
    Operation,
    is_composite,
    masked_index,
    operation,
)
from flake8_torchperf.runtime.counting.torchs_own import reads_own_counter, stays

SAMPLES = 1024
"""The most durations of each operation that are kept, as in torch_xla's metrics."""

Cell = list[Any]
"""[dispatches, nanoseconds, call, keep the duration, look at the arguments or None, func, name]"""

_SHOWN = frozenset({"host_reads", "transfers", "synchronisations", "device_syncs"})
"""The counters whose events a timeline shows."""
ALLOWABLE = _SHOWN | {"dynamic_shapes"}
"""The counters that a region of `allow_sync` counts apart."""
_LED = frozenset((*INFERRED_WAITS, *REPORTED_WAITS))
"""The counters of waits."""
_HERE = "here"  # Every known code object's table has this key, so that none of them is falsy.
ITERATION = torch.Tensor.__iter__.__code__
"""The code that runs where Python iterates a tensor: torch unbinds it there."""


class Recorder:
    """The tables of one thread of a counter. Only that thread, the opener, writes to them."""

    def __init__(self, owns: Callable[[str], bool], host_as_device: bool) -> None:
        self.owns = owns
        self.host_as_device = host_as_device
        # True of tensors that lie on the host on every machine, and so never count as a device's.
        self.on_host: Callable[[torch.Tensor], bool] | None = None
        # True of tensors that were made on the host, as far as a witness saw; None without one.
        self.made_on_host: Callable[[torch.Tensor], bool] | None = None
        self._moved: weakref.ref[torch.Tensor] | None = None
        self.opener = threading.get_ident()
        # Above 0 while an event that is already counted runs: events inside it do not count.
        self.inside = 0
        # id(code) -> {offset: {id(func): cell}}, or False for code that is not the user's. By id
        # since hashing a code object hashes its constants; `codes` keeps the ids from being reused.
        self.spots: dict[int, Any] = {}
        self.codes: dict[int, CodeType] = {}
        self.elsewhere: dict[Any, Any] = {_HERE: True}
        # (id(code), offset, counter, cause, reason of the region around it) -> [times, bytes]
        self.events: dict[tuple[int, int, str, str, str], list[int]] = {}
        # (id(code), offset, operation, reason) -> the part of its cell's count in such regions.
        self.allowed_shapes: dict[tuple[int, int, str, str], int] = {}
        # Called with each wait that no region allows, its counter and cause; may raise.
        self.stop: Callable[[str, str], None] | None = None
        self.operations: dict[int, Operation] = {}
        self.durations: dict[int, deque[int]] = {}
        self.waiting = 0  # Above 0 inside a synchronisation that the program asked for.
        # The waits that CUDA has reported so far; the witness compares before and after.
        self.device_waits = 0
        self.timed = False  # True if waits are measured; their durations follow, by place.
        self.nanoseconds_waited: dict[tuple[int, int, str], int] = {}
        self.transfers = 0
        # Where a timeline is kept, and when the event began that is counted next; 0 if unknown.
        self.moments: Moments | None = None
        self.began = 0
        # Told of each event of `_LED`, with its innermost frame.
        self.led: Callable[[FrameType | None, str], None] | None = None
        # The operand of the wrapped call just over, and whether it lay on the device before that,
        # and was made on the host.
        self.operand: tuple[Any, bool, bool] | None = None
        self.moved_inside = False  # True if the wrapped call just over dispatched a real transfer.
        # The number that the user's code wrote last, as the tensor that torch made of it.
        self.literal: weakref.ref[torch.Tensor] | None = None
        self._host_copy: weakref.ref[torch.Tensor] | None = None
        # Copies to the host that may not have arrived: storage -> the copy, and a test for arrival.
        self.arriving: dict[int, tuple[torch.Tensor, Callable[[], bool]]] = {}

    def clear(self) -> None:
        """Discard all counts, in place: an open mode holds these tables."""
        for table in (self.spots, self.codes, self.elsewhere, self.events, self.nanoseconds_waited):
            table.clear()
        self.allowed_shapes.clear()
        self.elsewhere[_HERE] = True
        self.operations.clear()
        self.durations.clear()
        self.arriving.clear()
        self.transfers = 0

    # Called while the user's code runs.

    def learn(self, code: CodeType) -> Any:
        """Register a new code object, and return its table, or False if it is not the user's."""
        spots: Any = {_HERE: True} if self.owns(code.co_filename) else False
        self.codes[id(code)] = code
        self.spots[id(code)] = spots
        return spots

    def cell(self, cells: dict[int, Cell], func: Any) -> Cell | None:
        """Add and return the counters of an operation at a place where it was not seen before.

        Return None for an operation that consists of others, which are counted instead.
        """
        if is_composite(func):
            return None
        known = self.operations.get(id(func))
        if known is None:
            known = self.operations[id(func)] = operation(func)
            self.durations[id(func)] = deque(maxlen=SAMPLES)
        usual = _look_read if known.reads else _look_shape if known.dynamic else None
        look = _LOOKS.get(known.name, usual)
        keep = self.durations[id(func)].append
        made = cells[id(func)] = [0, 0, known.call, keep, look, func, known.name]
        return made

    def place(self, frame: FrameType | None) -> tuple[int, int]:
        """Return the id of the code object and the offset for an event at this frame."""
        while frame is not None:
            code = frame.f_code
            spots = self.spots.get(id(code))
            if spots is None:
                spots = self.learn(code)
            if spots:
                return id(code), frame.f_lasti
            frame = frame.f_back
        return 0, 0

    def event(self, frame: FrameType | None, counter: str, cause: str, size: int = 0) -> None:
        """Count an event that is not exactly one dispatch."""
        reason = allowed_here() if counter in ALLOWABLE else ""
        key = (*self.place(frame), counter, cause, reason)
        if self.moments is not None and key[0] and counter in _SHOWN:
            place = self.codes[key[0]], key[1]
            self.moments.add(place, self.began, counter, "", cause, size=size)
        if self.led is not None and counter in _LED and not reason:
            self.led(frame, counter)
        seen = self.events.get(key)
        if seen is None:
            self.events[key] = [1, size]
        else:
            seen[0] += 1
            seen[1] += size
        if self.stop is not None and key[0] and not reason and counter != "dynamic_shapes":
            self.stop(counter, cause)

    def made_shape(self, frame: FrameType | None, name: str, source: Any) -> None:
        """Note a dispatch whose output's size depends on data, which its cell counts."""
        if reason := allowed_here():
            key = (*self.place(frame), name, reason)
            self.allowed_shapes[key] = self.allowed_shapes.get(key, 0) + 1
            return
        if self.led is not None:  # The dispatch itself is what counts.
            self.led(frame, "dynamic_shapes")
        self.stop_at_shape(frame, name, source)

    def stop_at_shape(self, frame: FrameType | None, name: str, source: Any) -> None:
        """Stop at an output whose size depends on the data of a device's tensor."""
        if self.stop is None or allowed_here() or not self.place(frame)[0]:
            return
        if isinstance(source, torch.Tensor) and self.waits_for(source):
            self.stop("dynamic_shapes", name)

    def waited(self, frame: FrameType | None, nanoseconds: int) -> None:
        """Add the time that the host just waited at this frame."""
        place = (*self.place(frame), allowed_here())
        before = self.nanoseconds_waited.get(place, 0)
        self.nanoseconds_waited[place] = before + nanoseconds

    def on_device(self, tensor: torch.Tensor) -> bool:
        """True if reading this tensor makes the host wait, or would on an accelerator."""
        if self.operand is not None and self.operand[0] is tensor:
            return self.operand[1]
        kind = tensor.device.type
        if kind != "cpu":
            return kind != "meta"
        return self.host_as_device and not (self.on_host is not None and self.on_host(tensor))

    def read(self, frame: FrameType | None, cause: str, tensor: torch.Tensor) -> None:
        """Count a host read, unless it is part of one or reads a copy that is on the host."""
        if not self.waits_for(tensor) or self.is_host_copy(tensor):
            return
        if tensor.device.type != "cpu" or not reads_own_counter(frame, tensor):
            self.event(frame, "host_reads", cause)

    def waits_for(self, tensor: torch.Tensor) -> bool:
        """True if reading this tensor now makes the host wait, outside of any counted event."""
        return not self.inside and self.on_device(tensor)

    def transfer(
        self, frame: FrameType | None, cause: str, source: torch.Tensor, target: torch.Tensor
    ) -> None:
        """Count a copy if it really crossed devices."""
        here, there = source.device, target.device
        if here == there or "meta" in (here.type, there.type):
            return
        self.transfers += 1
        direction = "to-host" if there.type == "cpu" else "to-device"
        self.event(frame, "transfers", f"{direction} {cause}", source.nbytes)

    def moves_up(self, frame: FrameType, tensor: torch.Tensor, out: torch.Tensor) -> bool:
        """True if `to` with a device would copy a tensor of the host to an accelerator.

        Here it usually returns the tensor itself, which then counts as the accelerator's.
        """
        if not tensor.nbytes or stays(frame, tensor):
            return False
        if self.made_on_host is not None:
            assert self.operand is not None
            return self.operand[2]
        again = self._moved is not None and self._moved() is tensor
        self._moved = weakref.ref(out)
        return not again

    def before(self, operand: Any) -> tuple[Any, bool, bool]:
        """Return what is known of a call's operand before its result, maybe the same, is marked."""
        if not isinstance(operand, torch.Tensor):
            return operand, False, False
        made = self.made_on_host is not None and self.made_on_host(operand)
        return operand, self.on_device(operand), made

    def expect(self, copy: torch.Tensor, arrived: Callable[[], bool]) -> None:
        """Remember a copy to the host that was queued without a wait."""
        self.arriving[_storage(copy)] = (copy, arrived)

    def read_early(self, frame: FrameType | None, cause: str, arguments: Iterable[Any]) -> None:
        """Count an operation on a copy that has not arrived, and drop the copies that have."""
        for key in [key for key, (_, arrived) in self.arriving.items() if arrived()]:
            del self.arriving[key]
        tensors = (one for one in arguments if isinstance(one, torch.Tensor))
        if any(one.device.type == "cpu" and _storage(one) in self.arriving for one in tensors):
            self.event(frame, "early_reads", cause)

    def keep_host_copy(self, tensor: torch.Tensor) -> None:
        """Note the result of `cpu()`: reading it needs no further wait.

        On the host `cpu()` returns its operand, so the stand-in for a device's tensor and its copy
        are one object. Only the last copy is noted, which is the one that a chain of calls uses.
        """
        self._host_copy = weakref.ref(tensor)

    def is_host_copy(self, tensor: torch.Tensor) -> bool:
        """True if this tensor is the last that `cpu()` returned."""
        return self._host_copy is not None and self._host_copy() is tensor

    def all_cells(self) -> Iterator[tuple[int, int, Cell]]:
        """Yield code object ids, offsets and cells, while the thread may add more."""
        for code, spots in [*list(self.spots.items()), (0, self.elsewhere)]:
            for offset, cells in list((spots or {}).items()):
                if offset is not _HERE:
                    for cell in list(cells.values()):
                        yield code, offset, cell


def _storage(tensor: torch.Tensor) -> int:
    """Return the same number for a tensor and its views."""
    return int(tensor.untyped_storage()._cdata)


# Some events depend on the arguments of a dispatch. Each look gets the recorder, the operation's
# name, the frame that dispatched, the arguments and the output.


def _look_read(
    recorder: Recorder, name: str, frame: FrameType | None, args: tuple[Any, ...], out: Any
) -> None:
    recorder.read(frame, name, args[0])


def _look_shape(
    recorder: Recorder, name: str, frame: FrameType | None, args: tuple[Any, ...], out: Any
) -> None:
    recorder.made_shape(frame, name, args[0] if args else None)


def _look_mask(
    recorder: Recorder, name: str, frame: FrameType | None, args: tuple[Any, ...], out: Any
) -> None:
    if masked_index(args) and not _fills(recorder, name, args):
        recorder.event(frame, "dynamic_shapes", f"{name} by mask")
        recorder.stop_at_shape(frame, name, args[0])


def _look_literal(
    recorder: Recorder, name: str, frame: FrameType | None, args: tuple[Any, ...], out: Any
) -> None:
    recorder.literal = weakref.ref(out) if isinstance(out, torch.Tensor) else None


def _fills(recorder: Recorder, name: str, args: tuple[Any, ...]) -> bool:
    """True if one number is written through one mask: ``v[mask] = 0.0``, by `masked_fill_`.

    It needs no indices (aten/src/ATen/native/TensorAdvancedIndexing.cpp, canDispatchToMaskedFill).
    The number is a tensor on the host, which may stand in for the device here.
    """
    if name not in MASKED_WRITES or len([one for one in args[1] if one is not None]) != 1:  # noqa: TPF201 - a list of indices
        return False
    value, accumulates = args[2], len(args) > 3 and args[3]
    if value.numel() != 1 or accumulates:
        return False
    written = recorder.literal is not None and recorder.literal() is value
    return written or (value.device.type == "cpu" and args[0].device.type != "cpu")


def _look_transfer(
    recorder: Recorder, name: str, frame: FrameType | None, args: tuple[Any, ...], out: Any
) -> None:
    source = args[1] if name == "aten::copy_" else args[0]
    recorder.transfer(frame, name, source, out)


def _look_iteration(
    recorder: Recorder, name: str, frame: FrameType | None, args: tuple[Any, ...], out: Any
) -> None:
    while frame is not None and frame.f_code.co_filename == _MODES:
        frame = frame.f_back  # Another counter's mode, opened inside this one.
    if frame is not None and frame.f_code is ITERATION:
        recorder.event(frame, "iterations", "Tensor.__iter__")


_MODES = str(Path(__file__).parents[1] / "dispatch_modes.py")
_LOOKS: dict[str, Any] = {
    **dict.fromkeys(MASK_SENSITIVE, _look_mask),
    **dict.fromkeys(TRANSFERS, _look_transfer),
    "aten::lift_fresh": _look_literal,
    "aten::unbind": _look_iteration,
}
