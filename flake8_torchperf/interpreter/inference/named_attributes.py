"""Attributes whose name the code puts together, as in ``getattr(self, "loss_" + name)``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import attribute_of
from flake8_torchperf.interpreter.inference.objects_of_program import MAX_DEPTH
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.values.values import (
    UNKNOWN,
    Instance,
    Scalar,
    Sequence,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ClassInfo

# The most attributes, and the most classes below a class, that are looked at.
MAX_LIKE = 12
MAX_BELOW = 4


def attributes_like(owner: Instance, name: ast.expr, ctx: Context) -> Value:
    """Return the value of an attribute whose name begins or ends with a literal text.

    It is that of all attributes with such names which methods of the class write, or methods of the
    classes below. Lists of texts are left out: they hold the names. UNKNOWN if there are none, or
    if no literal is part of the name.
    """
    begins, ends = _ends(name)
    if owner.info is None or not (begins or ends):
        return UNKNOWN
    above = [one for one in lineage(owner.info, ctx.analysis) if not isinstance(one, str)]
    found = [attribute_of(owner, one, None, ctx) for one in _like(above, begins, ends)]
    if not found and ctx.depth <= MAX_DEPTH:
        found = [
            attribute_of(Instance(one.key, one), attribute, None, ctx)
            for one in ctx.analysis.classes_below(owner.info)[:MAX_BELOW]
            for attribute in _like([one], begins, ends)
        ]
    values = [one for one in found if not _holds_texts(one)]
    return join_all(values) if values else UNKNOWN


def _holds_texts(value: Value) -> bool:
    """True for a list of texts."""
    held = value.element if isinstance(value, Sequence) else None
    return isinstance(held, Scalar) and held.kind == "str"


def _like(classes: Iterable[ClassInfo], begins: str, ends: str) -> list[str]:
    """Return the attributes that methods of classes write, by the ends of their names."""
    names = (name for one in classes for name in one.written_by)
    like = (name for name in names if name.startswith(begins) and name.endswith(ends))
    return [*dict.fromkeys(like)][:MAX_LIKE]


def _ends(node: ast.expr) -> tuple[str, str]:
    """Return the literal texts that a text begins and ends with; "" where there is none.

    They are "a" and "b" for ``"a" + x + "b"``, ``f"a{x}b"`` and ``"a{}b".format(x)``.
    """
    match node:
        case ast.Constant(value=str() as text):
            return text, text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _ends(left)[0], _ends(right)[1]
        case ast.JoinedStr(values=[first, *_] as parts):
            return _ends(first)[0], _ends(parts[-1])[1]
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
            return text.partition("%")[0], ""
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
            return text.partition("{")[0], text.rpartition("}")[2]
    return "", ""
