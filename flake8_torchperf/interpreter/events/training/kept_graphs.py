"""Losses that a training loop keeps with their graph inside of something: forms in preview."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.training.accumulation import (
    additions,
    keeps,
    report,
    updates_of,
)
from flake8_torchperf.interpreter.events.training.handed_losses import BACKWARD_CALLS
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.bindings import changes_in
from flake8_torchperf.syntax.traversal import inside, method_calls, once, walk
from flake8_torchperf.values.environments import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context

# Methods of a list, a deque or a dict that let go of entries.
REMOVING = frozenset(("clear", "pop", "popleft", "popitem", "remove"))
# Operators whose result depends on the gradients of both sides.
DIFFERENTIABLE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)


def stored(node: ast.Assign, target: ast.expr, ctx: Context) -> None:
    """Report ``losses[step] = loss`` if each round fills another entry of what outlives it."""
    if ctx.sink is None or not isinstance(target, ast.Subscript) or not ctx.loops:
        return
    wraps = any(isinstance(part, ast.Mod) for part in ast.walk(target.slice))
    if not wraps and changes_in(target.slice, ctx.loops[-1].node):
        _note(node, "store", path_of(target.value), node.value, ctx)


def added_part(node: ast.AugAssign | ast.Assign, target: ast.expr, ctx: Context) -> None:
    """Report ``total += loss.sum()`` and ``losses += [loss]``."""
    path = path_of(target)
    if ctx.sink is None or path is None:
        return
    for term in additions(node, path):
        _note(node, "add-part", path, term, ctx)


def appended_part(node: ast.Call, ctx: Context) -> None:
    """Report ``losses.append((step, loss))`` and ``losses.extend([loss.mean()])``."""
    if ctx.sink is None:
        return
    match node:
        case ast.Call(
            func=ast.Attribute(value=owner, attr="append" | "extend"), args=[item], keywords=[]
        ):
            if path_of(item) is None:
                _note(node, "append-part", path_of(owner), item, ctx)


def _note(
    node: ast.stmt | ast.Call, operation: str, path: str | None, value: ast.expr, ctx: Context
) -> None:
    if path is None or not _grows_over_steps(path, node, ctx):
        return
    for loss in _with_graph(value):
        if keeps(path, loss, ctx, reassigning=node):
            report(node, operation, loss, ctx)
            return


def _with_graph(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the places whose graph an expression refers to: ``loss`` for ``(i, 2 * loss.sum())``.

    Methods that are not known to keep the graph end the search.
    """
    match value:
        case ast.BinOp(left=left, op=operator, right=right):
            if isinstance(operator, DIFFERENTIABLE):
                yield from _with_graph(left)
                yield from _with_graph(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _with_graph(operand)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from _with_graph(element)
        case ast.Dict(values=values):
            for held in values:
                yield from _with_graph(held)
        case ast.Call(func=ast.Attribute(value=owner, attr=name)):
            if name in methods_of("keeps-gradients"):
                yield from _with_graph(owner)
        case _:
            if path_of(value) is not None:
                yield value


def _grows_over_steps(path: str, use: ast.AST, ctx: Context) -> bool:
    """True if the rounds of a loop that steps an optimizer fill one container, and none empties it.

    A container of the losses of one step, such as those of its tasks, holds few graphs.
    """
    whole = ctx.node if ctx.node is not None else ctx.module.tree
    if path in _emptied(whole) or path in _bounded(whole):
        return False
    if ctx.owner is not None and path in _bounded(ctx.owner.node):
        return False
    if BACKWARD_CALLS.isdisjoint(ctx.module.nodes(whole).words()):
        return True  # the function that runs backward steps as well
    for loop in reversed(ctx.loops):
        if updates_of(loop.node).made_anew(path, but=use):
            return False
        if _steps(loop.node):
            return True
    return False


@once
def _steps(loop: ast.AST) -> bool:
    """True if a loop calls ``optimizer.step()``, or ``super().step()`` in an optimizer."""
    return any(method_calls([loop], ("step",)))


@once
def _emptied(code: ast.AST) -> frozenset[str | None]:
    """Return the paths of what loops of some code empty: ``losses.clear()``, ``del losses[:]``."""
    found: set[str | None] = set()
    kinds = (ast.For, ast.AsyncFor, ast.While)
    for loop in [one for kind in kinds for one in inside(code, kind)]:
        for node in walk([loop]):
            match node:
                case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in REMOVING:
                    found.add(path_of(owner))
                case ast.Delete(targets=targets):
                    found.update(
                        path_of(one.value) for one in targets if isinstance(one, ast.Subscript)
                    )
    return frozenset(found)


@once
def _bounded(code: ast.AST) -> frozenset[str | None]:
    """Return the paths that are assigned something of a greatest length: ``deque(maxlen=10)``."""
    return frozenset(
        path_of(target)
        for node in inside(code, ast.Assign)
        if isinstance(node.value, ast.Call)
        and any(keyword.arg == "maxlen" for keyword in node.value.keywords)
        for target in node.targets
    )
