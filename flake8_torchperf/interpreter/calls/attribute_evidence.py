"""Attributes that a class leaves open: what other code writes to them, and how they are used."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls import summaries
from flake8_torchperf.interpreter.calls.attribute_writes import NO_WRITES
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.project.function_facts import IS_LONG
from flake8_torchperf.project.mapped_files import read_file
from flake8_torchperf.project.whole_modules import storing
from flake8_torchperf.syntax.bindings import binding_statements
from flake8_torchperf.syntax.names import is_name
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    Instance,
    Reason,
    Strength,
    Tensor,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap
    from flake8_torchperf.values.environments import Env

# The most modules that are searched for writes of one attribute, and the most writers that count.
MAX_MODULES = 4
MAX_WRITERS = 4


# By class: the attributes that ``self.name.backward()`` in its own methods shows to be tensors.
RUN_BACKWARD: Cache[str, dict[str, ast.Call]] = Cache("attributes that run backward")


def told_by_use(info: ClassInfo, name: str, analysis: Analysis) -> Tensor | None:
    """Return the tensor that ``self.name.backward()`` in a method shows; None without one."""
    known = RUN_BACKWARD.table(analysis)
    for base in lineage(info, analysis):
        if isinstance(base, str) or not base.module.says(".backward()"):
            continue
        if base.key not in known:
            known[base.key] = dict(_run_backward(base))
        if name in known[base.key]:
            fact = "`.backward()` is called on it"
            reason = Reason(fact, known[base.key][name], None, Strength.INFERRED)
            return Tensor(reason, scalar=True)
    return None


def _run_backward(info: ClassInfo) -> Iterator[tuple[str, ast.Call]]:
    for method in info.functions:
        me = summaries.self_name(method)
        for call in method.nodes.of(ast.Call):
            match call:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Attribute(value=owner, attr=attribute), attr="backward"
                    ),
                    args=[],
                ) if me and is_name(owner, me):
                    yield attribute, call


def written_elsewhere(info: ClassInfo, name: str, ctx: Context) -> Value | None:
    """Return what code outside a class writes to an attribute of its objects; None if unknown.

    The objects are parameters declared to be of the class, and attributes that hold one.
    """
    values: list[Value] = []
    for module in _modules_that_write(info, name, ctx):
        for function, owner in _writes(storing(module, name, ctx.analysis.project), name):
            if len(values) < MAX_WRITERS and not summaries.out_of_reach(function, ctx):
                written = _written(function, owner, info, name, ctx)
                values.extend(() if written is None else (written,))
    known = [value for value in values if value not in (NONE, UNKNOWN)]
    return join_all([*known, *(v for v in values if v is UNKNOWN)]) if known else None


def _modules_that_write(info: ClassInfo, name: str, ctx: Context) -> Iterator[ModuleMap]:
    """Yield the modules that write an attribute of that name."""
    project = ctx.analysis.project
    near = {id(module): module for module in (project.linted, info.module)}
    for path in (project.all_modules_that_say(f".{name}") or ())[:MAX_MODULES]:
        read, _ = read_file(path)
        module = None if read is None else project.module(read.name)
        if module is not None:
            near[id(module)] = module
    for module in near.values():
        if module.says(f".{name} = "):
            yield module


def _writes(
    functions: Iterable[FunctionInfo], name: str
) -> Iterator[tuple[FunctionInfo, ast.expr]]:
    """Yield those of some functions that write an attribute of another object, with the object."""
    for function in functions:
        me = summaries.self_name(function)
        for node in function.nodes.of(ast.Attribute):
            stored = node.attr == name and isinstance(node.ctx, ast.Store)
            own = bool(me) and is_name(node.value, me)
            if stored and not own and path_of(node.value) is not None:
                yield function, node.value
                break


def _written(
    function: FunctionInfo, owner: ast.expr, info: ClassInfo, name: str, ctx: Context
) -> Value | None:
    """Return what a function writes to ``owner.name``; None if the owner is of no such class."""
    env = summaries.entry(function, None, None, ctx)
    place = ctx.but(sink=None, module=function.module, writes=None, settled=frozenset())
    head = owner
    while isinstance(head, (ast.Attribute, ast.Subscript)):
        head = head.value
    if not isinstance(head, ast.Name) or head.id not in env:
        return None
    value = evaluate(owner, env, place)
    if not isinstance(value, Instance) or value.info is None:
        return None
    if info not in lineage(value.info, ctx.analysis):
        return None
    return _written_to(function, path_of(owner) or "", name, env, ctx)


def _written_to(info: FunctionInfo, owner: str, name: str, env: Env, ctx: Context) -> Value | None:
    """Return what a function writes to an attribute of another object, by the object's path."""
    part = binding_statements(info.node, owner, name) if owner.isidentifier() else info.node.body
    if not part or IS_LONG.of(info):
        return None
    place = ctx.but(settled=frozenset())
    return summaries.interpret(info, part, env, NO_WRITES, place, me=owner).writes.get(name)
