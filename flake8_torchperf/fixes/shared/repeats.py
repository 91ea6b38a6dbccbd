"""Proves that `repeat_interleave` gets one repeat for each row.

A single repeat is used for all rows, so its sum is not the size of the result.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.pieces.numbers import is_position
from flake8_torchperf.fixes.shared.tensors import has_one_value, only_value

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Surroundings

# Methods whose result has an element for each of the tensor's, whatever else they are given.
_ELEMENTWISE = frozenset(("long", "int", "clamp", "clamp_min", "clamp_max", "abs", "round", "relu",
                          "contiguous", "clone", "detach", "to", "cpu", "cuda"))  # fmt: skip
_SIZED = frozenset(("ones", "zeros", "full", "empty", "arange", "randint", "randperm"))


def of_rows(call: ast.Call, repeats: ast.Name, around: Surroundings) -> bool:
    """True if there surely is one repeat for each element of the repeated dimension."""
    repeated = _repeated(call, around)
    dimension = _dimension(call, around)
    if not isinstance(repeated, ast.Name) or dimension is None:
        return False
    if not has_one_value(repeated, around):
        return False
    made = only_value(repeats, around)
    return made is not None and _fits(made, repeated.id, dimension, around)


def _repeated(call: ast.Call, around: Surroundings) -> ast.expr | None:
    if around.qualified(call.func) == "torch.repeat_interleave":
        return call.args[0] if call.args else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _dimension(call: ast.Call, around: Surroundings) -> int | None:
    """Return the dimension that is given as a literal, else None."""
    given = [one.value for one in call.keywords if one.arg == "dim"]
    before = 2 if around.qualified(call.func) == "torch.repeat_interleave" else 1
    given += call.args[before : before + 1]
    match given:
        case [ast.Constant(value=value)] if type(value) is int:
            return value
    return None


def _fits(made: ast.expr, rows: str, dimension: int, around: Surroundings) -> bool:
    """True if an expression has as many elements as a dimension, or cannot serve as repeats."""
    match made:
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _ELEMENTWISE:
            if not around.qualified(made.func).startswith("torch."):
                return _fits(inner, rows, dimension, around)
        case ast.Compare(left=left, ops=[_], comparators=[ast.Constant()]):
            return _fits(left, rows, dimension, around)
        case ast.BinOp(left=left, right=ast.Constant()):
            return _fits(left, rows, dimension, around)
        # A column of a matrix; with more dimensions the index gives a matrix, which is an error.
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[ast.Slice() as part, _])):
            whole = part.lower is None and part.upper is None and part.step is None
            return whole and name == rows and dimension == 0 and is_position(made.slice.elts[1])  # type: ignore[attr-defined]
        case ast.Call(func=func):
            name = around.qualified(func).removeprefix("torch.")
            return name in _SIZED and _sized_as(made, name, rows, dimension)
    return False


def _sized_as(made: ast.Call, name: str, rows: str, dimension: int) -> bool:
    sizes = made.args
    if name == "randint":
        sizes = [one for one in made.args if isinstance(one, (ast.Tuple, ast.List))]
        sizes += [one.value for one in made.keywords if one.arg == "size"]
    elif name == "full":
        sizes = made.args[:1]
    if len(sizes) != 1:
        return False
    size = sizes[0]
    if isinstance(size, (ast.Tuple, ast.List)):
        if len(size.elts) != 1 or name in ("arange", "randperm"):
            return False
        size = size.elts[0]
    return _is_length(size, rows, dimension)


def _is_length(size: ast.expr, rows: str, dimension: int) -> bool:
    """True for ``len(x)``, ``x.shape[0]`` and ``x.size(0)``."""
    match size:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return name == rows and dimension == 0
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
            slice=ast.Constant(value=at),
        ):
            return name == rows and type(at) is int and at == dimension
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="size"),
            args=[ast.Constant(value=at)],
        ):
            return name == rows and type(at) is int and at == dimension
    return False
