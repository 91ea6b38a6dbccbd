"""What a call does beside giving its result: does it write attributes of ``self``?

Enters a method; leaves the judgement whether it, or a method of the same object that it calls, may
write an attribute. Must not know values: what is written, interpreting it tells.
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


def writes_attributes(info: FunctionInfo) -> bool:
    """Does a method itself write an attribute of its first parameter?"""
    return info.owner is not None and info.key in info.owner.writing


def may_write(function: Function, machine: Machine) -> bool:
    """May a bound method write an attribute, itself or by a method of the object that it calls?"""
    owner = function.bound
    if not isinstance(owner, Instance) or owner.info is None:
        return False
    key = ("may write", function.key, owner.info.key)
    if key not in machine.summaries:
        machine.summaries[key] = _reaches_writer(function.info, owner.info, machine)
    return machine.summaries[key] is True


def _reaches_writer(start: FunctionInfo, klass: ClassInfo, machine: Machine) -> bool:
    seen = {start.key}
    waiting = [start]
    while waiting:
        info = waiting.pop()
        if writes_attributes(info):
            return True
        for method in _own_calls(info, klass, machine):
            if method.key not in seen:
                seen.add(method.key)
                waiting.append(method)
    return False


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
