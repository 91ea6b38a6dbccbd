"""What a call does beside giving its result: the attributes of ``self`` that it may write.

Enters a method; leaves the names of the attributes that it, or a method of the same object that it
calls, may write. Must not know values: what is written, interpreting it tells.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.lineage import find_method, lineage
from flake8_torchperf.interpret.values import Instance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpret.machine import Machine
    from flake8_torchperf.interpret.values import Function
    from flake8_torchperf.suspects.modulemap import ClassInfo, FunctionInfo


NOTHING: frozenset[str] = frozenset()


def written_by(info: FunctionInfo) -> frozenset[str]:
    """The attributes of its first parameter that a method itself writes."""
    return NOTHING if info.owner is None else info.owner.written.get(info.key, NOTHING)


def may_write(function: Function, machine: Machine) -> frozenset[str]:
    """The attributes that a bound method, or a method it calls on its object, may write."""
    owner = function.bound
    if not isinstance(owner, Instance) or owner.info is None:
        return NOTHING
    key = ("may write", function.key, owner.info.key)
    if key not in machine.summaries:
        machine.summaries[key] = _reached(function.info, owner.info, machine)
    return machine.summaries[key]  # type: ignore[return-value]


def _reached(start: FunctionInfo, klass: ClassInfo, machine: Machine) -> frozenset[str]:
    seen = {start.key}
    waiting = [start]
    found: set[str] = set()
    while waiting:
        info = waiting.pop()
        found.update(written_by(info))
        for method in _own_calls(info, klass, machine):
            if method.key not in seen:
                seen.add(method.key)
                waiting.append(method)
    return frozenset(found)


def _own_calls(info: FunctionInfo, klass: ClassInfo, machine: Machine) -> Iterator[FunctionInfo]:
    """The methods of the same object that a method calls, through ``self`` or ``super()``."""
    parameters = [*info.node.args.posonlyargs, *info.node.args.args]
    me = parameters[0].arg if parameters else ""
    for call in info.nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == me:
                found = find_method(klass, attr, machine)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr):
                found = _inherited(info, attr, machine)
            case ast.Name(id=name) if name == me:
                found = find_method(klass, "forward", machine)
            case _:
                continue
        if found is not None:
            yield found.info


def _inherited(info: FunctionInfo, name: str, machine: Machine) -> Function | None:
    """The method of that name in the nearest base of a method's class that has one."""
    for base in () if info.owner is None else lineage(info.owner, machine)[1:]:
        found = None if isinstance(base, str) else find_method(base, name, machine)
        if found is not None:
            return found
    return None
