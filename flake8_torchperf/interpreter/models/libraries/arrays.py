"""Functions of numpy, and methods of its arrays: which results have dimensions, what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.guards import HOST_ONLY
from flake8_torchperf.interpreter.events.recording import emit_read, looked_at
from flake8_torchperf.values.combining import held_tensor
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    INT,
    NDARRAY,
    NONE,
    SHAPE,
    NDArray,
    Opaque,
    Scalar,
    Sequence,
    Value,
)

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments

SHAPE_ONLY: dict[str, Value] = {"shape": SHAPE, "ndim": INT, "size": INT}


# Functions of numpy whose result has at least one dimension, and those that keep a list's or an
# array's.
MAKING_ARRAYS = frozenset((
    "arange", "argsort", "argwhere", "concatenate", "flatnonzero", "hstack", "linspace",
    "random.permutation", "stack", "unique", "vstack",
))  # fmt: skip
OF_LISTS = frozenset(("array", "asarray", "ascontiguousarray", "copy", "sort"))
# Functions of numpy that give an array of the size that they are given, else a number.
SIZED_BY = {"random.choice": 1, "random.randint": 2}


def call_numpy(rest: str, arguments: Arguments, ctx: Context) -> Value:
    """Record the reads of a function of numpy, ``numpy.<rest>``, and return its result.

    It calls ``__array__`` of its arguments, which fails for tensors on a device. The functions in
    `SHAPE_ONLY` only read the shape of their argument (numpy/_core/fromnumeric.py).
    """
    if rest in SHAPE_ONLY:
        return SHAPE_ONLY[rest]
    for argument in arguments.positional:
        held = held_tensor(argument.value)
        if held is not None:
            emit_read(
                ctx,
                SiteKind.TRANSFER,
                f"np.{rest}",
                arguments.node,
                held,
                operand_node=argument.node,
                traits=("to-host",) if held.device == "device" else ("to-host", HOST_ONLY),
            )
            break
        looked_at(argument.value, f"np.{rest}", arguments.node, ctx)
    given = [argument.value for argument in arguments.all()]
    if rest in MAKING_ARRAYS or (rest in OF_LISTS and _is_several(arguments.value(0))):
        return NDArray(several=True)
    if rest in SIZED_BY:
        size = arguments.value(SIZED_BY[rest], "size")
        return NDArray(several=isinstance(size, (Scalar, Sequence)))
    if given and "." not in rest and all(map(_is_number, given)):
        return NDArray(of_numbers=True)
    return NDARRAY


def _is_several(value: Value) -> bool:
    """True for a list, or an array of at least one dimension."""
    return isinstance(value, Sequence) or (isinstance(value, NDArray) and value.several)


def _is_number(value: Value) -> bool:
    """True for a Python scalar, or a number that numpy made of Python numbers."""
    return isinstance(value, Scalar) or (isinstance(value, NDArray) and value.of_numbers)


# Methods that make Python values of an array.
ARRAY_READS = {"item": SiteKind.HOST_READ, "tolist": SiteKind.TRANSFER}


def call_method(
    owner: NDArray, node: ast.expr | None, name: str, arguments: Arguments, ctx: Context
) -> Value:
    """Return the result of a method of a numpy array: an array or a number, always on the host."""
    kind = ARRAY_READS.get(name)
    if kind is None:
        looked_at(owner, name, arguments.node, ctx)
    else:
        emit_read(ctx, kind, name, arguments.node, owner, operand_node=node)
    match name:
        case "tolist":
            return Sequence("list", Scalar("number"))
        case "item":
            return Scalar("number")
        case "tobytes":
            return Scalar("bytes")
        case "fill" | "sort" | "resize":
            return NONE
        case "nonzero":
            return Sequence("tuple", NDARRAY)
        case "dump" | "tofile":
            return Opaque("file")
        case "astype" | "copy" | "view":
            return NDArray(several=owner.several)
        case "flatten" | "ravel" | "reshape" | "argsort":
            return NDArray(several=True)
    return NDARRAY
