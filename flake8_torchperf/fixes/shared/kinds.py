"""Values that are surely ints, surely floats, or of one dtype, and so fit into one tensor.

A tensor of ints and floats holds floats, of which float32 has none for 16,777,217.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.tensors import (
    bindings,
    has_one_value,
    is_int64,
    is_tensor,
    only_value,
)
from flake8_torchperf.knowledge.methods import casts_to, kinds_of
from flake8_torchperf.syntax.traversal import below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.fixes.engine.surroundings import Surroundings

_MPS = re.compile(r"\bmps\b")
# Methods refused for ints, and methods that keep the dtype, as `sum` of a mask does not.
# Ints have no NaN to leave out.
_FLOATS = frozenset(("mean", "nanmean", "nansum", "logsumexp", "norm", "std", "var"))
_CASTS = kinds_of("casts")
_TO_FLOAT = casts_to("float")
_SAME = frozenset(("max", "min", "amax", "amin", "median", "nanmedian", "squeeze", "detach",
                   "clone", "contiguous", "view", "reshape", "flatten", "cpu"))  # fmt: skip


def kind_of(node: ast.expr, dtype: str, around: Surroundings) -> str:
    """Return the class of a tensor's dtype, or the tensor whose dtype it has; "" if unknown.

    ``dtype`` is the dtype that the interpreter found.
    """
    if dtype in ("float", "int", "bool"):
        return dtype
    return "" if dtype != "unknown" else _told(node, around)


def may_be_number(node: ast.expr, around: Surroundings, depth: int = 4) -> bool:
    """True if an expression is a number of Python's on some path, and not a tensor."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float))
        case ast.UnaryOp(operand=operand):
            return may_be_number(operand, around, depth)
        case ast.IfExp(body=one, orelse=other):
            return any(may_be_number(side, around, depth) for side in (one, other))
        case ast.BoolOp(values=values):
            return any(may_be_number(value, around, depth) for value in values)
        case ast.Name(id=name) if depth and (function := around.function(node)) is not None:
            bound = (one for one in bindings(function, name) if isinstance(one, ast.expr))
            return any(may_be_number(one, around, depth - 1) for one in bound)
    return False


def has_float64(around: Surroundings) -> bool:
    """False if a module of the project names MPS, which has no float64."""
    return not around.known(_names_mps)


def _names_mps(around: Surroundings) -> bool:
    if any(_MPS.search(line) for line in around.module.lines):
        return True
    return around.project is not None and around.project.modules_that_say("mps") != ()


def have_one_kind(nodes: Sequence[ast.expr], around: Surroundings) -> bool:
    """True if the expressions are known to be of one class of dtypes, or made in one way."""
    kinds = {_told(one, around) for one in nodes}
    return len(kinds) == 1 and "" not in kinds


def have_one_dtype(nodes: Sequence[ast.expr], around: Surroundings) -> bool:
    """True if the expressions are known to be tensors of the same dtype."""
    dtypes = {_dtype(one, around) for one in nodes}
    return len(dtypes) == 1 and "" not in dtypes


def _dtype(node: ast.expr, around: Surroundings) -> str:
    """Return a dtype, or the text of a tensor, or its sum, that has it; "" if unknown."""
    if is_int64(node, around):
        return "long"
    match node:
        case ast.Name():
            value = only_value(node, around)
            told = "" if value is None else _dtype(value, around)
            return told or (f"like {node.id}" if has_one_value(node, around) else "")
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _dtype(inner, around)
        case ast.Subscript(value=inner) if is_tensor(inner, around):
            return _dtype(inner, around)
        case ast.Call(func=ast.Attribute(value=inner, attr=name) as func, keywords=[], args=args):
            if around.qualified(func).startswith("torch."):
                if not args:
                    return ""
                inner, args = args[0], args[1:]
            if name in _CASTS and not args:
                return name
            if name == "sum":
                told = _dtype(inner, around)
                return f"sum {told}" if told else ""
            same = name in _SAME or name in _FLOATS or name == "abs"
            return _dtype(inner, around) if same else ""
    return ""


def averaged(node: ast.expr, around: Surroundings) -> str:
    """Return the kind of a mean's operand if it is that of another tensor, else ""."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name) as func, args=args):
            if around.qualified(func).startswith("torch."):
                if not args:
                    return ""
                inner = args[0]
            if name in _FLOATS:
                told = _told(inner, around)
                return told if told.startswith("like ") else ""
            return averaged(inner, around) if name in _SAME else ""
    return ""


def _is_backpropagated(name: ast.Name, around: Surroundings) -> bool:
    """True if the function calls ``loss.backward()`` of the name: only floats have gradients."""
    function = around.function(name)
    if function is None or not has_one_value(name, around):
        return False
    funcs = (one.func for one in below(function) if isinstance(one, ast.Call))
    return any(
        isinstance(func, ast.Attribute)
        and func.attr == "backward"
        and isinstance(func.value, ast.Name)
        and func.value.id == name.id
        for func in funcs
    )


def _told(node: ast.expr, around: Surroundings) -> str:
    match node:
        case ast.Name():
            value = only_value(node, around)
            told = "" if value is None else _told(value, around)
            if not told and _is_backpropagated(node, around):
                return "float"
            return told or (f"like {node.id}" if has_one_value(node, around) else "")
        case ast.Call(func=ast.Attribute(value=inner, attr=name) as func, args=args):
            if around.qualified(func).startswith("torch."):
                if not args:
                    return ""
                inner = args[0]
            if name in _FLOATS or (name in _TO_FLOAT and not args):
                return "float"
            return _told(inner, around) if name in _SAME else ""
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _told(inner, around)
        case ast.Subscript(value=inner) if is_tensor(inner, around):
            return _told(inner, around)
    return ""
