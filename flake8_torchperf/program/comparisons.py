"""Comparisons of sets of literal values: which outcomes they may have."""

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

# The values that an expression may have; None if there may be others.
Values: TypeAlias = "frozenset[Any] | None"

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "is": operator.is_, "is not": operator.is_not,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compared(word: str, left: Values, right: Values) -> Values:
    """Return the outcomes of a comparison of two values, or of ``not`` with one.

    For ``in``, the right values are those in a container.
    """
    if left is None:
        return None
    if word == "not":
        return frozenset(not one for one in left)
    if right is None:
        return None
    if word in ("in", "not in"):
        return frozenset((one in right) == (word == "in") for one in left)
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
