"""The names that torch gives to places of computation."""

from __future__ import annotations

# "cpu" is the host.
DEVICE_NAMES = frozenset(("cpu", "cuda", "mps", "xpu", "npu", "hpu", "mtia", "xla"))


def names_device(text: object) -> bool:
    """Is it a device's name, with or without its number?"""
    return isinstance(text, str) and text.partition(":")[0] in DEVICE_NAMES


def either_names_a_device(a: object, b: object) -> bool:
    """ "cuda" on one path and "cpu" on the other: where there is a device, it is meant."""
    return a != b and names_device(a) and names_device(b)
