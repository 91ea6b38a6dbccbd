"""Joint properties of several values: their device, their shape, the tensor among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flake8_torchperf.values import devices
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.values import (
    UNKNOWN,
    Mapping_,
    NoneValue,
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
    tensor_of,
    union,
)


def combine_device(values: list[Tensor]) -> str:
    """Return where the result of an operation over these tensors lies.

    One tensor on the device, or on that which the program chooses, puts the result there. A
    zero-dimensional tensor on the host may be combined with any other (torch promotes it), so it
    does not decide. A tensor with dimensions can only be combined with tensors of its own device:
    if the code ever runs, the others are on the host as well. The same holds for tensors that are
    combined with a tensor that is likely on the host.
    """
    found = {v.device for v in values}
    if "device" in found:
        return "device"
    if found == {"host"}:
        return "host"
    if found <= {"host", BESIDE_HOST}:
        return BESIDE_HOST
    if any(v.scalar in DECIDING_SIDES.get(v.device, ()) for v in values):
        return BESIDE_HOST
    return devices.CHOSEN if devices.CHOSEN in found else "unknown"


# The values of ``scalar`` with which a tensor on or beside the host keeps the result off a device.
DECIDING_SIDES: dict[str, tuple[bool | None, ...]] = {"host": (False,), BESIDE_HOST: (False, None)}


def combine_scalar(values: list[Tensor]) -> bool | None:
    """Return True if a broadcast over these tensors has no dimensions, None if that is unknown."""
    if any(v.scalar is False for v in values):
        return False
    return True if all(v.scalar for v in values) else None


def without(value: Value, *kinds: type[Any]) -> Value | None:
    """Return ``value`` without the options of the given types; None if nothing is left."""
    if isinstance(value, Union):
        left = tuple(o for o in value.options if not isinstance(o, kinds))
        gone = any(isinstance(o, kinds) and not isinstance(o, NoneValue) for o in value.options)
        return union(map(whole, left) if gone else left) if left else None
    return None if isinstance(value, kinds) else value


def whole(option: Value) -> Value:
    """Return an option that may be the only one left; `union` marks it again if it is not."""
    return replace(option, partly=False) if isinstance(option, Tensor) else option


def tested(option: Value, reason: Reason | None) -> Value:
    """Return an option that a type test found; what an unknown path gives may lie anywhere.

    ``reason`` is that of a test for tensors alone, surer than that of a name or of a use.
    """
    if not isinstance(option, Tensor):
        return option
    if reason is not None and option.reason.strength < reason.strength:
        option = replace(option, reason=reason)
    if option.device == "host" and option.origin == devices.SOMETIMES and option.partly:
        return replace(option, device="unknown", partly=False)
    return whole(option)


def truthy(value: Value) -> Value:
    """Return ``value`` after a test found it true; UNKNOWN if nothing is left of it."""
    return without(value, NoneValue) or UNKNOWN


def may_be_number(value: Value) -> bool:
    """True if the value is a number, or is declared to be a number or something else."""
    if isinstance(value, Union):
        return not value.met and any(map(may_be_number, value.options))
    return isinstance(value, Scalar) and value.kind != "str"


def held_tensor(value: Value) -> Tensor | None:
    """Return the tensor whose elements would be printed with ``value``."""
    match value:
        case Tensor() | Union():
            return tensor_of(value)
        case Sequence(element=element, items=items) if element != value:
            found = [held_tensor(item) for item in items or (element,)]
            return next((t for t in found if t is not None and t.device != "host"), None)
        case Mapping_():
            return held_tensor(value.any_value())
    return None


def for_better_reason(found: Value, stated: Value) -> Value:
    """Return ``found``, with the reason of ``stated`` if both are tensors and it is stronger."""
    if not isinstance(found, Tensor) or not isinstance(stated, Tensor):
        return found
    weaker = found.reason.strength < stated.reason.strength
    return replace(found, reason=stated.reason) if weaker else found
