"""Parameters of which nothing is declared, filled from the arguments of recorded calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls.other_kinds import holds_indices, is_of_another_kind
from flake8_torchperf.interpreter.inference.parameters import ANY_KEYWORDS, on_host
from flake8_torchperf.values.devices import BESIDE_HOST, CHOSEN, OPEN, SOMETIMES
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    Closure,
    Device,
    External,
    Function,
    Instance,
    Mapping_,
    NDArray,
    Partial,
    Reason,
    Scalar,
    Strength,
    Tensor,
    Union,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.values.environments import Env


def _of_torch(value: Value) -> bool:
    """True for an object of torch's own, such as a loader, which shows all that it does."""
    return isinstance(value, Instance) and value.info is None


# The values that a function may be given to call.
CALLABLE = (Function, Closure, Partial, External)


def fill_from_calls(env: Env, given: Env) -> None:
    """Fill in the arguments of the recorded calls, for parameters that are Unknown."""
    for name, value in given.items():
        if _on_host(value) and isinstance(env.get(name), Tensor):
            env[name] = value  # every recorded call gives host data, despite the annotation
        elif is_of_another_kind(value, env.get(name, UNKNOWN)):
            env[name] = value
        elif isinstance(own := env.get(name), Tensor) and isinstance(value, Tensor):
            if own.dtype == "unknown":
                own = replace(own, dtype=value.dtype)
            if own.device == "unknown" and value.device in (CHOSEN, "device"):
                own = replace(own, device=CHOSEN)
            if own.device in OPEN and value.origin == SOMETIMES:
                own = replace(own, origin=SOMETIMES)
            env[name] = own
        elif env.get(name) is UNKNOWN and value is not UNKNOWN:
            tensor = tensor_of(value)
            if tensor is None:
                if isinstance(value, CALLABLE) or _of_torch(value) or holds_indices(value):
                    env[name] = value
                continue
            reason = Reason(
                f"parameter `{name}` is given a tensor in this module",
                None,
                tensor.reason,
                min(tensor.reason.strength, Strength.INFERRED),
                Source.CALL,
            )
            env[name] = replace(tensor, reason=reason) if isinstance(value, Tensor) else value


def fill_as_called(env: Env, given: Env, *, private: bool) -> None:
    """Fill in the values that all calls of the package give, numbers included.

    A literal that they share, such as an option that is never turned on, counts only if the
    function is ``private``: callers outside the package may give another value.
    """
    fill_from_calls(env, given)
    for name, value in given.items():
        own = env.get(name, UNKNOWN)
        if own == ANY_KEYWORDS and isinstance(value, Mapping_):
            env[name] = value
            continue
        if isinstance(value, Tensor) and value.device == BESIDE_HOST and isinstance(own, Tensor):
            env[name] = replace(own, device=BESIDE_HOST)
        if own != value and on_host(own) == on_host(value) == value:
            env[name] = value  # every call gives the host's tensors
        if value is UNKNOWN or tensor_of(value) is not None:
            continue
        literal = value is NONE or (isinstance(value, Scalar) and value.known)
        optional = isinstance(own, Union) and NONE in own.options
        plain = own is UNKNOWN or optional or isinstance(own, (Scalar, Device))
        if plain and (private or not literal):
            env[name] = value


def fill_with_numbers(env: Env, given: Env) -> None:
    """Use numbers for parameters declared as tensors if all recorded calls give numbers.

    The other way round, a tensor counts for a parameter that is declared to be an integer. A tensor
    is a mask if all recorded calls give one.
    """
    for name, value in given.items():
        own = env.get(name, UNKNOWN)
        if is_of_another_kind(value, own):
            env[name] = value
        elif isinstance(own, Tensor) and isinstance(value, Tensor) and value.dtype == "bool":
            env[name] = replace(own, dtype="bool") if own.dtype == "unknown" else own


def _on_host(value: Value) -> bool:
    return isinstance(value, NDArray) or (isinstance(value, Tensor) and value.device == "host")
