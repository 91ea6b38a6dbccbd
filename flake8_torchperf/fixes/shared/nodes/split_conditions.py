"""Conditions as libcst's nodes: split at ``and`` and ``or``, negated, joined again."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import libcst as cst

from flake8_torchperf.fixes.engine.build import bare, expression

if TYPE_CHECKING:
    from collections.abc import Sequence

# Nodes that need no brackets after `~`.
_TIGHT = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
# Comparisons that are opposites for NaN too.
_OPPOSITE: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
}


def terms(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return the terms of one ``and`` or ``or``, as ast counts them; any other test is one term."""
    if not isinstance(test, cst.BooleanOperation):
        return [test]
    left, kind = test.left, type(test.operator)
    if isinstance(left, cst.BooleanOperation) and type(left.operator) is kind and not left.lpar:
        return [*terms(left), test.right]
    return [left, test.right]


def all_of(parts: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    """Return ``a and b``; a single part is left as it is."""
    return reduce(lambda a, b: cst.BooleanOperation(a, cst.And(), b), parts)


def any_of(parts: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    """Return ``a or b``; a single part is left as it is."""
    return reduce(lambda a, b: cst.BooleanOperation(a, cst.Or(), b), parts)


def without_not(term: cst.BaseExpression) -> cst.BaseExpression:
    """Return a term without the ``not`` before it, however many."""
    while isinstance(term, cst.UnaryOperation) and isinstance(term.operator, cst.Not):
        term = term.expression
    return term


def bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression in brackets, if an operator before it would take only a part of it."""
    if isinstance(node, _TIGHT) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def negated(node: cst.BaseExpression, *, mask: bool, otherwise: str) -> cst.BaseExpression:
    """Return the opposite of a tensor: ``~t`` for a ``mask``, else through ``otherwise``."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        (target,) = node.comparisons
        opposite = _OPPOSITE.get(type(target.operator))
        if opposite is not None:
            white = target.operator.whitespace_before, target.operator.whitespace_after  # type: ignore[attr-defined]
            changed = target.with_changes(operator=opposite(*_whitespace(opposite, *white)))
            return node.with_changes(comparisons=[changed])
    if mask:
        return cst.UnaryOperation(cst.BitInvert(), bracketed(node))
    return cst.Call(expression(otherwise), [cst.Arg(bare(node))])


def _whitespace(
    kind: type[cst.BaseCompOp],
    before: cst.BaseParenthesizableWhitespace,
    after: cst.BaseParenthesizableWhitespace,
) -> tuple[object, ...]:
    return ("!=", before, after) if kind is cst.NotEqual else (before, after)
