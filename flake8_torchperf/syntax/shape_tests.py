"""Comparisons that test a tensor's number of dimensions or elements."""

from __future__ import annotations

import ast

from flake8_torchperf.syntax.traversal import inside, once

COUNTS = ("dim", "ndimension")


def counts_nothing(test: ast.Compare) -> tuple[ast.expr, bool] | None:
    """Return ``x`` for ``x.numel() == 0`` or ``len(x) > 0``, and the outcome if it is empty."""
    compared = compared_with_zero(test)
    counted = None if compared is None else counted_in(compared[0])
    return None if compared is None or counted is None else (counted, compared[1])


def compared_with_zero(test: ast.Compare) -> tuple[ast.expr, bool] | None:
    """Return ``n`` for ``n == 0``, ``n != 0`` or ``n > 0``, and the outcome for zero."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=0)]):
            if isinstance(op, (ast.Eq, ast.Gt, ast.NotEq)):
                return left, isinstance(op, ast.Eq)
    return None


def counted_in(size: ast.expr) -> ast.expr | None:
    """Return ``x`` for ``x.numel()``, ``len(x)``, ``x.shape[0]`` or ``x.size(0)``."""
    match size:
        case (
            ast.Call(func=ast.Attribute(value=counted, attr="numel"))
            | ast.Call(func=ast.Name(id="len"), args=[counted])
            | ast.Call(func=ast.Attribute(value=counted, attr="size"), args=[ast.Constant(value=0)])
            | ast.Subscript(
                value=ast.Attribute(value=counted, attr="shape"), slice=ast.Constant(value=0)
            )
        ):
            return counted
    return None


@once
def sizes_in(function: ast.AST) -> frozenset[str]:
    """Return the names that a function binds to the count of something first."""
    bound: dict[str, ast.expr] = {}
    for node in inside(function, ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                first = bound.get(name)
                if first is None or value.lineno < first.lineno:
                    bound[name] = value
    return frozenset(name for name, value in bound.items() if counted_in(value) is not None)


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
