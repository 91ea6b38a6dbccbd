"""The type of a value by the functions of the project that it is passed to.

Only the annotations and the body of a callee count, not the functions that it calls in turn. So the
result does not depend on the order in which functions are analysed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.followed import CallWatch, may_follow, standing_answer
from flake8_torchperf.interpreter.inference.aliases import place_of
from flake8_torchperf.interpreter.inference.tensor_api import asked_for_type
from flake8_torchperf.interpreter.inference.usage import Use, value_of
from flake8_torchperf.interpreter.inference.usage_inference import evidence_of
from flake8_torchperf.interpreter.stated_types.annotations import annotated
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method
from flake8_torchperf.project.module_index import ClassInfo
from flake8_torchperf.syntax.names import dotted_name, named_parameters
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    UNKNOWN,
    ClassValue,
    Function,
    Instance,
    Reason,
    Strength,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import (
        FunctionInfo,
        FunctionNode,
        ModuleMap,
    )

# The most calls that are looked at.
MAX_CALLS = 8
# The methods that a call of an object runs, the first that its class has.
RUN_BY_CALLS = ("__call__", "forward")
# The methods that a call of a class runs.
RUN_BY_CLASSES = ("__init__",)
# How deep items of items are looked at: ``out["losses"]["total"]``.
MAX_INSIDE = 3


class Caller(NamedTuple):
    """The function that passes a value on, with its module and class."""

    node: FunctionNode
    module: ModuleMap
    owner: ClassInfo | None


# By the target of an assignment, and by a function and one of its names.
TAKEN: Cache[int, Value] = Cache("values as callees take them")
LOCALS: Cache[int, frozenset[str]] = Cache("names that functions bind")


def value_at(target: ast.expr, ctx: Context) -> Value:
    """Return the value that the uses of an assigned place imply, those by callees included."""
    if ctx.node is None:
        return UNKNOWN
    use = evidence_of(ctx.node, ctx.module, ctx.analysis).targets.get(id(target))
    return UNKNOWN if use is None else _implied(use, place_of(target) or "", target, ctx)


def values_inside(target: ast.expr, ctx: Context) -> list[tuple[str, Value]]:
    """Return the items, entries and attributes of an assigned place that are tensors by use."""
    if ctx.node is None:
        return []
    use = evidence_of(ctx.node, ctx.module, ctx.analysis).targets.get(id(target))
    place = place_of(target)
    return [] if use is None or place is None else [*_inside(use, place, target, ctx, MAX_INSIDE)]


def _inside(
    use: Use, place: str, target: ast.expr, ctx: Context, left: int
) -> Iterator[tuple[str, Value]]:
    for suffix, part in use.parts.items() if left else ():
        value = _implied(part, f"{place}{suffix}", target, ctx)
        if isinstance(value, Tensor):
            yield f"{place}{suffix}", value
        yield from _inside(part, f"{place}{suffix}", target, ctx, left - 1)


def _implied(use: Use, place: str, target: ast.expr, ctx: Context) -> Value:
    value = value_of(use, place, target)
    if value is not UNKNOWN or not use.given or ctx.node is None:
        return value
    caller = Caller(ctx.node, ctx.module, ctx.owner)
    return TAKEN.kept(
        ctx.analysis, id(use), lambda: told_by_callees(use, place, caller, ctx.analysis)
    )


def told_by_callees(use: Use, name: str, caller: Caller, analysis: Analysis) -> Value:
    """Return a tensor if a function that a value is passed to takes one, and none takes another."""
    if use.foreign or use.told or use.asked:
        return UNKNOWN
    found: Value = UNKNOWN
    for func, place in use.given[:MAX_CALLS]:
        for callee in callees_of(func, caller, analysis):
            taken = _taken(callee, place, analysis)
            if taken is not UNKNOWN and tensor_of(taken) is None:
                return UNKNOWN
            if isinstance(taken, Tensor) and found is UNKNOWN:
                fact = f"`{name}` is passed to `{callee.qualname}`"
                found = Tensor(Reason(fact, func, taken.reason, Strength.INFERRED), taken.dtype)
    return found


def callees_of(func: ast.expr, caller: Caller, analysis: Analysis) -> list[FunctionInfo]:
    """Return the functions of the project that a call runs, by its text and the program."""
    match func:
        case ast.Name(id=name) if name not in _names_of(caller, analysis):
            return _run_by(analysis.lookup(caller.module, name), analysis)
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) if caller.owner:
            method = find_method(caller.owner, name, analysis)
            if method is not None:
                return [method.info]
        case ast.Attribute(value=owner, attr=name):
            root = dotted_name(func).partition(".")[0]
            if root in caller.module.imports and root not in _names_of(caller, analysis):
                return _run_by(analysis.external(caller.module.qualify(func)), analysis)
            return _methods(_classes(owner, caller, analysis), (name,), analysis)
    return _methods(_classes(func, caller, analysis), RUN_BY_CALLS, analysis)


def _classes(holder: ast.expr, caller: Caller, analysis: Analysis) -> list[ClassInfo]:
    """Return the classes of the project that the object in a name or an attribute may be of."""
    if not isinstance(holder, (ast.Name, ast.Attribute)):
        return []
    held = (one for one in analysis.objects_of(holder, caller.module) if one is not None)
    return [
        one.definition for one in held if one.is_object and isinstance(one.definition, ClassInfo)
    ]


def _names_of(caller: Caller, analysis: Analysis) -> frozenset[str]:
    """Return the names that a function binds itself."""
    return LOCALS.kept(analysis, id(caller.node), lambda: _bound_in(caller))


def _bound_in(caller: Caller) -> frozenset[str]:
    names = caller.module.nodes(caller.node).of(ast.Name)
    stored = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    return frozenset((*stored, *(one.arg for one in named_parameters(caller.node.args))))


def _run_by(called: Value, analysis: Analysis) -> list[FunctionInfo]:
    match called:
        case Function(info=info):
            return [info]
        case ClassValue(info=info):
            return _methods((info,), RUN_BY_CLASSES, analysis)
        case Instance(info=info) if info is not None:
            return _methods((info,), RUN_BY_CALLS, analysis)
    return []


def _methods(
    classes: Iterable[ClassInfo], names: tuple[str, ...], analysis: Analysis
) -> list[FunctionInfo]:
    """Return the first method of some names that each class has."""
    found: list[FunctionInfo] = []
    for info in classes:
        methods = (find_method(info, name, analysis) for name in names)
        found += [method.info for method in methods if method is not None][:1]
    return found


def _taken(callee: FunctionInfo, place: int | str, analysis: Analysis) -> Value:
    """Return the value that a function takes at a position or under a keyword, by its own code."""
    spec = callee.tree.args
    ordinary = [*spec.posonlyargs, *spec.args]
    if callee.owner is not None and "staticmethod" not in callee.decorators:
        ordinary = ordinary[1:]
    if isinstance(place, int):
        found = ordinary[place] if place < len(ordinary) else None
    else:
        found = next((a for a in (*ordinary, *spec.kwonlyargs) if a.arg == place), None)
    if found is None:
        return UNKNOWN
    if found.annotation is not None:
        told = f"annotation of parameter `{found.arg}` of `{callee.qualname}`"
        reason = Reason(told, source=Source.PARAMETER_ANNOTATION)
        return annotated(found.annotation, callee.module, analysis, reason)
    return _taken_by_body(callee, found.arg, analysis)


# The kind of question that asks for the value that a body takes.
TAKES = "takes"


def _taken_by_body(callee: FunctionInfo, name: str, analysis: Analysis) -> Value:
    """Return the value that the body of a function takes; it is recorded as what a call gives."""
    if not may_follow(callee, analysis):
        callee.ask()
        return taken_by_body(callee, name, analysis)
    answer = standing_answer(callee, TAKES, name, analysis)
    if answer is not None:
        known: Value = answer[0]
        return known
    watch = CallWatch(analysis)
    value = taken_by_body(callee, name, analysis)
    watch.note(callee, TAKES, name, value)
    return value


def taken_by_body(callee: FunctionInfo, name: str, analysis: Analysis) -> Value:
    """Return the value that the uses of a parameter imply; this is no query for the body."""
    used = evidence_of(callee.tree, callee.module, analysis).value_of(name, None)
    tests = callee.module.nodes(callee.tree).of(ast.Call) if used is not UNKNOWN else ()
    return UNKNOWN if name in asked_for_type([*tests]) else used
