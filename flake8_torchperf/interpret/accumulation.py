"""Totals and lists that a training loop fills with losses which still hold their graph.

Enters an addition or an append inside a loop; leaves a site where backward runs through the same
name in the same loop, so that nothing can need that graph again, and whether a total on the host
grows by what each round reads. Must not know rules.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.contexts import NO_GRADIENTS, gradients_off
from flake8_torchperf.interpret.emit import emit
from flake8_torchperf.interpret.environment import path_of
from flake8_torchperf.interpret.values import NDArray, Reason, Scalar, Strength, Tensor, Value
from flake8_torchperf.sites.model import SiteKind
from flake8_torchperf.suspects.walk import changes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpret.machine import Context

# The methods that run backward.
PASSES = frozenset(("backward", "manual_backward"))
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
            yield from _factors(node.value)
        return
    match node.value:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            if path_of(left) == total:
                yield from _factors(right)
            elif path_of(right) == total:
                yield from _factors(left)


def runs_up(node: ast.stmt, total: ast.expr, ctx: Context) -> bool:
    """Does a total grow by what each round reads?

    ``sizes[i] += n``, with ``i`` counting the rounds, is no total, and of ``for n in x.tolist():
    total += n`` all that is added was read before the loop.
    """
    if isinstance(total, ast.Subscript) and changes_in(total.slice, ctx.loops[-1].node):
        return False
    if not isinstance(node, (ast.Assign, ast.AugAssign)):
        return True
    outermost = ctx.loops[0].node
    path = path_of(total)
    assigned = {name for inner in ast.walk(outermost) if inner is not outermost
                for name in _assigned(inner)} - {path}  # fmt: skip
    return any(
        isinstance(part, ast.Call) or (isinstance(part, ast.expr) and path_of(part) in assigned)
        for term in (list(_terms(node, path or "")) or [node.value])
        for part in ast.walk(term)
    )


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """The ``loss`` of ``weight * loss`` and of ``loss / steps``, and what it is multiplied by."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield node


def _keeps(kept: str, term: ast.expr, ctx: Context, *, reassigning: ast.AST) -> bool:
    """Does ``kept`` outlive the round in which the graph of ``term`` was made and used up?"""
    added_path = path_of(term)
    if added_path is None or not ctx.loops or ctx.sink is None or _records_nothing(ctx):
        return False
    loop = ctx.loops[-1].node
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return False
    whole = ctx.node if ctx.node is not None else loop
    if PASSES.isdisjoint(ctx.module.nodes(whole).words()):
        return False
    within = set(map(id, ast.walk(loop)))
    passes = list(_backward_calls(whole))
    if any(id(one) not in within or _keeps_graph(one) for one in passes):
        return False
    through = {path for one in passes for path in _paths(one, loop)}
    if added_path not in through or kept in through or _let_go(added_path, loop):
        return False
    if not all(_whenever(one, reassigning, loop) for one in passes):
        return False
    return _made_in(added_path, loop) and not _made_anew(kept, loop, but=reassigning)


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


def _whenever(node: ast.Call, use: ast.AST, loop: ast.AST) -> bool:
    """Does backward run in each round in which ``use`` does? Else ``use`` may be what needs it."""
    for inner in ast.walk(loop):
        if isinstance(inner, ast.If):
            for branch in (inner.body, inner.orelse):
                held = {id(one) for statement in branch for one in ast.walk(statement)}
                if id(node) in held and id(use) not in held:
                    return False
    return True


def _let_go(path: str, loop: ast.AST) -> bool:
    """``loss = loss.detach()``: what is kept from there on holds no graph."""
    return any(
        isinstance(inner, ast.Assign)
        and path in _assigned(inner)
        and any(
            isinstance(part, ast.Attribute)
            and part.attr in ("detach", "item", "data")
            and path_of(part.value) == path
            for part in ast.walk(inner.value)
        )
        for inner in ast.walk(loop)
    )


def _paths(node: ast.Call, loop: ast.AST) -> set[str]:
    """Every name that a backward call starts from.

    Of ``accelerator.backward(loss)`` it is the argument, of ``loss.backward(gradient)`` it is not.
    """
    assert isinstance(node.func, ast.Attribute)
    owner = path_of(node.func.value)
    roots = [node.func.value]
    if owner is None or not _made_in(owner, loop):
        roots += node.args
    inside = (inner for root in roots for inner in ast.walk(root) if isinstance(inner, ast.expr))
    return {path for path in map(path_of, inside) if path is not None}


def _made_in(path: str, loop: ast.AST) -> bool:
    """Is a name assigned in each round?"""
    return any(path in _assigned(inner) for inner in ast.walk(loop))


def _made_anew(path: str, loop: ast.AST, but: ast.AST) -> bool:
    """Is a name assigned in each round, by anything but ``but`` and what adds to it as well?"""
    return any(
        path in _assigned(inner)
        for inner in ast.walk(loop)
        if inner is not but
        and not isinstance(inner, ast.AugAssign)
        and not (isinstance(inner, ast.Assign) and any(_terms(inner, path)))
    )


def _assigned(node: ast.AST) -> set[str | None]:
    """The names and attributes that a statement, or a walrus, assigns."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.NamedExpr)):
        found = [node.target]
    return {path_of(one) for target in found for one in _leaves(target)}


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _leaves(element)
    else:
        yield target.value if isinstance(target, ast.Starred) else target
