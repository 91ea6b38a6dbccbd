"""Named tuples and typed dicts made by a call: ``Out = NamedTuple("Out", [("loss", Tensor)])``."""

from __future__ import annotations

import ast
import sys
from typing import Any, NamedTuple


class Record(NamedTuple):
    """The type that a call makes: "NamedTuple" or "TypedDict", and the annotation of each field."""

    base: str
    fields: dict[str, ast.expr]


# Qualified or imported names end in these.
MAKERS = {"NamedTuple": "NamedTuple", "namedtuple": "NamedTuple", "TypedDict": "TypedDict"}


def made_record(node: ast.expr) -> Record | None:
    """Return the record that a call makes; None for any other expression."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return None
    maker = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    base = MAKERS.get(maker)
    if base is None or len(node.args) < 2:
        return None
    return Record(base, _fields(node.args[1]))


def empty_class(name: str, at: ast.stmt) -> ast.ClassDef:
    """Return a class statement with nothing in it, at the place of another statement."""
    return ast.copy_location(ast.ClassDef(name, [], [], [], [], **NO_TYPE_PARAMETERS), at)


# A field that Python 3.12 requires and older versions do not know.
NO_TYPE_PARAMETERS: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}


def _fields(node: ast.expr) -> dict[str, ast.expr]:
    """Return the fields of ``[("x", Tensor)]``, ``{"x": Tensor}``, ``["x", "y"]`` or ``"x y"``."""
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = [(key, value) for key, value in zip(keys, values, strict=True) if key]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            pairs = [_pair(element) for element in elements]
        case ast.Constant(value=str(text)):
            return dict.fromkeys(text.replace(",", " ").split(), ANYTHING)
        case _:
            return {}
    return {
        name.value: annotation
        for name, annotation in pairs
        if isinstance(name, ast.Constant) and isinstance(name.value, str)
    }


def _pair(node: ast.expr) -> tuple[ast.expr, ast.expr]:
    match node:
        case ast.Tuple(elts=[name, annotation]) | ast.List(elts=[name, annotation]):
            return name, annotation
    return node, ANYTHING


# The annotation of a field that has none.
ANYTHING = ast.Name("object", ast.Load())
