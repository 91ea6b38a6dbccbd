"""The dimensions of masks, on the ast and by what a function does with its tensors.

A mask without dimensions selects all or nothing; the positions of one select the first element.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.masks import SAME_SHAPE
from flake8_torchperf.fixes.shared.tensors import bindings
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.syntax.reaching_definitions import seen_by
from flake8_torchperf.syntax.traversal import below, once
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Surroundings
    from flake8_torchperf.judgement.judged_site import JudgedSite

# Names that are looked into from a name, one through the other.
_MOST = 6
# Functions whose result keeps one row per row of their first argument.
_LIKE_FIRST = frozenset(("isin", "clone", "contiguous", "detach", "to", "cuda", "cpu", "type_as"))
_REDUCING = frozenset(("all", "amax", "amin", "any", "argmax", "argmin", "mean", "norm", "prod",
                       "sum"))  # fmt: skip


def known_mask(site: JudgedSite) -> Tensor | None:
    """Return what is known of the mask of ``x[mask]``; None for a ``masked_select``."""
    is_index = isinstance(site.node, ast.Subscript)
    return site.operand if is_index and isinstance(site.operand, Tensor) else None


def has_dimensions(mask: ast.expr, known: Tensor | None, around: Surroundings) -> bool:
    """True if a mask has at least one dimension: it is known, or the function relies on it.

    ``known`` is the interpreter's value of the mask, where it has one.
    """
    if known is not None and (known.scalar is False or bool(known.rank)):
        return True
    return _has_some(mask, around, _MOST)


def _has_some(node: ast.expr, around: Surroundings, depth: int) -> bool:
    match node:
        case ast.Name():
            return _name_has(node, around, depth)
        case ast.UnaryOp(op=ast.Invert() | ast.USub(), operand=operand):
            return _has_some(operand, around, depth)
        case ast.BinOp(op=op, left=left, right=right) if not isinstance(op, ast.MatMult):
            return any(_has_some(side, around, depth) for side in (left, right))
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            return any(_has_some(side, around, depth) for side in (left, right))
        case ast.Subscript(slice=index):
            # A slice keeps the dimension that it cuts.
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            return any(isinstance(part, ast.Slice) for part in parts)
        case ast.Call():
            return _call_has(node, around, depth)
    return False


def _call_has(node: ast.Call, around: Surroundings, depth: int) -> bool:
    """True if the result of a function of torch has dimensions because its operands have."""
    if not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    of_torch = around.qualified(node.func).startswith("torch.")
    parts = node.args if of_torch else [node.func.value, *node.args]
    if not parts:
        return False
    op = load().function(f"torch.{name}") if of_torch else load().method(name)
    if name in _REDUCING and _leaves_one(parts[1:], node.keywords):
        return True
    if name in _LIKE_FIRST:
        return _has_some(parts[0], around, depth)
    elementwise = op is not None and op.pointwise
    return elementwise and any(_has_some(part, around, depth) for part in parts)


def _leaves_one(args: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    """True for a reduction along dimension 1 or later, or one that keeps the dimension."""
    named = {one.arg: one.value for one in keywords}
    dim = named.get("dim", args[0] if len(args) == 1 else None)
    match named.get("keepdim"):
        case ast.Constant(value=True):
            return dim is not None
    match dim:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number > 0
    return False


def _name_has(node: ast.Name, around: Surroundings, depth: int) -> bool:
    function = around.function(node)
    if function is None or not depth:
        return False
    found = bindings(function, node.id)
    if node.id in _relied_on(function) and len(found) == 1:
        return True
    seen = seen_by(node, [one for one in found if one is not None], function.body)
    return (
        None not in found
        and bool(seen)
        and all(isinstance(one, ast.expr) and _has_some(one, around, depth - 1) for one in seen)
    )


@once
def _relied_on(function: ast.AST) -> frozenset[str]:
    """Return the names that a function could not use as it does if they had no dimensions."""
    return frozenset(name for node in below(function) for name in _used_with_dimensions(node))


def _used_with_dimensions(node: ast.AST) -> list[str]:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
            return [name]
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant()
        ):
            return [name]
        case ast.Assign(
            targets=[ast.Tuple(elts=[_, *_])],
            value=ast.Attribute(value=ast.Name(id=name), attr="shape")
            | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[]),
        ):
            return [name]
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[_]):
            return [name]
        case ast.For(iter=ast.Name(id=name)):
            return [name]
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            cuts = any(isinstance(one, ast.Slice) or _is_whole(one) for one in parts)
            return [name] if cuts else []
    return []


def _is_whole(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int(number)):
            return not isinstance(number, bool)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return True
    return False


def is_lower(mask: ast.expr, tensor: ast.expr, known: Tensor | None, around: Surroundings) -> bool:
    """True if a mask surely has fewer dimensions than a tensor that it indexes."""
    if _is_less_of(mask, ast.dump(tensor), around, _MOST):
        return True
    function = around.function(mask)
    if function is None or not isinstance(tensor, ast.Name):
        return False
    ranks = _ranks(function)
    exact = known.rank if known is not None else None
    if exact is None and isinstance(mask, ast.Name):
        exact = next((rank for name, rank, sure in ranks if name == mask.id and sure), None)
    least = max((rank for name, rank, _ in ranks if name == tensor.id), default=0)
    return exact is not None and exact < least


def _is_less_of(node: ast.expr, whole: str, around: Surroundings, depth: int) -> bool:
    """True if an expression has all but one of a tensor's dimensions: ``x[:, 0]``, ``x.any(-1)``.

    ``whole`` is the dump of the tensor.
    """
    match node:
        case ast.Name(id=name) if depth and (function := around.function(node)) is not None:
            found = bindings(function, name)
            one = found[0] if len(found) == 1 else None
            return isinstance(one, ast.expr) and _is_less_of(one, whole, around, depth - 1)
        case ast.UnaryOp(operand=operand):
            return _is_less_of(operand, whole, around, depth)
        case ast.Compare(left=left, ops=[_], comparators=[ast.Constant()]):
            return _is_less_of(left, whole, around, depth)
        case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)):
            return ast.dump(value) == whole and any(map(_is_whole, parts))
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args, keywords=keywords):
            if around.qualified(node.func).startswith("torch.") and args:
                value, args = args[0], args[1:]
            given = bool(args) or any(one.arg == "dim" for one in keywords)
            kept = any(one.arg == "keepdim" for one in keywords)
            reduces = name in _REDUCING and given and not kept and len(args) < 2
            return reduces and _has_whole_shape(value, whole)
    return False


def _has_whole_shape(node: ast.expr, whole: str) -> bool:
    """True for a tensor, and for a test of each of its elements."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[]) if name in SAME_SHAPE:
            return _has_whole_shape(value, whole)
        case ast.Compare(left=left, ops=[_], comparators=[ast.Constant()]):
            return _has_whole_shape(left, whole)
    return ast.dump(node) == whole


@once
def _ranks(function: ast.AST) -> tuple[tuple[str, int, bool], ...]:
    """Return names with a number of dimensions, and whether it is exact or the least possible."""
    return tuple(one for node in below(function) if (one := _rank(node)) is not None)


def _rank(node: ast.AST) -> tuple[str, int, bool] | None:
    match node:
        case ast.Assign(
            targets=[ast.Tuple(elts=elts)],
            value=ast.Attribute(value=ast.Name(id=name), attr="shape")
            | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[]),
        ):
            exact = not any(isinstance(one, ast.Starred) for one in elts)
            return (name, len(elts), True) if exact else None
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="permute"), args=[_, _, *_]):
            return name, len(node.args), True
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=parts)):
            plain = [one for one in parts if isinstance(one, ast.Slice) or _is_whole(one)]
            return name, len(plain), False
    return None
