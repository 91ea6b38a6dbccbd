"""The torch table's return forms, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.returns import (
    HostReturn,
    InstanceReturn,
    ListReturn,
    Return,
    ScalarReturn,
    TensorReturn,
    TupleReturn,
)
from flake8_torchperf.values.named_types import instance_of
from flake8_torchperf.values.rank import broadcast_rank
from flake8_torchperf.values.values import (
    CHAIN_LENGTH,
    NDARRAY,
    NONE,
    SHAPE,
    UNKNOWN,
    Device,
    DType,
    Opaque,
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Sequence as SequenceOf

SCALARS = {"b": "bool", "i": "int", "f": "float", "n": "number", "s": "str"}
HOST_VALUES: dict[str, Value] = {
    "Z": SHAPE,
    "A": NDARRAY,
    "L": Opaque("numbers read from a tensor"),
    "N": NONE,
    "D": Device("unknown"),
    "Y": DType("unknown"),
}
DTYPE_LETTERS = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


def value_of_return(
    returned: Return,
    reason: Reason,
    tensors: SequenceOf[Tensor],
    device: str | None = None,
    operation: str = "",
) -> Value:
    """Return the value of a call's result, by its return form in torch's table.

    ``tensors`` are the tensor arguments in order, first the tensor that a method is called on.
    ``device`` overrides the residence of the result.
    """
    match returned:
        case TensorReturn(dtype=dtype, rank=rank):
            return _tensor(dtype, rank, reason, tensors, device, operation)
        case TupleReturn(items=items, names=names):
            values = tuple(value_of_return(i, reason, tensors, device, operation) for i in items)
            return Sequence("tuple", join_all(values), values, tuple(names or ()))
        case ListReturn(item=item):
            return Sequence("tuple", value_of_return(item, reason, tensors, device, operation))
        case ScalarReturn(kind=kind):
            return Scalar(SCALARS[kind])
        case HostReturn(kind=kind):
            return HOST_VALUES[kind]
        case InstanceReturn(qualified=qualified):
            return instance_of(qualified, reason)
    return UNKNOWN


def _tensor(
    dtype: str,
    rank: str,
    reason: Reason,
    tensors: SequenceOf[Tensor],
    device: str | None,
    operation: str,
) -> Tensor:
    first = tensors[0] if tensors else None
    chain = first.chain if first is not None else ()
    if operation:
        chain = (*chain, operation)[-CHAIN_LENGTH:]
    return Tensor(
        reason,
        _dtype(dtype, tensors),
        device if device is not None else "unknown",
        _scalar(rank, tensors),
        chain,
        rank=_rank(rank, tensors),
    )


def _dtype(letter: str, tensors: SequenceOf[Tensor]) -> str:
    if letter in DTYPE_LETTERS:
        return DTYPE_LETTERS[letter]
    if not tensors:
        return "unknown"
    first = tensors[0].dtype
    if letter == "=":
        return first
    if letter == "n":
        return "int" if first == "bool" else first
    if letter == "^":
        kinds = {t.dtype for t in tensors}
        return first if len(kinds) == 1 else "unknown"
    return "unknown"


def _scalar(letter: str, tensors: SequenceOf[Tensor]) -> bool | None:
    if letter == "0":
        return True
    if letter == "=" and tensors:
        return tensors[0].scalar
    if letter == "^" and tensors:
        if any(t.scalar is False for t in tensors):
            return False
        return True if all(t.scalar for t in tensors) else None
    return None


def _rank(letter: str, tensors: SequenceOf[Tensor]) -> int | None:
    if letter == "0":
        return 0
    if letter == "=" and tensors:
        return tensors[0].rank
    if letter == "^" and tensors:
        return broadcast_rank(tensors)
    return None
