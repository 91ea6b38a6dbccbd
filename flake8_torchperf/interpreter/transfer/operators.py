"""Operators over values: arithmetic, comparison, membership and formatting."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.events.recording import early, emit_read, looked_at, note_work
from flake8_torchperf.interpreter.inference import combined
from flake8_torchperf.interpreter.inference.tensor_api import knows_arrays
from flake8_torchperf.interpreter.transfer import index_loops
from flake8_torchperf.values import host_data
from flake8_torchperf.values.combining import (
    combine_device,
    combine_scalar,
    held_tensor,
    may_be_number,
)
from flake8_torchperf.values.devices import BESIDE_HOST, SOMETIMES
from flake8_torchperf.values.rank import broadcast_rank, ranked
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BOOL,
    CHAIN_LENGTH,
    COMPARED,
    NUMBER,
    STR,
    UNKNOWN,
    Device,
    DType,
    Mapping_,
    NDArray,
    NoneValue,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    UnknownValue,
    Value,
    join,
    literal,
    tensor_of,
    union,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env

OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "remainder", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)


def binary(
    operator: ast.operator,
    left: Value,
    right: Value,
    node: ast.expr | ast.stmt,
    ctx: Context,
) -> Value:
    """Return the value of ``left operator right``."""
    if isinstance(operator, ast.Mod) and isinstance(left, Scalar) and left.kind == "str":
        _percent(right, node, ctx)
        return STR
    tensors = [t for t in (tensor_of(left), tensor_of(right)) if t is not None]
    if tensors:
        repeated = _repeated(left, right) if isinstance(operator, ast.Mult) else None
        if repeated is not None:
            count = _side(node, tensors[0], left) or node
            emit_read(ctx, SiteKind.NUMBER_USE, "repeat", count, tensors[0], operand_node=count)
            return repeated
        for tensor in tensors:
            if tensor.arrives:
                early(ctx, OPERATIONS[type(operator)], node, tensor, _side(node, tensor, left))
        if isinstance(node, ast.BinOp):
            combined.note(((node.left, left), (node.right, right)), ctx)
        made = _arithmetic(operator, left, right, tensors)
        if made.device == "host" and _may_add_data(left, right, node):
            made = replace(made, origin="")
        note_work(made, node, ctx)
        return _or_number(made, NUMBER, left, right)
    if COMPARED in (left, right) and isinstance(operator, BITWISE):
        return COMPARED
    match left, right:
        case (NDArray(), _) | (_, NDArray()):
            for value in (left, right):
                looked_at(value, OPERATIONS[type(operator)], node, ctx)
            return _array_of(left, right)
        case Scalar(kind="str"), _:
            return STR
        case Scalar() as a, Scalar() as b:
            return _numbers(operator, a, b)
        case (Sequence() as a, Sequence() as b) if isinstance(operator, ast.Add):
            items = None if a.items is None or b.items is None else a.items + b.items
            if a.items == () or b.items == ():
                return replace(a if b.items == () else b, items=items)
            return Sequence(a.kind, join(a.element, b.element), items)
        case Sequence() as a, _:
            return replace(a, items=None)
        case Mapping_() as a, Mapping_() as b:
            return join(a, b)
        case (UnknownValue(), Scalar() as s) | (Scalar() as s, UnknownValue()) if s.read:
            return replace(s, kind="number", value=None, known=False)
        case UnknownValue(), UnknownValue():
            return _product(operator, node, ctx)
    return UNKNOWN


def _may_add_data(left: Value, right: Value, node: ast.expr | ast.stmt) -> bool:
    """True if an operand may hold data: a buffer is filled with it, or an unknown call returns it.

    Any other unknown operand of a tensor that is made of numbers is taken for a number.
    """
    unknown = [isinstance(value, UnknownValue) for value in (left, right)]
    if not any(unknown):
        return False
    if not isinstance(node, ast.BinOp):
        return True
    sides = zip(unknown, (node.left, node.right), strict=True)
    return any(isinstance(side, ast.Call) for of_data, side in sides if of_data)


def _product(operator: ast.operator, node: ast.expr | ast.stmt, ctx: Context) -> Value:
    """Return ``a @ b`` of unknown values: a tensor if the module imports no arrays."""
    if not isinstance(operator, ast.MatMult) or knows_arrays(ctx.module, ctx.node):
        return UNKNOWN
    return Tensor(Reason("a product of matrices", node, None, Strength.INFERRED))


def _repeated(left: Value, right: Value) -> Value | None:
    """Return ``[False] * n`` for a tensor ``n``, which Python reads; None for arithmetic."""
    for one, other in ((left, right), (right, left)):
        if isinstance(other, Tensor) and other.scalar is not False and other.dtype != "float":
            match one:
                case Sequence(kind="list" | "tuple", names=()):  # not a named tuple
                    return replace(one, items=None)
                case Scalar(kind="str"):
                    return STR
    return None


def _side(node: ast.expr | ast.stmt, tensor: Tensor, left: Value) -> ast.expr | None:
    """Return the operand that is ``tensor``."""
    match node:
        case ast.BinOp(left=first, right=second):
            return first if tensor_of(left) is tensor else second
        case ast.AugAssign(target=first, value=second):
            return first if tensor_of(left) is tensor else second
    return None


def _arithmetic(operator: ast.operator, left: Value, right: Value, tensors: list[Tensor]) -> Tensor:
    strongest = max(tensors, key=lambda t: t.reason.strength)
    dtypes = {t.dtype for t in tensors}
    if isinstance(operator, (ast.Mult, ast.Add)) and dtypes == {"bool"} and len(tensors) == 2:
        dtype = "bool"
    elif isinstance(operator, BITWISE):
        # A boolean tensor combined with one of unknown dtype is in practice another mask.
        dtype = "bool" if "bool" in dtypes and dtypes <= {"bool", "unknown"} else "unknown"
    elif isinstance(operator, ast.Div) or "float" in dtypes:
        dtype = "float"
    else:
        dtype = "int" if dtypes == {"int"} and not _is_float(left, right) else "unknown"
    chain = (*tensors[0].chain, OPERATIONS[type(operator)])[-CHAIN_LENGTH:]
    device = combine_device(tensors)
    scalar = combine_scalar(tensors)
    known = not any(isinstance(v, UnknownValue) for v in (left, right))
    if device == "host" and not known:
        # The other operand may be a tensor on the device. A host tensor can only be combined with
        # it if it has no dimensions (aten/src/ATen/TensorIterator.cpp, compute_types). Otherwise
        # the other operand is taken for a number.
        device = "host" if any(t.scalar is False for t in tensors) else BESIDE_HOST
    elif len(tensors) == 1 and scalar and not known:
        scalar = None
    role = tensors[0].role if len(tensors) == 1 and tensors[0].role in ITEM_ROLES else ""
    partly = all(t.partly for t in tensors)
    made = Tensor(strongest.reason, dtype, device, scalar, chain, role, partly=partly)
    if not isinstance(operator, ast.MatMult):
        made = ranked(made, _broadcast(left, right, tensors))
    if device == BESIDE_HOST and known and host_data.common_origin(tensors) == host_data.PYTHON:
        return replace(made, origin=host_data.PYTHON)
    if device != "host":
        return _strayed(made, tensors)
    return replace(made, origin=host_data.common_origin(tensors), memory=host_data.PAGEABLE)


def in_place(tensor: Tensor, made: Tensor) -> Tensor:
    """Return the tensor after ``tensor += x``, which keeps its device and dtype."""
    device = "host" if tensor.device == "host" else made.device
    return replace(made, device=device, dtype="bool" if tensor.dtype == "bool" else made.dtype)


def _broadcast(left: Value, right: Value, tensors: list[Tensor]) -> int | None:
    """Return the dimensions of an operator's result for two tensors, or a tensor and a number."""
    plain = all(isinstance(side, (Tensor, Scalar)) for side in (left, right))
    return broadcast_rank(tensors) if plain else None


# `t[i] + 1` has the role of `t[i]`.
ITEM_ROLES = ("element", "iterated")


def _is_float(left: Value, right: Value) -> bool:
    return any(isinstance(v, Scalar) and v.kind != "int" for v in (left, right))


def _numbers(operator: ast.operator, a: Scalar, b: Scalar) -> Value:
    origin = a if a.read is not None else b
    kind = "number"
    if a.kind == b.kind and a.kind in ("int", "float") and not isinstance(operator, ast.Div):
        kind = a.kind
    elif isinstance(operator, ast.Div) or "float" in (a.kind, b.kind):
        kind = "float"
    return Scalar(kind, read=origin.read, tensor=origin.tensor)


def comparison(node: ast.Compare, env: Env, ctx: Context) -> Value:
    """Return the value of ``a < b``, ``a < b < c``, ``a in b`` or ``a is b``."""
    left = evaluate(node.left, env, ctx)
    left_node = node.left
    result: Value = BOOL
    for i, (operator, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
        right = evaluate(right_node, env, ctx)
        if i and tensor_of(result) is not None:
            # `a < b < c` is `(a < b) and (b < c)`, so Python tests the truth of the first part.
            emit_read(ctx, SiteKind.BRANCH, "compare", node, result, operand_node=node)
        result = _compare(operator, left, right, node, left_node, right_node, ctx)
        left, left_node = right, right_node
    return result


def _compare(
    operator: ast.cmpop,
    left: Value,
    right: Value,
    node: ast.Compare,
    left_node: ast.expr,
    right_node: ast.expr,
    ctx: Context,
) -> Value:
    if isinstance(operator, (ast.Is, ast.IsNot)):
        return BOOL
    if isinstance(operator, (ast.In, ast.NotIn)):
        _membership(left, right, node, left_node, right_node, ctx)
        return BOOL
    tensors = [t for t in (tensor_of(left), tensor_of(right)) if t is not None]
    if not tensors:
        if isinstance(operator, ast.Eq) and _device_and_text(left, right):
            return literal("bool", False)
        if isinstance(left, NDArray) or isinstance(right, NDArray):
            return _array_of(left, right)
        sides = (left, right)
        if any(map(_may_overload, sides)) and not any(map(_never_elementwise, sides)):
            return COMPARED if all(map(_elementwise, sides)) else UNKNOWN
        return BOOL
    if any(_never_elementwise(v) for v in (left, right)) or _listed(operator, left, right):
        return BOOL
    if ctx.loops and isinstance(operator, (ast.Eq, ast.NotEq)):
        index_loops.compared((left_node, right_node), tensors[0], ctx)
    strongest = max(tensors, key=lambda t: t.reason.strength)
    name = COMPARISONS[type(operator)]
    chain = (*tensors[0].chain, name)[-CHAIN_LENGTH:]
    scalar = combine_scalar(tensors)
    if len(tensors) == 1 and any(isinstance(v, UnknownValue) for v in (left, right)):
        scalar = None if scalar else scalar
    partly = all(t.partly for t in tensors)
    device = combine_device(tensors)
    mask = Tensor(strongest.reason, "bool", device, scalar, chain, partly=partly)
    if device == "host" and not any(isinstance(value, UnknownValue) for value in (left, right)):
        mask = replace(mask, origin=host_data.common_origin(tensors), memory=host_data.PAGEABLE)
    mask = ranked(_strayed(mask, tensors), _broadcast(left, right, tensors))
    note_work(mask, node, ctx)
    return _or_number(mask, BOOL, left, right)


def _strayed(made: Tensor, tensors: list[Tensor]) -> Tensor:
    """Return the result of an operation; one on a tensor that some paths make on the host is, too.

    If some callers make ``index`` on the host, ``index - 1`` and ``index > 0`` are made there.
    """
    strays = len(tensors) == 1 and tensors[0].origin == SOMETIMES
    return replace(made, origin=SOMETIMES) if strays else made


def _or_number(made: Tensor, number: Scalar, left: Value, right: Value) -> Value:
    """Return the result of an operation on two ``float | Tensor``: a number or a tensor.

    A later method call shows which of the two it is.
    """
    if not (may_be_number(left) and may_be_number(right)):
        return made
    sides = [side for side in (left, right) if isinstance(side, Union)]
    declared = [o for side in sides for o in side.options if isinstance(o, Tensor)]
    strongest = max(declared, key=lambda t: t.reason.strength, default=made)
    return union((replace(made, reason=strongest.reason), number))


COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def _may_overload(value: Value) -> bool:
    return isinstance(value, (UnknownValue, Union))


def _elementwise(value: Value) -> bool:
    """True for values that tensors are compared with element by element."""
    return isinstance(value, UnknownValue) or (isinstance(value, Scalar) and value.kind != "str")


def _never_elementwise(value: Value) -> bool:
    """True for text, None, a dtype or a device: ``t == "mean"`` compares identities."""
    if isinstance(value, (NoneValue, DType, Device)):
        return True
    return isinstance(value, Scalar) and value.kind == "str"


def _listed(operator: ast.cmpop, left: Value, right: Value) -> bool:
    """True for ``t == [1, 2]`` and ``t.shape != t``, which do not depend on the elements.

    torch.Tensor.__eq__ gives NotImplemented for these, and Python then compares identities.
    """
    lists = any(isinstance(side, Sequence) and side.kind in LIST_KINDS for side in (left, right))
    return lists and isinstance(operator, (ast.Eq, ast.NotEq))


def _device_and_text(left: Value, right: Value) -> bool:
    """True for a ``torch.device`` beside a text, which it never equals."""
    match left, right:
        case (Device(), Scalar(kind="str")) | (Scalar(kind="str"), Device()):
            return True
    return False


def _array_of(left: Value, right: Value) -> NDArray:
    """Return an array, or a number if both sides are numbers of numpy or Python."""
    sides = (left, right)
    numbers = all(isinstance(s, Scalar) or (isinstance(s, NDArray) and s.of_numbers) for s in sides)
    several = any(isinstance(side, NDArray) and side.several for side in sides)
    return NDArray(of_numbers=numbers, several=several)


LIST_KINDS = ("list", "tuple")


def _membership(
    left: Value,
    right: Value,
    node: ast.Compare,
    left_node: ast.expr,
    right_node: ast.expr,
    ctx: Context,
) -> None:
    if tensor_of(right) is not None:
        if isinstance(left, Scalar) and left.kind == "str":
            return  # no tensor holds text, so the value is a dict
        emit_read(ctx, SiteKind.HOST_COMPARISON, "in", node, right, operand_node=right_node)
        return
    if isinstance(right, Sequence):
        sought(left, right, node, left_node, ctx)


def sought(
    value: Value, among: Sequence, node: ast.expr, value_node: ast.expr, ctx: Context
) -> None:
    """Record the reads of ``x in [t, ...]`` and ``index``, which test ``x == t`` for each item."""
    if among.kind not in ("list", "tuple", "sequence"):
        return
    held = tensor_of(among.element)
    asked = held or tensor_of(value)
    other = value if held is not None else among.element
    comparable = tensor_of(other) is not None or isinstance(other, Scalar)
    if asked is not None and comparable and not _never_elementwise(other):
        emit_read(ctx, SiteKind.HOST_COMPARISON, "in", node, asked, operand_node=value_node)


def formatted(value: Value, operation: str, node: ast.expr, ctx: Context) -> None:
    """Record the read of a value that becomes text if it holds a tensor, however deep."""
    tensor = held_tensor(value)
    if tensor is None:
        looked_at(value, operation, node, ctx)
    else:
        emit_read(ctx, SiteKind.FORMAT, operation, node, tensor, operand_node=node)


def _percent(right: Value, node: ast.expr | ast.stmt, ctx: Context) -> None:
    """Record the reads of ``"..." % values``, which formats every tensor among the values."""
    operand = node.right if isinstance(node, ast.BinOp) else None
    if operand is None:
        return
    if isinstance(operand, ast.Tuple) and isinstance(right, Sequence) and right.items is not None:
        for element, item in zip(operand.elts, right.items, strict=False):
            formatted(item, "%", element, ctx)
        return
    formatted(right, "%", operand, ctx)
