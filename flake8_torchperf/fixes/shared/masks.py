"""Selections through a mask, on the ast: the shapes of mask and tensor, elementwise expressions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.tensors import bindings
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.table import Op, load
from flake8_torchperf.syntax.reaching_definitions import seen_by

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Surroundings

# Functions whose mask has the shape of their first tensor.
SAME_SHAPE = methods_of("tests-finite-reals") | {
    "logical_not", "bool", "abs", "gt", "lt", "ge", "le", "eq", "ne",
}  # fmt: skip


def may_repeat(mask: ast.expr) -> bool:
    """True if it makes no difference when a mask is computed earlier, later or twice."""
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return may_repeat(operand)
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            return may_repeat(left) and may_repeat(right)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return may_repeat(left) and may_repeat(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return may_repeat(operand)
    return repeatable(mask)


def has_shape_of(mask: ast.expr, tensor: ast.expr, around: Surroundings) -> bool:
    """True if a mask surely has as many dimensions as the tensor that it selects from."""
    if ast.dump(mask) == ast.dump(tensor):
        return True
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return has_shape_of(operand, tensor, around)
        case ast.Compare(left=left, comparators=[right]) if is_number(right, around):
            return has_shape_of(left, tensor, around)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            sides = (left, right)
            return all(has_shape_of(side, tensor, around) for side in sides)
        case ast.Call(func=ast.Attribute(attr=name) as func, args=args) if name in SAME_SHAPE:
            first = args[0] if around.qualified(func).startswith("torch.") and args else func.value
            return has_shape_of(first, tensor, around)
        case ast.Name(id=name):
            function = around.function(mask)
            found = [] if function is None else bindings(function, name)
            if function is None or not all(isinstance(one, ast.expr) for one in found):
                return False
            seen = seen_by(mask, [one for one in found if one is not None], function.body)
            return bool(seen) and all(
                isinstance(one, ast.expr) and has_shape_of(one, tensor, around) for one in seen
            )
    return False


def is_number(node: ast.expr, around: Surroundings) -> bool:
    """True if an expression is surely a Python number."""
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return is_number(operand, around)
        case ast.Name(id=name):
            function = around.function(node)
            found = [] if function is None else bindings(function, name)
            return bool(found) and all(map(_is_stated_number, found))
    return False


def _is_stated_number(bound: ast.expr | ast.arg | None) -> bool:
    match bound:
        case ast.arg(annotation=ast.Name(id="float" | "int")):
            return True
        case ast.Constant(value=value):
            return type(value) in (int, float)
    return False


def selected(node: ast.expr, mask: str, around: Surroundings) -> ast.expr | None:
    """Return the ``x`` of ``x[mask]`` or ``torch.masked_select(x, mask)``; ``mask`` is a dump."""
    found = selection(node, around)
    return found[0] if found is not None and ast.dump(found[1]) == mask else None


def selection(node: ast.AST, around: Surroundings) -> tuple[ast.expr, ast.expr] | None:
    """Return the tensor and index of ``x[mask]``, or the arguments of a ``masked_select``."""
    match node:
        case ast.Subscript(value=tensor, slice=ast.expr() as index):
            return tensor, index
    return masked_select(node, around)


def masked_select(node: ast.AST, around: Surroundings) -> tuple[ast.expr, ast.expr] | None:
    """Return tensor and mask of ``torch.masked_select(x, mask)`` or ``x.masked_select(mask)``."""
    match node:
        case ast.Call(func=func, args=[tensor, mask], keywords=[]) if (
            around.qualified(func) == "torch.masked_select"
        ):
            return tensor, mask
        case ast.Call(func=ast.Attribute(value=tensor, attr="masked_select"), args=[mask],
                      keywords=[]):  # fmt: skip
            return tensor, mask
    return None


def is_elementwise(node: ast.expr, mask: str, around: Surroundings) -> bool:
    """True if each element depends only on the selected element at its place, and on numbers."""
    owner = selected(node, mask, around)
    if owner is not None:
        return repeatable(owner) or masked_select(node, around) is not None
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.BinOp(op=op, left=left, right=right):
            if isinstance(op, ast.MatMult):
                return False
            return all(is_elementwise(one, mask, around) for one in (left, right))
        case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
            return is_elementwise(operand, mask, around)
        case ast.Call(func=func, args=args, keywords=[]):
            op_, parts = _called(func, args, around)
            fits = op_ is not None and (op_.pointwise or op_.like) and op_.flags.isdisjoint("dhsym")
            return fits and all(is_elementwise(one, mask, around) for one in parts)
    return False


def _called(
    func: ast.expr, args: list[ast.expr], around: Surroundings
) -> tuple[Op | None, list[ast.expr]]:
    """Return the function of torch or the method of a tensor, and all of its arguments."""
    name = around.qualified(func)
    if name.startswith("torch."):
        op = load().function(name)
        return (None if op is None or "rand" in name else op), args
    if isinstance(func, ast.Attribute):
        return load().method(func.attr), [func.value, *args]
    return None, args
