"""Comparisons of sets of literal values: which outcomes they may have."""

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

# The values that an expression may have; None if there may be others.
Values: TypeAlias = "frozenset[Any] | None"

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
        return frozenset(not one for one in left)
    if right is None:
        return None
    if word in CONTAINS:
        return frozenset((one in right) == (word == "In") for one in left)
    try:
        return frozenset(_OPERATORS[word](*two) for two in product(left, right))
    except TypeError:
        return None  # None is not compared with a number


def applied(function: Callable[[Any], Any], values: Values) -> Values:
    """Return the results of a function that raises no errors other than those of its argument."""
    try:
        return None if values is None else frozenset(map(function, values))
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
