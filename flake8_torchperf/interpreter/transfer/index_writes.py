"""The copies of an assignment through an index: ``v[0] = 1.0``, ``x[ids] = 0``, ``x[:2] = y``.

torch makes a 0-d tensor on the host of an assigned number. If a view of one dimension or more is
left, a kernel takes the number. Otherwise the tensor is copied to the device, and the host waits
(torch/csrc/autograd/python_variable_indexing.cpp and aten/src/ATen/TensorIndexing.h, ``copy_to``;
measured on an H100: tests/data/forms-h100.json).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.events import transfers
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    NUMBER_KINDS,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.place import Context

# The indices between the brackets: each node with its value, None for a slice.
Indices: TypeAlias = "list[tuple[ast.expr | None, Value]]"

# The operations of the site of a number: an integer for every dimension, or an index of positions.
ELEMENT, POSITIONS = "element", "positions"


def written(
    tensor: Tensor, indices: Indices, node: ast.Subscript, value: Value, ctx: Context
) -> None:
    """Record the copies of ``tensor[indices] = value``, except the cost of the indices."""
    if ctx.sink is None:
        return
    given = tensor_of(value)
    place = _place(tensor, indices, node, ctx)
    if given is not None and given.device != "host":
        _kept_on_host(tensor, given, node, ctx)
    elif given is not None:
        if place is not None and (place or given.scalar is not True):
            transfers.fetched(given, tensor, "assign", node, ctx)
    elif place and tensor.device != "host" and _is_new_number(value):
        emit(ctx, SiteKind.NUMBER_ASSIGNED, place, node, tensor, operand_node=node.value)


def _is_new_number(value: Value) -> bool:
    """True for a number that was not just read from a tensor, a read that is reported itself."""
    return isinstance(value, Scalar) and value.kind in NUMBER_KINDS and value.read is None


def _kept_on_host(tensor: Tensor, given: Tensor, node: ast.Subscript, ctx: Context) -> None:
    """Record ``sums[i] = x.sum()`` for ``sums`` on the host: a copy for each assignment."""
    if tensor.device == "host" and given.device == "device":
        emit(
            ctx,
            SiteKind.TRANSFER,
            "assign",
            node,
            given,
            operand_node=node.value,
            traits=("to-host",),
        )


def _place(tensor: Tensor, indices: Indices, node: ast.Subscript, ctx: Context) -> str | None:
    """Return the part that is written: ELEMENT, POSITIONS or "" for a slice.

    The result is None if the index itself costs more, as a mask does. It is None for positions on
    the host too, whose own copy is reported.
    """
    held = [t for _, value in indices if (t := tensor_of(value)) is not None]
    if any(t.dtype == "int" and t.device != "host" and not t.scalar for t in held):
        return POSITIONS
    if any(t.dtype != "int" or not t.scalar for t in held):
        return None
    if any(isinstance(value, Sequence) for _, value in indices):
        return None
    counted = 0
    for at, value in indices:
        if _is_integer(value):
            counted += 1
        elif isinstance(value, NoneValue) or not _is_ellipsis(at):
            return ""
    if tensor.rank is None and not any(_is_ellipsis(at) for at, _ in indices):
        return ELEMENT if _read_as_number(node, counted, ctx) else ""
    return ELEMENT if counted and counted == tensor.rank else ""


def _is_integer(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.dtype == "int" and value.scalar is True
    return isinstance(value, Scalar) and value.kind in ("int", "number")


def _is_ellipsis(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _read_as_number(node: ast.Subscript, counted: int, ctx: Context) -> bool:
    """True if an element with as many indices is read as a number elsewhere: ``float(v[i])``."""
    if ctx.node is None or not counted:
        return False
    return (ast.unparse(node.value), counted) in _numbers_read(ctx.node)


@once
def _numbers_read(function: ast.AST) -> frozenset[tuple[str, int]]:
    """Return the tensors that a function indexes to read one number, with the count of indices."""
    return frozenset(
        (ast.unparse(read.value), count)
        for read in _asked_for_numbers(walk([function]))
        if isinstance(read, ast.Subscript) and (count := _integers(read.slice))
    )


def _asked_for_numbers(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Yield values that are used as a single number: ``float(x)``, ``x.item()``, ``if x > 0``."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[read]):
                yield read
            case ast.Call(func=ast.Attribute(value=read, attr="item"), args=[]):
                yield read
            case (
                ast.If(test=ast.Compare(left=left, comparators=[right]))
                | ast.While(test=ast.Compare(left=left, comparators=[right]))
            ):
                yield left
                yield right


def _integers(index: ast.expr) -> int:
    """Return how many integers an index may consist of; 0 if it leaves a dimension."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    plain = all(
        isinstance(part, (ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp))
        or (isinstance(part, ast.Constant) and type(part.value) is int)
        for part in parts
    )
    return len(parts) if plain else 0
