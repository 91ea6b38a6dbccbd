"""Tests of options: whether any value that the project gives an option takes the branch."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from flake8_torchperf.interpreter.inference.parameters import default_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.project.module_index import ClassInfo, FunctionNode
    from flake8_torchperf.project.option_values import Given, Literal
    from flake8_torchperf.project.resolver import Project

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le,
}  # fmt: skip


def outcome_by_settings(
    test: ast.expr, function: FunctionNode | None, owner: ClassInfo | None, project: Project
) -> bool | None:
    """Return the outcome of a test that all settings of the project share; None if they differ.

    The settings are the option's default and the values that calls, configurations and command
    lines in the project give an option of its name.
    """
    for outcome in (True, False):
        if is_never_taken([(test, not outcome)], function, owner, project):
            return outcome
    return None


def is_never_taken(
    path: Sequence[tuple[ast.expr, bool]],
    function: FunctionNode | None,
    owner: ClassInfo | None,
    project: Project,
) -> bool:
    """True if no setting of an option passes all tests on the way to a branch.

    ``path`` holds each test with the outcome that leads on.
    """
    by_option: dict[str, list[tuple[Callable[[Literal], bool], bool]]] = {}
    for test, holds in path:
        asked, judge = _asked(test)
        name = "" if asked is None else option_of(asked, function, owner)
        if name:
            by_option.setdefault(name, []).append((judge, holds))
    return any(
        _passes_none(project.option_values(name), tests) for name, tests in by_option.items()
    )


def _passes_none(given: Given, tests: Sequence[tuple[Callable[[Literal], bool], bool]]) -> bool:
    """True if all values of an option are known, and each fails one of the tests."""
    if not given.whole or not given.values:
        return False
    try:
        return not any(all(judge(one) == holds for judge, holds in tests) for one in given.values)
    except TypeError:
        return False  # a default of None is not compared with a number


def _asked(test: ast.expr) -> tuple[ast.expr | None, Callable[[Literal], bool]]:
    """Return the option that a test asks for, and the test of a value."""
    match test:
        case ast.Name() | ast.Attribute():
            return test, bool
        case ast.Compare(
            left=ast.Name() | ast.Attribute() as left,
            ops=[kind],
            comparators=[ast.Constant(value=value)],
        ) if type(kind) in _COMPARISONS and value is not None:
            compare = _COMPARISONS[type(kind)]
            return left, lambda given: compare(given, value)
        case ast.Compare(
            left=ast.Name() | ast.Attribute() as left,
            ops=[ast.In() | ast.NotIn() as kind],
            comparators=[ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items)],
        ) if all(isinstance(item, ast.Constant) for item in items):
            values = [item.value for item in items if isinstance(item, ast.Constant)]
            wanted = isinstance(kind, ast.In)
            return left, lambda given: (given in values) == wanted
    return None, bool


def option_of(asked: ast.expr, function: FunctionNode | None, owner: ClassInfo | None) -> str:
    """Return the name of the option behind an expression; "" if it is none.

    An option is a parameter with a literal default, an attribute that a method sets to one or to
    an attribute of a configuration, and an attribute of anything but ``self``.
    """
    match asked:
        case ast.Name(id=name):
            return name if function is not None and _has_literal(name, function) else ""
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return _stored(name, owner)
        case ast.Attribute(attr=name):
            return name
    return ""


def _stored(attribute: str, owner: ClassInfo | None) -> str:
    """Return the option that a class stores in an attribute; "" if there isn't exactly one."""
    found: set[str] = set()
    for method in owner.written_by.get(attribute, ()) if owner is not None else ():
        for node in method.nodes.of(ast.Assign):
            if not isinstance(node, ast.Assign) or not any(
                isinstance(target, ast.Attribute) and target.attr == attribute
                for target in node.targets
            ):
                continue
            match node.value:
                case ast.Name(id=name) if _has_literal(name, method.node):
                    found.add(name)
                case ast.Attribute(attr=name):
                    found.add(name)
                case _:
                    return ""
    return found.pop() if len(found) == 1 else ""


def _has_literal(name: str, function: FunctionNode) -> bool:
    """True if a parameter has a default that is a literal, a negative number included."""
    default = default_of(name, function)
    literal = default.operand if isinstance(default, ast.UnaryOp) else default
    return isinstance(literal, ast.Constant)
