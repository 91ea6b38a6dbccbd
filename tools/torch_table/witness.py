"""Two witnesses that say if a call made Python wait for CUDA.

The module does not know the table of torch.

torch's own debug mode reports the waits that pass through its wrappers; torch.cuda's documentation
says that it does not cover them all (sparse and distributed operations). The queue is the second
witness: a kernel that idles for a while is queued first, and if it has finished when the call comes
back, the call waited for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

import torch

WAITED_BY = ("none", "debug mode", "queue", "both")
_MESSAGE = "called a synchronizing CUDA operation"
# Long enough that launching any operation takes less, short enough for two thousand of them.
IDLE_SECONDS = 0.05
# An idle device's clock is slow at first: the device is kept busy for this long before it is timed.
WARM_SECONDS = 0.5
# A call whose own work on the host takes this part of the idling gets a longer one.
HOST_SHARE = 0.25


class Witness(Protocol):
    """A machine, as far as the measurement needs it."""

    device: str

    def waited(self, call: Callable[[], object]) -> str:
        """Run the call once; one of `WAITED_BY`. Raises what the call raises."""

    def settle(self) -> None:
        """Wait for everything queued. Raises RuntimeError where the device is lost."""


class CudaWitness:
    """The two witnesses on the current CUDA device."""

    device = "cuda"

    def __init__(self, cuda: Any = torch.cuda, clock: Callable[[], float] = perf_counter) -> None:
        self._cuda = cuda
        self._clock = clock
        self._cycles_each_second = self._timed()

    def cycles(self, seconds: float) -> int:
        """Return the cycles for which the idling kernel keeps the device busy that long."""
        return max(int(self._cycles_each_second * seconds), 1)

    def waited(self, call: Callable[[], object]) -> str:
        """Run the call under the debug mode, behind a queue that is not empty.

        If only the queue says that it waited, the call may merely have taken longer than the
        queue: then it is timed by itself, and run once more behind one that lasts.
        """
        warned, emptied = self._asked(call, IDLE_SECONDS)
        if emptied and not warned:
            alone = self._alone(call)
            if alone > HOST_SHARE * IDLE_SECONDS:
                warned, emptied = self._asked(call, alone / HOST_SHARE)
        return WAITED_BY[warned + 2 * emptied]

    def settle(self) -> None:
        """Wait for everything queued on all streams."""
        self._cuda.synchronize()

    def _asked(self, call: Callable[[], object], seconds: float) -> tuple[bool, bool]:
        """Return two flags for a call: the debug mode warned, and the call emptied the queue.

        The queue is emptied if all work queued before the call is done when it returns.
        """
        done = self._cuda.Event()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self._cuda._sleep(self.cycles(seconds))
            done.record()
            self._cuda.set_sync_debug_mode("warn")
            try:
                call()
            finally:
                self._cuda.set_sync_debug_mode("default")
            emptied = bool(done.query())
        return any(_MESSAGE in str(one.message) for one in seen), emptied

    def _alone(self, call: Callable[[], object]) -> float:
        """Return the seconds a call takes with nothing queued before it."""
        self.settle()
        start = self._clock()
        call()
        return self._clock() - start

    def _timed(self) -> float:
        """Return the cycles that the idling kernel counts in a second on an awake device."""
        cycles = 10_000_000
        start, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        since = self._clock()
        rounds = 0
        while rounds < 2 or self._clock() - since < WARM_SECONDS:
            start.record()
            self._cuda._sleep(cycles)
            end.record()
            end.synchronize()
            rounds += 1
        return cycles * 1000 / float(start.elapsed_time(end))


def missing() -> str:
    """Return why no CUDA device can be used here, in one line; "" if one can."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA device"
    return ""


def described() -> dict[str, str]:
    """Return the versions that a measurement holds for."""
    return {
        "torch": torch.__version__.partition("+")[0],
        "cuda": str(torch.version.cuda),
        "device": torch.cuda.get_device_name(),
    }
