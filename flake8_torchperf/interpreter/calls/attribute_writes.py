"""The attributes of ``self`` that a method call may write."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method, lineage
from flake8_torchperf.project.function_facts import OWN_CALLS, SUPER_CALLS
from flake8_torchperf.project.noted_writes import ANY
from flake8_torchperf.values.values import Function, Instance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo


NO_WRITES: frozenset[str] = frozenset()


def asked_in(info: FunctionInfo, klass: ClassInfo, name: str, analysis: Analysis) -> frozenset[str]:
    """Return the attributes to look for in the calls of a method in order to find ``name``.

    The set is empty if no method that it calls may write ``name``: interpreting the method once
    then gives all the attributes that only it writes.
    """
    shared = _of(_by_calls(info, klass, analysis), _by_itself(info))
    return shared if name in shared else NO_WRITES


def touched(function: Function, node: ast.Call, ctx: Context) -> frozenset[str]:
    """Return the attributes of its own object that a call in a method may write.

    The set is empty for a call on another object.
    """
    if not ctx.self_name or not _on_own_object(node, ctx.self_name):
        return NO_WRITES
    info, owner = function.info, function.bound
    klass = owner.info if isinstance(owner, Instance) else info.owner
    if klass is None:
        return NO_WRITES
    return _by_itself(info) | _by_calls(info, klass, ctx.analysis)


def _on_own_object(node: ast.Call, me: str) -> bool:
    """True for ``self.m()``, ``super().m()`` and ``Base.m(self)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name == me:
            return True
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")))):
            return True
        case ast.Call(func=ast.Attribute(), args=[ast.Name(id=name), *_]):
            return name == me
    return False


def asked_of(written: frozenset[str], asked: frozenset[str] | None) -> frozenset[str] | None:
    """Return the requested attributes that a call may write, or None if there are none."""
    return _of(written, asked) or None if asked else None


def _of(written: frozenset[str], asked: frozenset[str]) -> frozenset[str]:
    return asked if ANY in written else written & asked


def _by_itself(info: FunctionInfo) -> frozenset[str]:
    """Return the attributes of its first parameter that a method writes without any call."""
    return NO_WRITES if info.owner is None else info.owner.written.get(info.key, NO_WRITES)


# Both caches are keyed by a method and the class of the object that it is called on.
WRITTEN: Cache[tuple[str, str], frozenset[str]] = Cache("attributes written by calls")
CALLED: Cache[tuple[str, str], list[FunctionInfo]] = Cache("calls of the same object's methods")


def _by_calls(start: FunctionInfo, klass: ClassInfo, analysis: Analysis) -> frozenset[str]:
    """Return the attributes written by the methods of the same object that a method calls."""
    known, key = WRITTEN.table(analysis), (start.key, klass.key)
    if key not in known:
        seen: set[str] = set()
        waiting = [start]
        found: set[str] = set()
        while waiting and len(seen) <= MAX_METHODS:
            for method in _own_calls(waiting.pop(), klass, analysis):
                if method.key not in seen:
                    seen.add(method.key)
                    waiting.append(method)
                    found.update(_by_itself(method))
        known[key] = frozenset((ANY,)) if waiting else frozenset(found)
    return known[key]


# The most methods that one may lead to; a method beyond that is taken to write any attribute.
MAX_METHODS = 400


def _own_calls(info: FunctionInfo, klass: ClassInfo, analysis: Analysis) -> list[FunctionInfo]:
    """Return the methods of the same object that a method calls by ``self`` or ``super()``."""
    key = (info.key, klass.key)
    return CALLED.kept(analysis, key, lambda: [*_find_own_calls(info, klass, analysis)])


def _find_own_calls(
    info: FunctionInfo, klass: ClassInfo, analysis: Analysis
) -> Iterator[FunctionInfo]:
    for name in OWN_CALLS.of(info):
        found = find_method(klass, name, analysis)
        if found is not None:
            yield found.info
    for name in SUPER_CALLS.of(info):
        found = _inherited(info, name, analysis)
        if found is not None:
            yield found.info


def _inherited(info: FunctionInfo, name: str, analysis: Analysis) -> Function | None:
    """Return the method of that name in the nearest base of a method's class that has one."""
    for base in () if info.owner is None else lineage(info.owner, analysis)[1:]:
        found = None if isinstance(base, str) else find_method(base, name, analysis)
        if found is not None:
            return found
    return None
