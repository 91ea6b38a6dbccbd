"""Comparisons of what is often one tensor: a CUDA device is not asked then, and nothing waits.

`torch.equal` of two tensors of the same storage, offset, sizes and strides is True at once, and of
different sizes False (`aten/src/ATen/native/cuda/Equal.cpp`). Enters a call and the function it
stands in; leaves a yes or no. By syntax alone; must not know values.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.spelling import named_parameters, spelled
from flake8_torchperf.suspects.walk import bound_in, once, walk

if TYPE_CHECKING:
    from flake8_torchperf.suspects.modulemap import FunctionNode


def often_the_same(node: ast.AST, function: FunctionNode) -> bool:
    """``torch.equal(x1, x2)`` of two parameters as they are given, or of a memo and what it holds.

    The memo is an attribute to which the function assigns the other side.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="equal"), args=sides):
            pass
        case ast.Call(func=ast.Attribute(value=left, attr="equal"), args=[right]):
            sides = [left, right]
        case _:
            return False
    if len(sides) != 2:
        return False
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    if len(names) == 2:
        return _given(function).issuperset(names)
    memos = [spelled(side) for side in sides if isinstance(side, ast.Attribute)]
    return any((memo, name) in _kept(function) for memo in memos for name in names)


@once
def _given(function: FunctionNode) -> frozenset[str]:
    """The parameters that nothing else is assigned to."""
    names = {parameter.arg for parameter in named_parameters(function.args)}
    return frozenset(names - bound_in(function))


@once
def _kept(function: FunctionNode) -> frozenset[tuple[str, str]]:
    """The attributes that names are assigned to, with those names: ``self.last = x``."""
    return frozenset(
        (spelled(target), node.value.id)
        for node in walk([function])
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    )
