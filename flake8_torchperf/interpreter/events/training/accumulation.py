"""Totals and lists that a training loop fills with losses that still hold their graph."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.guards import NO_GRADIENTS, gradients_off
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training.handed_losses import (
    BACKWARD_CALLS,
    GRAPH_KEEPING,
    handed,
)
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.bindings import changes_in
from flake8_torchperf.syntax.traversal import children, method_calls, once, plain_names, walk
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import NDArray, Reason, Scalar, Strength, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context


def added(node: ast.AugAssign | ast.Assign, target: ast.expr, value: Value, ctx: Context) -> None:
    """Report ``total += loss`` and ``total = total + loss`` if the total keeps the loss's graph."""
    total = path_of(target)
    if total is None or not _may_hold_graph(value):
        return
    for term in _terms(node, total):
        if keeps(total, term, ctx, reassigning=node):
            report(node, "add", term, ctx)
            return


def appended(node: ast.Call, ctx: Context) -> None:
    """Report ``losses.append(loss)`` if the list keeps the loss's graph."""
    if ctx.sink is None:
        return
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="append"), args=[item], keywords=[]):
            kept = path_of(owner)
            if kept is not None and keeps(kept, item, ctx, reassigning=node):
                report(node, "append", item, ctx)


def report(node: ast.AST, operation: str, term: ast.expr, ctx: Context) -> None:
    """Record that ``node`` keeps the graph of the loss ``term``."""
    reason = Reason("backward is called on it", term, None, Strength.INFERRED)
    operand = Tensor(reason, "float")
    emit(ctx, SiteKind.GRAPH_ACCUMULATION, operation, node, operand, operand_node=term)


def _may_hold_graph(value: Value) -> bool:
    return not isinstance(value, (Scalar, NDArray))


def _terms(node: ast.AugAssign | ast.Assign, total: str) -> Iterator[ast.expr]:
    """Yield the factors of the expressions added to the total."""
    for term in additions(node, total):
        yield from _factors(term)


def additions(node: ast.AugAssign | ast.Assign, total: str) -> Iterator[ast.expr]:
    """Yield the expressions added to the total."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.op, ast.Add):
            yield node.value
        return
    match node.value:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            if path_of(left) == total:
                yield right
            elif path_of(right) == total:
                yield left


def runs_up(node: ast.stmt, total: ast.expr, value: Scalar, ctx: Context) -> bool:
    """True if a total grows by a value that each round reads.

    ``sizes[i] += n``, with ``i`` counting the rounds, is no total. In ``for n in x.tolist(): total
    += n``, every value added was read before the loop.
    """
    if value.read is not None and id(value.read) not in _nodes_within(ctx.loops[0].node):
        return False  # the callee waited
    if value.read is not None and id(value.read) not in _nodes_within(node):
        return False  # the read is reported in its own statement
    if isinstance(total, ast.Subscript) and changes_in(total.slice, ctx.loops[-1].node):
        return False
    if not isinstance(node, (ast.Assign, ast.AugAssign)):
        return True
    path = path_of(total) or ""
    if path in _bounds_within(ctx.loops[-1].node):
        return False  # each round needs the number as an index or a bound
    terms = list(_terms(node, path)) or [node.value]
    parts = [part for term in terms for part in ast.walk(term) if isinstance(part, ast.expr)]
    if any(isinstance(part, ast.Call) for part in parts):
        return True
    paths = {path_of(part) for part in parts} - {path, None}
    if not paths.isdisjoint(_bounds_within(ctx.loops[-1].node)):
        return False  # the host needs the added numbers in each round, too
    for place in reversed(ctx.loops):
        if place is not ctx.loops[-1] and updates_of(place.node).made_anew(path, but=node):
            return False  # each round of this loop starts another total
        if not paths.isdisjoint(_assigned_within(place.node)):
            return True
    return False


@once
def _assigned_within(loop: ast.AST) -> frozenset[str | None]:
    """Return the names that a round assigns, without those that the loop itself binds."""
    inside = (inner for inner in ast.walk(loop) if inner is not loop)
    return frozenset(name for inner in inside for name in _assigned(inner))


@once
def _nodes_within(loop: ast.AST) -> frozenset[int]:
    return frozenset(map(id, walk([loop])))


@once
def _bounds_within(loop: ast.AST) -> frozenset[str]:
    """Return the names in the indices and slices of a loop."""
    return frozenset(
        name
        for subscript in walk([loop])
        if isinstance(subscript, ast.Subscript)
        for name in plain_names(subscript.slice)
    )


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the factors of a term: ``weight`` and ``loss`` for ``weight * loss``.

    The two sides of a quotient count as factors as well.
    """
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield node


def keeps(kept: str, term: ast.expr, ctx: Context, *, reassigning: ast.AST) -> bool:
    """True if ``kept`` outlives the round in which ``term`` is computed and backpropagated."""
    added_path = path_of(term)
    if added_path is None or not ctx.loops or ctx.sink is None or _records_nothing(ctx):
        return False
    loop = ctx.loops[-1].node
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return False
    whole = ctx.node if ctx.node is not None else loop
    if BACKWARD_CALLS.isdisjoint(ctx.module.nodes(whole).words()) or not _backward_calls(whole):
        # Few losses are handed, which is told without a look at all of the loop.
        return handed(added_path, loop, ctx) and _made_in_each_round(
            added_path, kept, loop, reassigning
        )
    updates = updates_of(loop)
    through = updates.used_up_in(whole)
    if (
        added_path not in through
        or kept in through
        or not updates.let_go.isdisjoint(_whole(added_path))
    ):
        return False
    if not updates.whenever_backward_runs(reassigning, whole):
        return False
    made = not updates.assigned.isdisjoint(_whole(added_path))
    return made and not updates.made_anew(kept, but=reassigning)


def _whole(path: str) -> set[str]:
    """Return a path and those of the objects that it is a part of."""
    found = {path}
    while "." in path:
        path = path.rpartition(".")[0]
        found.add(path)
    return found


def _made_in_each_round(path: str, kept: str, loop: ast.AST, reassigning: ast.AST) -> bool:
    """True if each round makes a new loss, but not a new ``kept``."""
    updates = updates_of(loop)
    made = any(path.startswith(one) for one in updates.assigned if one != kept)
    return made and path not in updates.let_go and not updates.made_anew(kept, but=reassigning)


def _records_nothing(ctx: Context) -> bool:
    decorators = [] if ctx.node is None else ctx.node.decorator_list
    return NO_GRADIENTS in ctx.traits or any(gradients_off(d, ctx.module) for d in decorators)


class LoopUpdates:
    """The assignments and backward calls of one loop."""

    def __init__(self, loop: ast.AST) -> None:
        # Each node in the loop, with the branches around it.
        self._branches = dict(_with_branches(loop))
        self.assigned: set[str] = set()
        # Paths assigned `loss.detach()`, which hold no graph from there on.
        self.let_go: set[str] = set()
        # The nodes that assign a path in each round without adding to it. By identity: the loop
        # may be one of them, and this object is stored on the loop and must not keep it alive.
        self._anew: dict[str, set[int]] = {}
        # Each name with the names that sums assigned to it are made of.
        self._terms: dict[str, set[str]] = {}
        self._passes: dict[int, tuple[frozenset[str], frozenset[Branch]]] = {}
        for inner in walk([loop]):
            self._note(inner)

    def _note(self, node: ast.AST) -> None:
        paths = {path for path in _assigned(node) if path is not None}
        self.assigned |= paths
        if isinstance(node, ast.Assign):
            self.let_go |= paths & _without_graph(node.value)
            for path in paths:
                self._terms.setdefault(path, set()).update(_summed(node.value))
            paths = {path for path in paths if not any(_terms(node, path))}
        if not isinstance(node, ast.AugAssign):
            for path in paths:
                self._anew.setdefault(path, set()).add(id(node))

    def made_anew(self, path: str, but: ast.AST) -> bool:
        """True if each round assigns the name by anything but ``but`` and additions to it."""
        return not self._anew.get(path, set()) <= {id(but)}

    def used_up_in(self, whole: ast.AST) -> frozenset[str]:
        """Return the names whose graphs the rounds use up; empty if other code may need them."""
        return self._backward(whole)[0]

    def whenever_backward_runs(self, use: ast.AST, whole: ast.AST) -> bool:
        """True if backward runs in each round that runs ``use``.

        Otherwise ``use`` may need the graph.
        """
        return self._backward(whole)[1].issubset(_upwards(self._branches.get(id(use))))

    def _backward(self, whole: ast.AST) -> tuple[frozenset[str], frozenset[Branch]]:
        """Return the names that backward calls start from, and the branches around these calls."""
        if id(whole) not in self._passes:
            passes = _backward_calls(whole)
            if any(id(one) not in self._branches or _keeps_graph(one) for one in passes):
                passes = []
            through = self._with_terms({path for one in passes for path in self._paths(one)})
            branches = frozenset(b for one in passes for b in _upwards(self._branches[id(one)]))
            self._passes[id(whole)] = through, branches
        return self._passes[id(whole)]

    def _with_terms(self, paths: set[str]) -> frozenset[str]:
        """Return paths with those of the terms that they are sums of: backward runs through all."""
        waiting = list(paths)
        while waiting:
            terms = self._terms.get(waiting.pop(), set()) - paths
            paths |= terms
            waiting += terms
        return frozenset(paths)

    def _paths(self, node: ast.Call) -> set[str]:
        """Return every name that a backward call starts from.

        For ``accelerator.backward(loss)`` that is the argument; for ``loss.backward(gradient)`` it
        is not.
        """
        assert isinstance(node.func, ast.Attribute)
        owner = path_of(node.func.value)
        roots = [node.func.value]
        if owner is None or owner not in self.assigned:
            roots += node.args
        inside = (part for root in roots for part in ast.walk(root) if isinstance(part, ast.expr))
        return {path for path in map(path_of, inside) if path is not None}


updates_of = once(LoopUpdates)


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One side of a test, with the side that encloses it."""

    around: Branch | None


def _upwards(branch: Branch | None) -> Iterator[Branch]:
    while branch is not None:
        yield branch
        branch = branch.around


def _with_branches(code: ast.AST) -> Iterator[tuple[int, Branch | None]]:
    """Yield each node in a piece of code, with the innermost side of a test that contains it."""
    waiting: list[tuple[ast.AST, Branch | None]] = [(code, None)]
    while waiting:
        node, branch = waiting.pop()
        yield id(node), branch
        if isinstance(node, ast.If):
            waiting.append((node.test, branch))
            for block in (node.body, node.orelse):
                side = Branch(branch)
                waiting.extend((statement, side) for statement in block)
        else:
            waiting.extend((child, branch) for child in children(node))


@once
def _backward_calls(node: ast.AST) -> list[ast.Call]:
    """Return the calls ``loss.backward()``, ``scaler.scale(loss).backward()`` and the like."""
    return list(method_calls([node], BACKWARD_CALLS))


def _summed(value: ast.expr) -> Iterator[str]:
    """Yield the paths of the terms of a sum, each of which may have a number as a factor."""
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            for term in (left, right):
                path = path_of(term)
                yield from _summed(term) if path is None else (path,)
        case (
            ast.BinOp(left=ast.Constant(), op=ast.Mult(), right=term)
            | ast.BinOp(left=term, op=ast.Mult() | ast.Div(), right=ast.Constant())
        ):
            path = path_of(term)
            yield from _summed(term) if path is None else (path,)


def _keeps_graph(node: ast.Call) -> bool:
    return any(keyword.arg in GRAPH_KEEPING for keyword in node.keywords)


def _without_graph(value: ast.expr) -> set[str | None]:
    """Return the paths that an expression only uses without their graph: ``loss.detach()``."""
    return {
        path_of(part.value)
        for part in walk([value])
        if isinstance(part, ast.Attribute) and part.attr in methods_of("cuts-gradients")
    }


def _assigned(node: ast.AST) -> set[str | None]:
    """Return the names and attributes that a statement, or a walrus, assigns."""
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
