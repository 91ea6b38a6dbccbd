"""The objects that an expression holds as its program shows, where its own function doesn't.

An object of a class of the project that a caller passes is that object in the callee, and so is one
that a factory or a registry makes, or that another method keeps.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import attribute_of
from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_abstract
from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
from flake8_torchperf.values.values import (
    UNKNOWN,
    ClassValue,
    External,
    Function,
    Instance,
    Union,
    Value,
    join,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.program.running import Meant


# The deepest nesting of expressions at which the program is asked: it needs frames of its own.
MAX_NESTED = 60
# How deep in calls the program is asked: each answer leads to more bodies.
MAX_DEPTH = 1
# Methods that a class runs itself, where its own class is made.
RUN_BY_MAKING = frozenset(("__init__", "__new__", "__post_init__"))


def callee_of(func: ast.expr, owner: Value | None, ctx: Context) -> tuple[Value, bool]:
    """Return what an expression of unknown value calls; True if it may be something else, too."""
    found, is_partial = [], False
    if isinstance(func, ast.Attribute) and owner is UNKNOWN:
        holders, is_partial = _objects(func.value, ctx)
        found = [attribute_of(one, func.attr, func, ctx) for one in holders]
    else:
        found, is_partial = _objects(func, ctx)
    known = [one for one in found if one is not UNKNOWN]
    return _any(known), is_partial or len(known) < len(found)


def of_objects(node: ast.expr, part: Callable[[Value], Value], ctx: Context) -> Value:
    """Return a part of the objects that an expression of unknown value holds, an item or attribute.

    ``part`` returns that of one object.
    """
    holders, is_partial = _objects(node, ctx)
    found = join_all(map(part, holders))
    return join(found, UNKNOWN) if is_partial else found


def overridden(owner: ClassInfo, name: str, ctx: Context) -> Value | None:
    """Return the methods of the classes below for one that a class leaves to them; None without.

    The class itself has none of this name, or one whose body is that of no object.
    """
    if ctx.depth > MAX_DEPTH or name in RUN_BY_MAKING:
        return None
    below = ctx.analysis.classes_below(owner, name)
    found: list[Value] = [
        Function(one.methods[name], one.methods[name].key, Instance(one.key, one))
        for one in below
        if name in one.methods and not is_abstract(one.methods[name])
    ]
    return _any(found) if found else None


def _any(values: list[Value]) -> Value:
    """Return a value that is one of several callables, however many."""
    different = list(dict.fromkeys(values))
    if not different:
        return UNKNOWN
    return different[0] if len(different) == 1 else Union(tuple(different))


def _objects(node: ast.expr, ctx: Context) -> tuple[list[Value], bool]:
    """Return the objects that an expression holds; True if it may hold something else, too."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return [], False
    if ctx.depth > MAX_DEPTH or ctx.analysis.stack.expressions > MAX_NESTED:
        return [], False
    meant = ctx.analysis.objects_of(node, ctx.module)
    found = [value for one in meant if (value := _value(one, ctx.analysis)) is not UNKNOWN]
    return found, len(found) < len(meant)


def _value(meant: Meant | None, analysis: Analysis) -> Value:
    if meant is None:
        return UNKNOWN
    match meant.definition:
        case FunctionInfo() as function:
            return Function(function, function.key)
        case ClassInfo() as owner:
            if meant.is_object:
                return Instance(owner.key, owner)
            return ClassValue(owner, owner.key)
        case str() as name if analysis.table.klass(name) is not None:
            return Instance(name)
        case str() as name if analysis.table.function(name) is not None:
            return External(name)
    return UNKNOWN
