"""Moves of a whole module, which go over all its parameters and buffers on the host."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_moves import comes_back, is_another, made_in, moved
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_module
from flake8_torchperf.suspects.words import MODULE_MOVES
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Closure, Function, Instance, NoneValue, Union, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context


def note_move(node: ast.Call, callee: Value, owner: Value | None, ctx: Context) -> None:
    """Record a move of a module that is there before the round, and that nothing moves back."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr not in MODULE_MOVES:
        return
    if isinstance(callee, (Function, Closure)) or ctx.function.rpartition(".")[2] in MODULE_MOVES:
        return  # calls of a function named `to` are not told from those of the method
    if func.attr == "to" and not (node.args or node.keywords):
        return
    if owner is None or not _has_tensors(owner, ctx):
        return
    place = moved(node)
    if place is None:
        return
    loops = tuple(one for one in ctx.loops if not is_another(place, one.node))
    code = ctx.module.tree if ctx.node is None else ctx.node
    around = loops[-1].node if loops else code
    if made_in(place, around) or comes_back(place, _bodies(place, code, ctx)):
        return
    emit(ctx.but(loops=loops), SiteKind.MODULE_MOVE, func.attr, node, owner, operand_node=place)


def _has_tensors(owner: Value, ctx: Context) -> bool:
    """True for a module, or a module or None; False for a loss of torch, which has no parameter."""
    options = owner.options if isinstance(owner, Union) else (owner,)
    modules = [one for one in options if not isinstance(one, NoneValue)]
    return bool(modules) and all(
        is_module(one, ctx.analysis) and not (isinstance(one, Instance) and _is_loss(one))
        for one in modules
    )


def _is_loss(module: Instance) -> bool:
    """True for a class of torch/nn/modules/loss.py."""
    return module.info is None and module.name.startswith("torch.") and module.name.endswith("Loss")


def _bodies(place: ast.expr, code: ast.AST, ctx: Context) -> Iterator[ast.AST]:
    """Yield the code that may move the module as well: for an attribute, all methods."""
    yield code
    root = place
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if ctx.owner is not None and isinstance(root, ast.Name) and root.id == ctx.self_name:
        for method in ctx.owner.functions:
            yield method.node
