"""einops functions: the result has another shape, but the kind and the device of the input."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.values.combining import combine_device, held_tensor
from flake8_torchperf.values.rank import ranked
from flake8_torchperf.values.values import (
    CHAIN_LENGTH,
    NDARRAY,
    UNKNOWN,
    NDArray,
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.values.arguments import Arguments

# A name, a number or `...` on its own, or several in parentheses, which become one dimension.
AXIS = re.compile(r"\([^)]*\)|[^\s()]+")
SHAPING = ("rearrange", "repeat", "reduce")


def call_einops(name: str, arguments: Arguments) -> Value:
    """Return the result of an einops function; UNKNOWN if its input is unknown."""
    given = arguments.value(0, "tensor")
    if isinstance(given, NDArray):
        return NDARRAY if name in SHAPING else UNKNOWN
    if name == "einsum":
        tensors = [t for t in (tensor_of(a.value) for a in arguments.positional) if t is not None]
        if not tensors:
            return UNKNOWN
        first = replace(tensors[0], device=combine_device(tensors))
        return _shaped(first, name, arguments, _written(arguments.positional[-1].value))
    tensor = held_tensor(given) if isinstance(given, Sequence) else tensor_of(given)
    if tensor is None:
        return UNKNOWN
    pattern = _written(arguments.value(1, "pattern"))
    if name in SHAPING:
        made = _shaped(tensor, name, arguments, pattern)
        return _reduced(made, arguments) if name == "reduce" else made
    if name == "pack":
        return Sequence("tuple", UNKNOWN, (_shaped(tensor, name, arguments, pattern), UNKNOWN))
    if name == "unpack":
        return Sequence("list", _shaped(tensor, name, arguments, ""))
    return UNKNOWN


def _shaped(tensor: Tensor, name: str, arguments: Arguments, pattern: str) -> Tensor:
    """Return the tensor with the shape that the right side of a pattern gives."""
    because = tensor.reason
    reason = Reason(f"`einops.{name}` returns it", arguments.node, because, because.strength)
    chain = (*tensor.chain, name)[-CHAIN_LENGTH:]
    made = replace(tensor, reason=reason, chain=chain, scalar=None, role="", rank=None)
    _, arrow, right = pattern.partition("->")
    return ranked(made, len(AXIS.findall(right)) if arrow and "..." not in right else None)


def _reduced(tensor: Tensor, arguments: Arguments) -> Tensor:
    """Return the result of ``reduce(x, "b n -> b", "any")``; a sum of booleans is an integer."""
    how = _written(arguments.value(2, "reduction"))
    if how in ("any", "all"):
        return replace(tensor, dtype="bool")
    return replace(tensor, dtype="int") if how == "sum" and tensor.dtype == "bool" else tensor


def _written(value: Value) -> str:
    """Return a text that is written in the source; "" for any other value."""
    text = value.value if isinstance(value, Scalar) else ""
    return text if isinstance(text, str) else ""
