"""Checks for infinities and NaNs in conditions: the tensor that is checked, and for which.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_CHECKS = {"isinf": frozenset(("inf",)), "isnan": frozenset(("nan",))}
_ALL = frozenset(("inf", "nan"))


def tensor_read(node: ast.expr) -> ast.expr:
    """Return the tensor that a condition tests, without its read: ``t`` of ``t.item() is True``."""
    match node:
        case ast.Compare(
            left=left, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=True)]
        ):
            return tensor_read(left)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return tensor_read(inner)
        case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
            return tensor_read(inner)
    return node


def subject_of(place: FixPlace, node: ast.expr) -> tuple[ast.expr, frozenset[str]] | None:
    """Return the tensor that ``isinf(t).any()`` checks, and whether for "inf", "nan" or both."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=head), attr="any"), args=[inner]) if (
            place.around.module.imports.get(head) == "torch"
        ):
            return _checked(place, inner, finite=False)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=head), attr="all"), args=[inner]) if (
            place.around.module.imports.get(head) == "torch"
        ):
            return _checked(place, inner, finite=True)
        case ast.Call(func=ast.Attribute(value=inner, attr="any"), args=[]):
            return _checked(place, inner, finite=False)
        case ast.Call(func=ast.Attribute(value=inner, attr="all"), args=[]):
            return _checked(place, inner, finite=True)
    return None


def _checked(
    place: FixPlace, node: ast.expr, *, finite: bool
) -> tuple[ast.expr, frozenset[str]] | None:
    """Return the tensor checked and for which values; with ``finite``, for finite ones only."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right) if not finite:
            one, other = (_checked(place, side, finite=False) for side in (left, right))
            if one is None or other is None or ast.dump(one[0]) != ast.dump(other[0]):
                return None
            return one[0], one[1] | other[1]
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return _checked(place, inner, finite=not finite)
        case ast.Call(func=ast.Attribute(value=inner, attr="logical_not" | "bitwise_not"), args=[]):
            return _checked(place, inner, finite=not finite)
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=[]):
            if len(args) == 1 and place.around.qualified(node.func) == f"torch.{name}":
                owner = args[0]
            elif args:
                return None
            if name == "isfinite":
                return (owner, _ALL) if finite else None
            return (owner, _CHECKS[name]) if name in _CHECKS and not finite else None
    return None


def both_checked(place: FixPlace, test: ast.expr) -> ast.expr | None:
    """Return the tensor that a condition tests for an element that is not finite."""
    test = tensor_read(test)
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    asked: frozenset[str] = frozenset()
    subject: ast.expr | None = None
    for part in map(tensor_read, parts):
        negated = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        call = tensor_read(part.operand) if isinstance(part, ast.UnaryOp) else part
        found = subject_of(place, call)
        finite = isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "all"
        if found is None or negated != finite:
            return None
        if subject is not None and ast.dump(subject) != ast.dump(found[0]):
            return None
        subject, asked = found[0], asked | found[1]
    return subject if asked == _ALL else None
