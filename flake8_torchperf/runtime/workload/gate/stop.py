"""Ends a program at its first wait for the device, for `torchperf run --raise`."""

from __future__ import annotations

import torch

from flake8_torchperf.runtime.counting.counts import INFERRED_WAITS, REPORTED_WAITS

_WORDS = {
    "device_syncs": "the device made Python wait",
    "synchronisations": "the program waits for the device",
    "host_reads": "the host reads a tensor's value",
    "dynamic_shapes": "the size of the output depends on data",
}


class DeviceWait(BaseException):
    """A wait for the device. No `except Exception` of the program catches it."""


# The name that tracebacks show.
DeviceWait.__module__ = "torchperf"


def raise_at_wait(counter: str, cause: str) -> None:
    """Raise DeviceWait if the event of this counter is a wait, and not only a copy."""
    if counter in (REPORTED_WAITS if torch.cuda.is_available() else INFERRED_WAITS):
        raise DeviceWait(f"{_WORDS[counter]} in {cause} (torchperf run --raise)")
