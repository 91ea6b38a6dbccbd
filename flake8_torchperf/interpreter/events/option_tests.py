"""Tests of options: whether any value that the project gives an option takes the branch."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.interpreter.inference.parameters import default_of, literal_default
from flake8_torchperf.program.origins.comparisons import asked_by, key_of, passes_none
from flake8_torchperf.project.option_values import OF_ITEM, Given
from flake8_torchperf.syntax.shape_tests import is_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.program.origins.comparisons import Asked
    from flake8_torchperf.project.module_index import ClassInfo, FunctionNode, ModuleMap


class Asker(NamedTuple):
    """Where a test stands: its module, and the function and class around it, if any."""

    module: ModuleMap | None
    function: FunctionNode | None
    owner: ClassInfo | None


def outcome_by_settings(test: ast.expr, asker: Asker, analysis: Analysis) -> bool | None:
    """Return the outcome of a test that all settings of the project share; None if they differ.

    The settings are the option's default and the values that calls, configurations and command
    lines in the project give an option of its name.
    """
    option = _option_behind(test, asker)
    if option is None:  # most tests
        return None
    name, asked = option
    given = _given(asked, name, asker, analysis)
    for outcome in (True, False):
        otherwise = [(test, not outcome)]
        if _is_given_none(given, otherwise) and _leads_elsewhere(asked, otherwise, asker, analysis):
            return outcome
    return None


def is_never_taken(path: Sequence[tuple[ast.expr, bool]], asker: Asker, analysis: Analysis) -> bool:
    """True if no setting of an option passes all tests on the way to a branch.

    ``path`` holds each test with the outcome that leads on. Where the program shows all values of
    an option, these count and not those given to an option of its name.
    """
    by_option: dict[str, list[tuple[ast.expr, bool]]] = {}
    asked: dict[str, Asked] = {}
    for test, holds in path:
        option = _option_behind(test, asker)
        if option is not None:
            name, asked[name] = option
            by_option.setdefault(name, []).append((test, holds))
    return any(
        _is_given_none(_given(asked[name], name, asker, analysis), tests)
        and _leads_elsewhere(asked[name], tests, asker, analysis)
        for name, tests in by_option.items()
    )


def _option_behind(test: ast.expr, asker: Asker) -> tuple[str, Asked] | None:
    """Return the option that a test asks about, and the expression that holds it; None if none."""
    asked = None if _is_of_none(test) else asked_by(test)
    name = "" if asked is None else option_of(asked, asker.function, asker.owner)
    return None if asked is None or not name else (name, asked)


def _is_of_none(test: ast.expr) -> bool:
    """True for a comparison with None, which is the default of what is not given by its name."""
    return isinstance(test, ast.Compare) and any(map(is_none, test.comparators))


def _given(asked: Asked, name: str, asker: Asker, analysis: Analysis) -> Given:
    """Return the values that texts give an option; False for a parameter where none are known.

    That is one whose default is False, in a project that is too large to be searched.
    """
    given = analysis.project.option_values(name)
    if given.values or not isinstance(asked, ast.Name) or asker.function is None:
        return given
    default = literal_default(name, asker.function)
    is_off = default is not None and default.value is False
    return Given(frozenset((False,)), whole=True) if is_off else given


def _is_given_none(given: Given, tests: Sequence[tuple[ast.expr, bool]]) -> bool:
    """True if all values of an option are known, and each fails one of the tests."""
    return given.whole and bool(given.values) and passes_none(given.values, tests)


def _leads_elsewhere(
    asked: Asked, tests: Sequence[tuple[ast.expr, bool]], asker: Asker, analysis: Analysis
) -> bool:
    """True unless the program shows all values of an option, and one of them passes the tests."""
    if asker.module is None:
        return True
    values = analysis.values_of(asked, asker.module)
    return values is None or passes_none(values, tests)


def option_of(asked: ast.expr, function: FunctionNode | None, owner: ClassInfo | None) -> str:
    """Return the name of the option behind an expression; "" if it is none.

    An option is a parameter with a literal default, an attribute that a method sets to one or to
    an attribute or an item of a configuration, an attribute of anything but ``self``, and an item.
    """
    match asked:
        case ast.Name(id=name):
            return name if function is not None and _has_literal(name, function) else ""
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return _stored(name, owner)
        case ast.Attribute(attr=name):
            return name
    key = key_of(asked)
    return f"{OF_ITEM}{key}" if key else ""


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
                case value if key_of(value):
                    found.add(f"{OF_ITEM}{key_of(value)}")
                case _:
                    return ""
    return found.pop() if len(found) == 1 else ""


def _has_literal(name: str, function: FunctionNode) -> bool:
    """True if a parameter has a default that is a literal, a negative number included."""
    default = default_of(name, function)
    literal = default.operand if isinstance(default, ast.UnaryOp) else default
    return isinstance(literal, ast.Constant)
