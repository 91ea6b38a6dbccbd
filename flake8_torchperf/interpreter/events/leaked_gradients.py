"""Tensors that a function requests gradients for, if values computed from them leave it.

A compiled graph cannot return a value that depends on a tensor that first requested gradients in it
(torch 2.13, "requires_grad_() intermediate leaked as output").
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.inference.parameters import parameters_of
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.traversal import children

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionNode

# Attributes and methods of a tensor whose result needs no gradients.
_CUTTING = methods_of("cuts-gradients", "reads", "describes")


def ends_graph(call: ast.Call, ctx: Context) -> bool:
    """True for ``x.requires_grad_()`` if ``x`` is a parameter, or the result depends on it."""
    if ctx.node is None or not isinstance(call.func, ast.Attribute):
        return False
    asked = call.func.value
    return _is_given(asked, ctx.node, ctx.self_name) or _leaks(call, asked, ctx.node)


def _is_given(asked: ast.expr, function: FunctionNode, me: str) -> bool:
    """True for ``x``, ``batch["x"]`` and ``batch.x`` of a parameter that is never reassigned."""
    while isinstance(asked, (ast.Attribute, ast.Subscript)):
        asked = asked.value
    if not isinstance(asked, ast.Name) or asked.id == me:
        return False
    given = {argument.arg for argument, _ in parameters_of(function.args)}
    bound = (n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == asked.id)
    return asked.id in given and all(isinstance(n.ctx, ast.Load) for n in bound)


def _leaks(call: ast.Call, asked: ast.expr, function: FunctionNode) -> bool:
    """True if the function returns a value that depends on the tensor, followed through names."""
    names = {asked.id} if isinstance(asked, ast.Name) else set()
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    statements = [node for node in statements if node.lineno >= call.lineno]
    for node in sorted(statements, key=lambda one: one.lineno):
        match node:
            case ast.Assign(targets=targets, value=value) if _depends(value, names, call):
                names.update(n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                if _depends(value, names, call):
                    names.add(name)
            case ast.Return(value=value) if value is not None and _depends(value, names, call):
                return True
    return False


def _depends(node: ast.AST, names: set[str], call: ast.Call) -> bool:
    if node is call or (isinstance(node, ast.Name) and node.id in names):
        return True
    if isinstance(node, ast.Attribute) and node.attr in _CUTTING:
        return False
    return any(_depends(child, names, call) for child in children(node))
