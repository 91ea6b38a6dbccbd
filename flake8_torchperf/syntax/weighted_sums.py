"""Sums that keep a part of the old value, such as running averages, by syntax alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_weighted_sum(node: ast.expr) -> bool:
    """True for ``d * x + (1 - d) * y``: two products whose weights add up to one."""
    match node:
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            weights = [*_factors(left)], [*_factors(right)]
            return any(
                ast.dump(rest) in map(ast.dump, other)
                for one, other in (weights, weights[::-1])
                for factor in one
                for rest in _complement(factor)
            )
    return False


def _factors(product: ast.expr) -> Iterator[ast.expr]:
    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
        yield from (product.left, product.right)


def _complement(factor: ast.expr) -> Iterator[ast.expr]:
    """Yield ``d`` for ``1 - d``."""
    match factor:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=rest):
            yield rest
