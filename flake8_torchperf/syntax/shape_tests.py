"""Comparisons that test a tensor's number of dimensions or elements."""

from __future__ import annotations

import ast

COUNTS = ("dim", "ndimension")


def counts_nothing(test: ast.Compare) -> tuple[ast.expr, bool] | None:
    """Return ``x`` for ``x.numel() == 0`` or ``len(x) > 0``, and the outcome if it is empty."""
    match test:
        case ast.Compare(
            left=(
                ast.Call(func=ast.Attribute(value=counted, attr="numel"))
                | ast.Call(func=ast.Name(id="len"), args=[counted])
            ),
            ops=[op],
            comparators=[ast.Constant(value=0)],
        ):
            if isinstance(op, (ast.Eq, ast.Gt, ast.NotEq)):
                return counted, isinstance(op, ast.Eq)
    return None


def is_none(side: ast.expr) -> bool:
    """True if a side of a comparison is ``None``."""
    return isinstance(side, ast.Constant) and side.value is None


def dimensions_of(left: ast.expr, right: ast.expr) -> tuple[ast.expr, int] | None:
    """Return ``x`` and 2 for ``x.ndim == 2``, ``x.dim() == 2`` or ``len(x.shape) == 2``; or None.

    ``x.shape == ()`` means 0.
    """
    match left, right:
        case ast.Attribute(value=asked, attr="ndim"), ast.Constant(value=int(count)):
            return asked, count
        case (
            ast.Call(func=ast.Attribute(value=asked, attr=name), args=[], keywords=[]),
            ast.Constant(value=int(count)),
        ) if name in COUNTS:
            return asked, count
        case (
            ast.Call(func=ast.Name(id="len"), args=[sizes], keywords=[]),
            ast.Constant(value=int(count)),
        ):
            of = _sized(sizes)
            return None if of is None else (of, count)
        case _, ast.Tuple(elts=[]):
            of = _sized(left)
            return None if of is None else (of, 0)
    return None


def _sized(node: ast.expr) -> ast.expr | None:
    """Return ``x`` for ``x.shape`` and ``x.size()``."""
    match node:
        case ast.Attribute(value=asked, attr="shape"):
            return asked
        case ast.Call(func=ast.Attribute(value=asked, attr="size"), args=[], keywords=[]):
            return asked
    return None
