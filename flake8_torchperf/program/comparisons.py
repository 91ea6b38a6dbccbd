"""Comparisons of sets of literal values: which outcomes they may have."""

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

# The values that an expression may have; None if there may be others.
Values: TypeAlias = "frozenset[Any] | None"

# Stands for objects of which only one thing is known: that they are not None.
SOMETHING = object()
# By the names of the operators in the ast, as outlines hold them.
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not,
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
}  # fmt: skip
CONTAINS = ("In", "NotIn")
COMPARING = frozenset((*_OPERATORS, *CONTAINS, "Not"))


def compared(word: str, left: Values, right: Values) -> Values:
    """Return the outcomes of a comparison of two values, or of ``not`` with one.

    ``word`` is one of `COMPARING`. For ``in``, the right values are those in a container.
    """
    if left is None:
        return None
    if word == "Not":
        if SOMETHING in left:
            return None  # it may be empty
        return frozenset(not one for one in left)
    if right is None:
        return None
    if SOMETHING in left or SOMETHING in right:
        return _identical(word, left, right)
    if word in CONTAINS:
        return frozenset((one in right) == (word == "In") for one in left)
    try:
        return frozenset(_OPERATORS[word](*two) for two in product(left, right))
    except TypeError:
        return None  # None is not compared with a number


def _identical(word: str, left: frozenset[Any], right: frozenset[Any]) -> Values:
    """Return the outcomes of ``is None`` and ``is not None`` of values that are mostly no literals.

    None for any other comparison, or with anything but None.
    """
    if word not in ("Is", "IsNot") or right != {None}:
        return None
    return frozenset((one is None) == (word == "Is") for one in left)


def applied(function: Callable[[Any], Any], values: Values) -> Values:
    """Return the results of a function that raises no errors other than those of its argument."""
    try:
        return None if values is None or SOMETHING in values else frozenset(map(function, values))
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
