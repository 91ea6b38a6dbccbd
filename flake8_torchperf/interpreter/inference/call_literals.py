"""Literals that one call gives to parameters, and the tests that they decide in its body."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.project.function_facts import CALLS_ITSELF, REBOUND
from flake8_torchperf.values.values import NONE, Scalar, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.environments import Env


def settled_by(
    info: FunctionInfo, arguments: Arguments | None, env: Env, *, skip: bool
) -> frozenset[str]:
    """Return the parameters that keep a literal which a call gives them, or leaves at its default.

    ``env`` holds the values that the body starts with.
    """
    if arguments is None:
        return frozenset()
    spec = info.tree.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1 if skip else 0 :]
    given = arguments.by_parameter(names)
    found = {name for name, argument in given.items() if is_literal(argument.value)}
    if not arguments.open:
        found |= {*names, *(a.arg for a in spec.kwonlyargs)} - set(given)
    found = {name for name in found if is_literal(env.get(name))}
    if found and CALLS_ITSELF.of(info):  # the next call may count on, or down to where it ends
        found = {name for name in found if not _is_number(env[name])}
    if found:
        found -= set(REBOUND.of(info))
    return frozenset(found)


def _is_number(value: Value) -> bool:
    return isinstance(value, Scalar) and value.kind in ("int", "float")


def is_literal(value: Value | None) -> bool:
    """True for None, and for a number or text whose value the source states."""
    return value is NONE or (isinstance(value, Scalar) and value.known and value.value is not None)


def outcome_by_call(test: ast.expr, env: Env, ctx: Context) -> bool | None:
    """Return the outcome of a test of literals that the call at hand gives; None if unknown."""
    match test:
        case ast.Name(id=name) if name in ctx.settled:
            value = env.get(name)
            return bool(_literal(value)) if is_literal(value) else None
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=other)]):
            value = env.get(name)
            if name in ctx.settled and is_literal(value):
                return _compared(op, _literal(value), other)
    return None


def _literal(value: Value | None) -> object:
    return value.value if isinstance(value, Scalar) else None


def _compared(op: ast.cmpop, left: object, right: object) -> bool | None:
    match op:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.Is() if left is None or right is None:
            return left is right
        case ast.IsNot() if left is None or right is None:
            return left is not right
    return None
