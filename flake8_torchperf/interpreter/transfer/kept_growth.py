"""Tensors that an object keeps and that each call of a method makes longer."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.transfer.loops import GROWING, pieces_of
from flake8_torchperf.syntax.traversal import inside, once
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import External, tensor_of

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionNode
    from flake8_torchperf.values.environments import Env

# The trait of a tensor that grows from call to call, not from round to round.
KEPT = "kept"


def kept_growth(target: ast.expr, value: ast.expr, env: Env, ctx: Context) -> None:
    """Record ``self.k = torch.cat([self.k, k])``, also by way of a name, outside loops.

    A piece has to come from the method's parameters: otherwise the parts are joined once.
    """
    if ctx.sink is None or not ctx.self_name or ctx.node is None or not isinstance(value, ast.Call):
        return
    pieces = pieces_of(value)
    kept = _kept_as(target, ctx.self_name, ctx.node)
    old = [piece for piece in pieces if path_of(piece) in kept]
    if len(old) != 1 or not _is_given(pieces, ctx):
        return
    callee = evaluate(value.func, env, ctx.silent())
    if not isinstance(callee, External) or callee.name not in GROWING:
        return
    operand = tensor_of(evaluate(old[0], env, ctx.silent()))
    name = callee.name.rpartition(".")[2]
    emit(ctx.mark(KEPT), SiteKind.GROWTH, name, value, operand, operand_node=old[0])


def _kept_as(target: ast.expr, me: str, method: FunctionNode) -> frozenset[str]:
    """Return the attributes of the object that an assignment sets, or that get its name's value."""
    path = path_of(target) or ""
    if path.startswith(f"{me}."):
        return frozenset((path,))
    return _stored(method).get(path, frozenset()) if isinstance(target, ast.Name) else frozenset()


@once
def _stored(method: ast.AST) -> dict[str, frozenset[str]]:
    """Return the names that a method stores, with the paths that it stores them under."""
    found: dict[str, set[str]] = {}
    for node in inside(method, ast.Assign):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for stored, value in pairs:
                path = path_of(stored)
                if path is not None and isinstance(value, ast.Name):
                    found.setdefault(value.id, set()).add(path)
    return {name: frozenset(paths) for name, paths in found.items()}


def _is_given(pieces: list[ast.expr], ctx: Context) -> bool:
    """True if a piece is made of anything but the object's attributes and imported names."""
    return any(
        isinstance(inner, ast.Name)
        and inner.id != ctx.self_name
        and inner.id not in ctx.module.imports
        for piece in pieces
        for inner in ast.walk(piece)
    )
