"""Objects that a class keeps because the calls of its constructor in its module pass them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.values.values import Instance, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap

# By module: the calls of its classes in its functions, by the name of the class.
CONSTRUCTIONS: Cache[int, dict[str, list[tuple[ast.Call, FunctionInfo]]]] = Cache(
    "calls of constructors"
)
# The most calls of one constructor that are looked at.
MAX_CONSTRUCTIONS = 4


def given_object(info: ClassInfo, position: int, name: str, ctx: Context) -> Value | None:
    """Return the object that all calls of a constructor pass for one parameter.

    The result is None if they pass objects of several classes, or anything else.
    """
    calls = _constructions(info.module, ctx).get(info.name, ())
    if not calls or len(calls) > MAX_CONSTRUCTIONS:
        return None
    found: Value | None = None
    for call, function in calls:
        given = _argument(call, position, name)
        value = None if given is None else _value(given, function, ctx)
        if not isinstance(value, Instance) or value.info is None:
            return None
        if found is not None and found != value:
            return None
        found = value
    return found


def _constructions(
    module: ModuleMap, ctx: Context
) -> dict[str, list[tuple[ast.Call, FunctionInfo]]]:
    return CONSTRUCTIONS.kept(ctx.analysis, id(module), lambda: _find(module))


def _find(module: ModuleMap) -> dict[str, list[tuple[ast.Call, FunctionInfo]]]:
    found: dict[str, list[tuple[ast.Call, FunctionInfo]]] = {}
    for function in module.defined:
        for call in function.nodes.of(ast.Call):
            if isinstance(call.func, ast.Name) and call.func.id in module.classes:
                found.setdefault(call.func.id, []).append((call, function))
    return found


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """Return the argument for a parameter; None if the call does not show it."""
    named = next((k.value for k in call.keywords if k.arg == name), None)
    if named is not None:
        return named
    plain = call.args[: position + 1]
    shown = len(plain) > position and not any(isinstance(a, ast.Starred) for a in plain)
    return plain[position] if shown else None


def _value(node: ast.expr, function: FunctionInfo, ctx: Context) -> Value | None:
    """Return the value of a call, or of a name that is assigned one call in the function."""
    if isinstance(node, ast.Name):
        assigned = list(_assigned(node.id, function))
        if len(assigned) != 1:
            return None
        node = assigned[0]
    if not isinstance(node, ast.Call):
        return None
    return evaluate(node, {}, ctx.but(sink=None, module=function.module, writes=None, loops=()))


def _assigned(name: str, function: FunctionInfo) -> Iterator[ast.expr]:
    for statement in function.nodes.of(ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield statement.value
