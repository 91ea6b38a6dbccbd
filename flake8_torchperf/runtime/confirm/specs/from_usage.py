"""Collects how a function's own text uses its parameters, as far as that suggests inputs.

Complements the interpreter, which knows whether something is a tensor, but not how many dimensions
it has or which words a flag may be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.names import named_parameters

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import FunctionNode


@dataclass(slots=True)
class ParameterUse:
    """The ways in which one parameter is used."""

    ranks: set[int] = field(default_factory=set)
    least_rank: int = 0
    compared: list[object] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)
    called: bool = False
    returns: int = 0  # the number of values that its result is unpacked into
    iterated: bool = False
    twice: bool = False
    counted: bool = False  # used in range(...), so it is a whole number
    single: bool = False  # its number of elements is compared with 1
    indexes: bool = False  # used as an index
    classes: set[str] = field(default_factory=set)


def uses(node: FunctionNode) -> dict[str, ParameterUse]:
    """Return the use of every parameter of ``node``, nested functions included."""
    spec = node.args
    arguments = named_parameters(spec)
    found = {one.arg: ParameterUse() for one in arguments}
    for one in (spec.vararg, spec.kwarg):
        if one is not None:
            found[one.arg] = ParameterUse()
    items: dict[str, ParameterUse] = {}
    for inner in ast.walk(node):
        _look(inner, found, items)
    return found


def _look(node: ast.AST, found: dict[str, ParameterUse], items: dict[str, ParameterUse]) -> None:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in found:
            found[name].attributes.add(attr)
        case ast.Subscript(value=ast.Name(id=name), slice=index) if name in found:
            _subscript(found[name], index)
        case ast.Subscript(value=base, slice=ast.Constant(value=int(axis))):
            _axis(base, axis, found)
        case ast.Call(func=func, args=arguments):
            _call(func, arguments, found)
        case (
            ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated)
        ):
            _loop(target, iterated, found, items)
        case ast.Compare(left=ast.Name(id=name), comparators=[right]) if name in found:
            _compare(found[name], right)
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=unpacked):
            _unpack(len(names), unpacked, found)
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="numel")),
            comparators=[ast.Constant(value=1)],
        ) if name in found:
            found[name].single = True
    if isinstance(node, ast.Subscript):
        for inner in _indexes(node.slice):
            if inner in found:
                found[inner].indexes = True


def _subscript(use: ParameterUse, index: ast.expr) -> None:
    match index:
        case ast.Constant(value=str(key)):
            if key not in use.keys:
                use.keys.append(key)
        case ast.Tuple(elts=parts):
            real = [p for p in parts if not _is_new_axis(p)]
            use.least_rank = max(use.least_rank, len(real))


def _indexes(index: ast.expr) -> Iterator[str]:
    """Return the names whose values index; those that are only compared make a mask."""
    match index:
        case ast.Name(id=name):
            yield name
        case ast.Compare():
            return
        case _:
            for part in ast.iter_child_nodes(index):
                if isinstance(part, ast.expr):
                    yield from _indexes(part)


def _is_new_axis(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value in (None, Ellipsis)


def _axis(base: ast.expr, axis: int, found: dict[str, ParameterUse]) -> None:
    """Note the rank that an index implies: ``x.shape[2]`` needs three dimensions, ``[-2]`` two."""
    match base:
        case ast.Attribute(value=ast.Name(id=name), attr="shape") if name in found:
            needed = axis + 1 if axis >= 0 else -axis
            found[name].least_rank = max(found[name].least_rank, needed)


def _call(func: ast.expr, arguments: list[ast.expr], found: dict[str, ParameterUse]) -> None:
    match func, arguments:
        case ast.Name(id="isinstance"), [ast.Name(id=name), classes] if name in found:
            for inner in ast.walk(classes):
                if isinstance(inner, ast.Attribute):
                    found[name].classes.add(inner.attr)
                elif isinstance(inner, ast.Name):
                    found[name].classes.add(inner.id)
        case ast.Name(id="range"), _:
            for argument in arguments:
                if isinstance(argument, ast.Name) and argument.id in found:
                    found[argument.id].counted = True
        case ast.Name(id=name), _ if name in found:
            found[name].called = True
        case ast.Attribute(value=ast.Name(id=name), attr="size" | "stride"), [
            ast.Constant(value=int(axis))
        ] if name in found:
            needed = axis + 1 if axis >= 0 else -axis
            found[name].least_rank = max(found[name].least_rank, needed)


def _loop(
    target: ast.expr,
    iterated: ast.expr,
    found: dict[str, ParameterUse],
    items: dict[str, ParameterUse],
) -> None:
    pairs = [(target, iterated)]
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
        if iterated.func.id == "enumerate" and isinstance(target, ast.Tuple):
            pairs = [(target.elts[-1], iterated.args[0])]
        elif iterated.func.id == "zip" and isinstance(target, ast.Tuple):
            pairs = list(zip(target.elts, iterated.args, strict=False))
    for one, what in pairs:
        if not isinstance(what, ast.Name):
            continue
        if what.id in items:
            items[what.id].twice = True
        elif what.id in found:
            found[what.id].iterated = True
            if isinstance(one, ast.Name) and one.id not in found:
                items[one.id] = found[what.id]


def _compare(use: ParameterUse, right: ast.expr) -> None:
    literals = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    for one in literals:
        plain = isinstance(one, ast.Constant) and isinstance(one.value, (str, int, float))
        if isinstance(one, ast.Constant) and plain and one.value not in use.compared:
            use.compared.append(one.value)


def _unpack(length: int, unpacked: ast.expr, found: dict[str, ParameterUse]) -> None:
    """Note the rank that unpacking implies: ``b, c, h, w = x.shape`` has four dimensions."""
    match unpacked:
        case ast.Call(func=ast.Name(id=name)) if name in found:
            found[name].returns = length
        case (
            ast.Attribute(value=ast.Name(id=name), attr="shape")
            | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[])
        ) if name in found:
            found[name].ranks.add(length)
