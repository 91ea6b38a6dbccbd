"""Who says that a call made Python wait for CUDA.

Enters a call; leaves which of two witnesses saw a wait. Must not know the table of torch.

torch's own debug mode reports the waits that pass through its wrappers; torch.cuda's documentation
says that it does not cover them all (sparse and distributed operations). The queue is the second
witness: a kernel that idles for a while is queued first, and if it has finished when the call comes
back, the call waited for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import torch

WAITED_BY = ("none", "debug mode", "queue", "both")
_MESSAGE = "called a synchronizing CUDA operation"
# Long enough that launching any operation takes less, short enough for two thousand of them.
IDLE_SECONDS = 0.05


class Witness(Protocol):
    """What the measurement needs of a machine."""

    device: str

    def waited(self, call: Callable[[], object]) -> str:
        """Run the call once; one of `WAITED_BY`. Raises what the call raises."""

    def settle(self) -> None:
        """Wait for everything queued. Raises RuntimeError where the device is lost."""


class CudaWitness:
    """The two witnesses on the current CUDA device."""

    device = "cuda"

    def __init__(self) -> None:
        self._cuda: Any = torch.cuda
        self._cycles = self._cycles_of(IDLE_SECONDS)

    def waited(self, call: Callable[[], object]) -> str:
        """Under the debug mode, behind a queue that is not empty."""
        done = self._cuda.Event()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self._cuda._sleep(self._cycles)
            done.record()
            torch.cuda.set_sync_debug_mode("warn")
            try:
                call()
            finally:
                torch.cuda.set_sync_debug_mode("default")
            queue = done.query()
        warned = any(_MESSAGE in str(one.message) for one in seen)
        return WAITED_BY[warned + 2 * queue]

    def settle(self) -> None:
        """The end of everything queued on all streams."""
        torch.cuda.synchronize()

    def _cycles_of(self, seconds: float) -> int:
        """How many cycles the idling kernel has to be told, timed on this device."""
        cycles = 10_000_000
        start, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(2):  # the first run loads the kernel
            start.record()
            self._cuda._sleep(cycles)
            end.record()
            end.synchronize()
        return max(int(cycles * seconds * 1000 / start.elapsed_time(end)), 1)


def missing() -> str:
    """Why no CUDA device can be asked here, in one line; "" where one can."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA device"
    return ""


def described() -> dict[str, str]:
    """The versions that a measurement holds for."""
    return {
        "torch": torch.__version__.partition("+")[0],
        "cuda": str(torch.version.cuda),
        "device": torch.cuda.get_device_name(),
    }
