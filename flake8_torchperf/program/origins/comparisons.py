"""Comparisons and tests of literal values: which outcomes they may have."""

from __future__ import annotations

import ast
import operator
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.program.outlines.outline import CONTAINS
from flake8_torchperf.syntax.names import dotted_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# The values that an expression may have; None if there may be others.
Values: TypeAlias = "frozenset[Any] | None"

# The expression that a test compares with literals.
Asked: TypeAlias = "ast.Name | ast.Attribute | ast.Subscript | ast.Call"

# Stands for objects of which only one thing is known: that they are not None.
SOMETHING = object()
# By the names of the operators in the ast, as outlines hold them.
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not,
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
}  # fmt: skip
# Classes of which a literal may be an object.
_OF_LITERALS = frozenset(("bool", "int", "float", "object", "Number", "Real", "Hashable"))


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


def passes_none(values: frozenset[Any], tests: Sequence[tuple[ast.expr, bool]]) -> bool:
    """True if each of some values fails one of the tests."""
    return not any(all(may_be(test, one, holds) for test, holds in tests) for one in values)


def may_be(test: ast.expr, value: object, holds: bool) -> bool:
    """True if a test of a value may have an outcome."""
    found = _outcomes(test, value)
    return found is None or holds in found


def _outcomes(test: ast.expr, value: object) -> Values:
    """Return the outcomes of a test of an expression that has a value; None if unknown."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
            return _is_instance(value, kind)
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
            return None if value is SOMETHING else frozenset((bool(value),))
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            word = type(operator).__name__
            if isinstance(left, ast.Constant):
                return compared(word, frozenset((left.value,)), frozenset((value,)))
            if isinstance(right, ast.Constant):
                wanted: list[Any] = [right.value]
            elif isinstance(right, (ast.Tuple, ast.List, ast.Set)):
                wanted = [one.value for one in right.elts if isinstance(one, ast.Constant)]
            else:
                return None
            return compared(word, frozenset((value,)), frozenset(wanted))
    return None


def _is_instance(value: object, kind: ast.expr) -> Values:
    """Return if a value is an object of a class, or of one in a tuple; None if unknown."""
    if value is SOMETHING:
        return None
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    names = {dotted_name(one).rpartition(".")[2] for one in kinds}
    if isinstance(value, str) and "str" in names:
        return frozenset((True,))
    unclear = {""} if value is None else _OF_LITERALS | {""}
    return None if names & unclear else frozenset((False,))


def asked_by(test: ast.expr) -> Asked | None:
    """Return the name, attribute or item that a test asks about with literals alone."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[asked, _]):
            return asked if isinstance(asked, (ast.Name, ast.Attribute)) else None
        case ast.Compare(
            left=asked,
            ops=[ast.In() | ast.NotIn()],
            comparators=[ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items)],
        ):
            return _asked(asked) if all(isinstance(one, ast.Constant) for one in items) else None
        case ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return None
        case ast.Compare(left=asked, ops=[_], comparators=[ast.Constant()]):
            return _asked(asked)
        case ast.Compare(left=ast.Constant(), ops=[_], comparators=[asked]):
            return _asked(asked)
    return _asked(test)


def _asked(node: ast.expr) -> Asked | None:
    match node:
        case ast.Name() | ast.Attribute():
            return node
        case ast.Subscript() | ast.Call() if key_of(node):
            return node
    return None


def key_of(node: ast.expr) -> str:
    """Return the key of an item: of ``settings["key"]`` and ``settings.get("key")``; "" if none."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str(key))) if key.isidentifier():
            return key
        case ast.Call(
            func=ast.Attribute(attr="get"),
            args=[ast.Constant(value=str(key))] | [ast.Constant(value=str(key)), _],
            keywords=[],
        ) if key.isidentifier():
            return key
    return ""


def parts(test: ast.expr, holds: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests that a test joins, each with the outcome that it must have."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from parts(inner, not holds)
        case ast.BoolOp(op=operator, values=values):
            if isinstance(operator, ast.And) == holds:
                for one in values:
                    yield from parts(one, holds)
        case _:
            yield test, holds


def read(word: str) -> Values:
    """Return the value of a literal's text; None for one that has no text, such as infinity."""
    try:
        return frozenset((ast.literal_eval(word),))
    except ValueError:
        return None
