"""The number of dimensions of a tensor, as far as the calls that made it show it.

The number matters for an index: the host reads a tensor without dimensions that is an index.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values.values import (
    Device,
    DType,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join_all,
    literal,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.knowledge.table import Op
    from flake8_torchperf.values.arguments import Argument, Arguments

# Calls whose result has one dimension for each size, given as separate arguments or in a list.
_SIZED = methods_of("takes-a-size")
# The calls of these that take the sizes in one list.
LISTED = {"full", "new_full"}
# The calls that, as functions, take the tensor first.
RESHAPING = {"view", "reshape", "expand"}
# Calls whose result always has this many dimensions.
FIXED_DIMENSIONS = {
    "arange": 1, "linspace": 1, "logspace": 1, "randperm": 1, "ravel": 1, "bincount": 1,
    "masked_select": 1, "argwhere": 2, "eye": 2, "mv": 1, "mm": 2, "bmm": 3, "outer": 2,
    "combinations": 2, "tril_indices": 2, "triu_indices": 2, "histc": 1,
}  # fmt: skip
# Calls whose result has this many more dimensions than their argument.
MORE_DIMENSIONS = {
    "unsqueeze": 1,
    "stack": 1,
    "one_hot": 1,
    "select": -1,
    "diagonal": -1,
    "unbind": -1,
}
# Reductions over one dimension that torch's tags leave out.
REDUCING = {"mode", "kthvalue"}
KNOWN = {
    *_SIZED,
    *FIXED_DIMENSIONS,
    *MORE_DIMENSIONS,
    *REDUCING,
    "diag",
    "flatten",
    "nonzero",
    "where",
    "unique",
}


def ranked(tensor: Tensor, rank: int | None) -> Tensor:
    """Return the tensor with this number of dimensions; unchanged if that is None."""
    return tensor if rank is None else replace(tensor, rank=rank, scalar=rank == 0)


def broadcast_rank(tensors: Iterable[Tensor]) -> int | None:
    """Return the number of dimensions of an element-wise result, or None if one is unknown."""
    ranks = [tensor.rank for tensor in tensors]
    known = [rank for rank in ranks if rank is not None]
    return max(known) if known and len(known) == len(ranks) else None


def with_rank(
    value: Value, op: Op, name: str, arguments: Arguments, tensors: list[Tensor], *, method: bool
) -> Value:
    """Return the result of a torch call, with its number of dimensions if that is known."""
    first = tensors[0] if tensors else None
    if name not in KNOWN and (not op.reduction or first is None or first.rank is None):
        return value
    if arguments.open:
        return value
    match value:
        case Tensor(scalar=None | False, rank=None):
            return ranked(value, _rank(op, name, arguments, first, method=method))
        case Sequence(items=items, element=Tensor(rank=None)):
            rank = _rank(op, name, arguments, first, method=method)
            if rank is None:
                return value
            if name == "unique" and items is not None and "return_inverse" in arguments.keywords:
                # The second item holds one position for each element of the input.
                made = (_each(items[0], 1), items[1], *(_each(item, 1) for item in items[2:]))
                return replace(value, items=made)
            each = tuple(_each(item, rank) for item in items or ())
            element = join_all(each) if each else _each(value.element, rank)
            return replace(value, element=element, items=each if items is not None else None)
    return value


def _each(value: Value, rank: int) -> Value:
    return ranked(value, rank) if isinstance(value, Tensor) and value.rank is None else value


def _rank(
    op: Op, name: str, arguments: Arguments, first: Tensor | None, *, method: bool
) -> int | None:
    rest = arguments if method else arguments.rest()
    if name in FIXED_DIMENSIONS:
        return FIXED_DIMENSIONS[name]
    if name in _SIZED:
        return _of_sizes(name, rest if name in RESHAPING else arguments, first)
    if name == "unique":
        return None if rest.positional or "dim" in rest.keywords else 1
    if name == "flatten":
        whole = [a.value for a in rest.all()] in ([], [literal("int", 0)])
        return 1 if whole else None
    if name == "where":
        return 1 if len(arguments.positional) == 1 and not arguments.keywords else None
    if name == "nonzero":
        return _of_nonzero(rest)
    if first is None or first.rank is None:
        return None
    if name == "diag":
        return {1: 2, 2: 1}.get(first.rank)
    if name in MORE_DIMENSIONS:
        return (
            first.rank + MORE_DIMENSIONS[name] if first.rank + MORE_DIMENSIONS[name] >= 0 else None
        )
    return _reduced(op, first.rank, arguments)


def _of_sizes(name: str, arguments: Arguments, first: Tensor | None) -> int | None:
    """Return the dimensions of ``zeros(n, m)`` or ``x.view((n, -1))``: one for each size."""
    if "size" in arguments.keywords or "shape" in arguments.keywords:
        given = arguments.keywords.get("size") or arguments.keywords["shape"]
        return _length(given.value)
    sizes = arguments.positional
    if name == "randint":
        lists = [n for n in (_length(a.value) for a in sizes) if n is not None]
        return lists[0] if len(lists) == 1 else None
    if name in LISTED or len(sizes) == 1:
        size = sizes[0].value if sizes else None
        if isinstance(size, DType):
            return None if first is None else first.rank  # `x.view(torch.int32)`
        if isinstance(size, Scalar) and name not in LISTED:
            return 1 if size.kind in ("int", "number") else None
        return None if size is None else _length(size)
    several = [a for a in sizes if not isinstance(a.value, (Sequence, DType, Device, NoneValue))]
    return len(sizes) if len(several) == len(sizes) and sizes else None


def _length(value: Value) -> int | None:
    if isinstance(value, Sequence) and value.items is not None and value.kind in ("tuple", "list"):
        return len(value.items)
    return None


def _of_nonzero(rest: Arguments) -> int | None:
    """Return the dimensions of indices by rows, or by dimension with ``as_tuple=True``."""
    asked = rest.get(0, "as_tuple")
    if asked is None:
        return 2
    match asked.value:
        case Scalar(value=bool(separate)):
            return 1 if separate else 2
    return None


def _reduced(op: Op, rank: int, arguments: Arguments) -> int | None:
    """Return the dimensions of a reduction: ``x.sum(-1)`` has one less than ``x``."""
    for overload in op.overloads:
        slots = [p.name for p in overload.params if p.form == "positional"]
        if "dim" not in slots:
            continue
        given = arguments.get(slots.index("dim"), "dim")
        kept = "keepdim" in arguments.keywords
        if "keepdim" in slots and arguments.get(slots.index("keepdim")) is not None:
            kept = True
        if given is None or kept:
            continue
        gone = _dimensions(given)
        return rank - gone if gone is not None and rank >= gone else None
    return None


def _dimensions(given: Argument) -> int | None:
    """Return how many dimensions a ``dim=`` names, or None if that is unknown."""
    if isinstance(given.value, Scalar) and given.value.kind == "int":
        return 1
    return _length(given.value)


def of_item(tensor: Tensor, indices: Iterable[Value | None]) -> int | None:
    """Return the dimensions of ``tensor[indices]``; None among the indices stands for a slice."""
    if tensor.rank is None:
        return None
    rank = tensor.rank
    shared = 0
    for index in indices:
        if index is None:
            continue
        if isinstance(index, NoneValue):
            rank += 1
            continue
        held = tensor_of(index)
        if held is not None:
            if held.rank is None or held.dtype not in ("int", "bool") or index is not held:
                return None
            rank -= 1 if held.dtype == "int" else held.rank
            shared = max(shared, held.rank if held.dtype == "int" else 1)
        elif isinstance(index, Scalar) and index.kind == "int":
            rank -= 1
        else:
            return None
    return rank + shared if rank >= 0 else None


def of_data(data: Value) -> int | None:
    """Return the dimensions of ``torch.tensor(data)``: how deep its lists go down to numbers."""
    deep = 0
    while isinstance(data, Sequence) and data.kind in ("list", "tuple"):
        data = data.element
        deep += 1
    return deep if isinstance(data, Scalar) and data.kind != "str" else None
