"""Totals and lists that a training loop fills with losses which still hold their graph.

Enters an addition or an append inside a loop; leaves a site where backward runs through the same
name in the same loop, so that nothing can need that graph again. Must not know rules.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.contexts import NO_GRADIENTS, gradients_off
from flake8_torchperf.interpret.emit import emit
from flake8_torchperf.interpret.environment import path_of
from flake8_torchperf.interpret.values import NDArray, Reason, Scalar, Strength, Tensor, Value
from flake8_torchperf.sites.model import SiteKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpret.machine import Context

# Options of backward that say: the graph is wanted once more.
KEEPING = ("retain_graph", "create_graph")


def added(node: ast.AugAssign | ast.Assign, target: ast.expr, value: Value, ctx: Context) -> None:
    """``total += loss``, ``total = total + loss``: does the total keep the graph?"""
    total = path_of(target)
    if total is None or not _may_hold_graph(value):
        return
    for term in _terms(node, total):
        if _keeps(total, term, ctx, reassigning=node):
            _report(node, "add", term, ctx)
            return


def appended(node: ast.Call, ctx: Context) -> None:
    """``losses.append(loss)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="append"), args=[item], keywords=[]):
            kept = path_of(owner)
            if kept is not None and _keeps(kept, item, ctx, reassigning=node):
                _report(node, "append", item, ctx)


def _report(node: ast.AST, operation: str, term: ast.expr, ctx: Context) -> None:
    reason = Reason("backward is called on it", term, None, Strength.INFERRED)
    operand = Tensor(reason, "float")
    emit(ctx, SiteKind.GRAPH_ACCUMULATION, operation, node, operand, operand_node=term)


def _may_hold_graph(value: Value) -> bool:
    return not isinstance(value, (Scalar, NDArray))


def _terms(node: ast.AugAssign | ast.Assign, total: str) -> Iterator[ast.expr]:
    """What is added to the total."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.op, ast.Add):
            yield _factor(node.value)
        return
    match node.value:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            if path_of(left) == total:
                yield _factor(right)
            elif path_of(right) == total:
                yield _factor(left)


def _factor(node: ast.expr) -> ast.expr:
    """The ``loss`` of ``loss * size`` and ``loss / steps``."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        node = node.left if path_of(node.left) is not None else node.right
    return node


def _keeps(kept: str, term: ast.expr, ctx: Context, *, reassigning: ast.AST) -> bool:
    """Does ``kept`` outlive the round in which the graph of ``term`` was made and used up?"""
    added_path = path_of(term)
    if added_path is None or not ctx.loops or ctx.sink is None or _records_nothing(ctx):
        return False
    loop = ctx.loops[-1].node
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return False
    within = set(map(id, ast.walk(loop)))
    passes = list(_backward_calls(ctx.node if ctx.node is not None else loop))
    if any(id(one) not in within or _keeps_graph(one) for one in passes):
        return False
    through = {path for one in passes for path in _paths(one)}
    if added_path not in through or kept in through:
        return False
    return _made_in(added_path, loop) and not _made_in(kept, loop, but=reassigning)


def _records_nothing(ctx: Context) -> bool:
    decorators = [] if ctx.node is None else ctx.node.decorator_list
    return NO_GRADIENTS in ctx.traits or any(gradients_off(d, ctx.module) for d in decorators)


def _backward_calls(node: ast.AST) -> Iterator[ast.Call]:
    """``loss.backward()``, ``scaler.scale(loss).backward()``, ``accelerator.backward(loss)``."""
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(attr="backward" | "manual_backward")):
                yield inner


def _keeps_graph(node: ast.Call) -> bool:
    return any(keyword.arg in KEEPING for keyword in node.keywords)


def _paths(node: ast.Call) -> set[str]:
    """Every name that a backward call starts from."""
    assert isinstance(node.func, ast.Attribute)
    roots = [node.func.value, *node.args]
    inside = (inner for root in roots for inner in ast.walk(root) if isinstance(inner, ast.expr))
    return {path for path in map(path_of, inside) if path is not None}


def _made_in(path: str, loop: ast.AST, but: ast.AST | None = None) -> bool:
    """Is a name assigned in each round, other than by the statement itself?"""
    for inner in ast.walk(loop):
        if inner is but:
            continue
        found: list[ast.expr] = []
        if isinstance(inner, ast.Assign):
            found = inner.targets
        elif isinstance(inner, (ast.AnnAssign, ast.AugAssign, ast.For, ast.NamedExpr)):
            found = [inner.target]
        if any(path_of(one) == path for target in found for one in _leaves(target)):
            return True
    return False


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _leaves(element)
    else:
        yield target.value if isinstance(target, ast.Starred) else target
