"""Loops: runs their bodies to a fixed point, and records the sites that only a loop makes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.idioms.loop_kinds import goes_on, hands_on
from flake8_torchperf.idioms.row_storage import only_keeps
from flake8_torchperf.interpreter.engine.dispatch import evaluate, run_block
from flake8_torchperf.interpreter.engine.place import LoopPlace, Pending, Site
from flake8_torchperf.interpreter.events.guards import offers_foreach, sides
from flake8_torchperf.interpreter.events.recording import emit, emit_read
from flake8_torchperf.interpreter.events.training import input_pipeline
from flake8_torchperf.interpreter.inference.iterables import iterable
from flake8_torchperf.interpreter.transfer import assignment, expressions, index_loops
from flake8_torchperf.interpreter.transfer.iteration import move_items, unpack_reads, yields_keys
from flake8_torchperf.interpreter.transfer.narrowing import narrow
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.suspects.words import PER_PARAMETER
from flake8_torchperf.syntax.bindings import changes_in
from flake8_torchperf.syntax.weighted_sums import is_weighted_sum
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.elements import OF_MODULES, element_of, goes_through_layers
from flake8_torchperf.values.environments import Env, Exits, holds_same, merge, path_of
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    UNKNOWN,
    External,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Context

# The most passes over a loop body; after them, values that still change are used as they are.
MAX_PASSES = 3
GROWING = frozenset(f"torch.{name}" for name in methods_of("joins"))
_DESCRIBING = methods_of("describes")
AUGMENTED: dict[type[ast.operator], str] = {
    ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_", ast.Pow: "pow_",
}  # fmt: skip
ForNode: TypeAlias = ast.For | ast.AsyncFor


def run_for(node: ForNode, env: Env, ctx: Context) -> Exits:
    """Run ``for target in iter``."""
    ahead: list[Site] = []
    quiet = ctx.sink is None
    iterated = evaluate(node.iter, env, ctx if quiet else ctx.but(sink=ahead))
    iterated = iterable(node.iter, iterated, ctx)
    if isinstance(iterated, Tensor) and yields_keys(node.target, node.iter, node, ctx):
        iterated = UNKNOWN
    elif isinstance(iterated, Tensor):
        iterated = _items_or_rows(iterated, node, ctx)
    input_pipeline.loader_iterated(_enumerated(node.iter, iterated, env, ctx), node.iter, ctx)
    index, measured = index_loops.index_of(node, iterated, env, ctx)
    place = ctx.within(LoopPlace(node, "for", node.iter, iterated, index, measured))

    def body(start: Env, inner: Context) -> Exits:
        assignment.assign(node.target, element_of(iterated), start, inner)
        return run_block(node.body, start, inner)

    budget = ctx.budget
    before, plain, decided = budget.opaque_calls, budget.plain_calls, budget.decided
    seen: list[Site] = []
    flow = _fixed_point(body, env, place if quiet else place.but(sink=seen))
    opaque = (
        budget.opaque_calls > before
        or (budget.plain_calls > plain and not quiet and hands_on(node))
        or bool(index and index_loops.indexes_lists(node, index, flow.env, ctx))
    )
    traits = ("opaque-body",) if opaque else ()
    rows = ctx.sink is not None and (bool(ahead) or tensor_of(iterated) is not None)
    kept = rows and only_keeps(node)
    unpack_reads(iterated, "for", node.iter, ctx.demote(Cause.AT_ONCE) if kept else ctx, traits)
    if ctx.sink is not None:
        sites = (*ahead, *seen)
        counted = bool(index) and any(index_loops.COUNTED in site.traits for site in sites)
        apart = counted and (budget.decided > decided or goes_on(node))
        for site in sites:
            told = index_loops.with_body(site, node.iter, opaque=opaque, apart=apart)
            ctx.sink.append(_with_traits(told, node, traits, kept))
    done = _finish(env, flow, node.orelse, ctx, runs_maybe_never=True)
    if flow.env is not None and done.env is not None and not flow.breaks:
        move_items(node, flow.env, done.env, ctx)
    return done


def _items_or_rows(iterated: Tensor, node: ForNode, ctx: Context) -> Value:
    """Return the tensor, or a list if the loop uses the items in a way that rows do not allow.

    In ``for p in params: p.grad``, rows have no gradients of their own. In
    ``for x in found: x["area"]``, no row is a dict.
    """
    if not isinstance(node.target, ast.Name):
        return iterated
    nodes, item = ctx.module.nodes(node), node.target.id
    for inner in nodes.of(ast.Attribute):
        if inner.attr == "grad" and isinstance(inner.value, ast.Name) and inner.value.id == item:
            return Sequence("list", iterated)
    for asked in nodes.of(ast.Subscript):
        match asked:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())):
                if name == item:
                    return Sequence("list", UNKNOWN)
    return iterated


def _enumerated(node: ast.expr, iterated: Value, env: Env, ctx: Context) -> Value:
    """Return the value inside ``enumerate(...)``, or else the iterated value itself."""
    match node:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return evaluate(inner, env, ctx.silent())
    return iterated


def _with_traits(site: Site, node: ForNode, traits: tuple[str, ...], kept: bool) -> Site:
    """Return the site, with the traits of the loop whose head or in-place step it is.

    ``kept`` is True if the loop's body only stores the items, so that the iteration is free.
    """
    head = site.kind is SiteKind.TENSOR_ITERATION and index_loops.is_given(site.node, node.iter)
    step = site.kind is SiteKind.PARAMETER_LOOP and site.place.loops[-1].node is node
    if kept and head:
        site = site.taken_at_once()
    return site.with_traits(*traits) if traits and (head or step) else site


def run_while(node: ast.While, env: Env, ctx: Context) -> Exits:
    """Run ``while test``, whose test runs once more than the body."""
    place = ctx.within(LoopPlace(node, "while", None))

    def body(start: Env, inner: Context) -> Exits:
        expressions.truth(node.test, start, inner, "while")
        entered = narrow(node.test, start, inner, True)
        if entered is None:
            return Exits(None)
        return run_block(node.body, entered, sides(node.test, start, inner)[0])

    flow = _fixed_point(body, env, place)
    forever = isinstance(node.test, ast.Constant) and node.test.value is True
    return _finish(env, flow, node.orelse, ctx, runs_maybe_never=not forever)


def _fixed_point(body: Callable[[Env, Context], Exits], env: Env, place: Context) -> Exits:
    """Run a loop body until its entry state is stable; report the sites of the last pass."""
    entry = dict(env)
    flow = Exits(None)
    for turn in range(MAX_PASSES):
        sites = None if place.sink is None else list[Site]()
        waiting = None if place.pending is None else list[Pending]()
        inner = place.but(sink=sites, pending=waiting)
        flow = body(dict(entry), inner)
        again = merge((flow.env, *flow.continues))
        widened = entry if again is None else merge((entry, again)) or entry
        settled = holds_same(widened, entry)
        if settled or turn == MAX_PASSES - 1 or place.budget.steps <= 0:
            if place.sink is not None:
                place.sink.extend(sites or ())
            if place.pending is not None:
                place.pending.extend(waiting or ())
            break
        entry = widened
    return flow


def _finish(
    env: Env, flow: Exits, orelse: list[ast.stmt], ctx: Context, *, runs_maybe_never: bool
) -> Exits:
    done = merge((env if runs_maybe_never else None, flow.env, *flow.continues))
    if orelse and done is not None:
        after = run_block(orelse, done, ctx)
        return Exits(merge((after.env, *flow.breaks)), after.breaks, after.continues)
    return Exits(merge((done, *flow.breaks)))


def growth(target: ast.expr, value: ast.expr, env: Env, ctx: Context) -> None:
    """Record ``x = torch.cat([x, y])`` in a loop, which copies all collected data each time."""
    if not isinstance(value, ast.Call):
        return
    path = path_of(target)
    pieces = pieces_of(value)
    if path is None or not any(path_of(piece) == path for piece in pieces):
        return
    callee = evaluate(value.func, env, ctx.silent())
    if not isinstance(callee, External) or callee.name not in GROWING:
        return
    if not _carried(path, value, ctx.loops[-1].node) or _looked_at(path, value, ctx.loops[-1].node):
        return
    grown = evaluate(pieces[0], env, ctx.silent())
    operand = tensor_of(grown)
    name = callee.name.rpartition(".")[2]
    emit(ctx, SiteKind.GROWTH, name, value, operand, operand_node=target)


def _looked_at(path: str, grown: ast.Call, loop: ast.AST) -> bool:
    """True if a round uses all data that was collected so far, which has to be in one piece then.

    Reading its shape or testing it for None does not count, because a list shows that as well.
    """
    aside = {id(inner) for inner in ast.walk(grown)}
    for node in ast.walk(loop):
        match node:
            case ast.Attribute(value=inner, attr=name) if name in _DESCRIBING:
                aside.add(id(inner))
            case ast.Call(func=ast.Name(id="len"), args=[inner]) | ast.Return(value=inner):
                aside.add(id(inner))
            case ast.Compare(left=inner, ops=[ast.Is() | ast.IsNot()]):
                aside.add(id(inner))
    return any(
        path_of(node) == path and isinstance(node.ctx, ast.Load) and id(node) not in aside
        for node in ast.walk(loop)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
    )


def pieces_of(call: ast.Call) -> list[ast.expr]:
    """Return the ``a`` and ``b`` of ``cat([a, *b])``."""
    match index_loops.arguments_of(call):
        case [ast.List(elts=pieces) | ast.Tuple(elts=pieces), *_]:
            return [p.value if isinstance(p, ast.Starred) else p for p in pieces]
    return []


def _carried(path: str, grown: ast.Call, loop: ast.AST) -> bool:
    """True if the grown tensor reaches the next round, because nothing else is assigned to it.

    An assignment beside the growing one in the same ``if`` (the first round's) does not count.
    """
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return False
    if not isinstance(loop, ast.While) and path in assignment.names(loop.target):
        return False
    return not _reset(loop.body, path, grown)


def _reset(body: list[ast.stmt], path: str, grown: ast.Call) -> bool:
    """True if another assignment stands beside the growing one, in any block around it.

    The other branches of an ``if`` around it do not count.
    """
    for statement in body:
        inside = _assignments(statement)
        if any(value is grown for _, value in inside):
            blocks = [getattr(statement, name, []) for name in ("body", "orelse")]
            if any(_reset(b, path, grown) for b in blocks if _holds(b, grown)):
                return True
            continue
        if any(path in assignment.names(target) or path_of(target) == path for target, _ in inside):
            return True
    return False


def _holds(body: list[ast.stmt], grown: ast.Call) -> bool:
    return any(value is grown for statement in body for _, value in _assignments(statement))


def _assignments(node: ast.stmt) -> list[tuple[ast.expr, ast.expr | None]]:
    """Return the target and value of every assignment in a statement that may run each round."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    if isinstance(node, ast.AnnAssign):
        return [(node.target, node.value)]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    found: list[tuple[ast.expr, ast.expr | None]] = []
    if isinstance(node, (ast.For, ast.AsyncFor)):
        found.append((node.target, None))
    for block in ("body", "orelse"):
        for inner in getattr(node, block, ()):
            found.extend(_assignments(inner))
    return found


def in_place(node: ast.AugAssign, left: Value, ctx: Context) -> None:
    """Record ``p.grad *= c`` in a loop over parameters."""
    tensor = tensor_of(left)
    name = AUGMENTED.get(type(node.op), "")
    if tensor is None or not ctx.loops:
        return
    place = ctx.loops[-1]
    if tensor.role not in OF_MODULES and not goes_through_layers(place.value):
        return
    if place.kind != "for" or not changes_in(node.target, place.node):
        return
    if _collects(node.target, place.node):
        return
    if name in PER_PARAMETER and not offers_foreach(ctx):
        emit(ctx, SiteKind.PARAMETER_LOOP, name, node, tensor, operand_node=node.target)


def _collects(target: ast.expr, loop: ast.AST) -> bool:
    """True for a name that rounds of a loop add to, and that none of them binds."""
    if not isinstance(target, ast.Name):
        return False
    added = {id(one.target) for one in ast.walk(loop) if isinstance(one, ast.AugAssign)}
    names = (one for one in ast.walk(loop) if isinstance(one, ast.Name) and one.id == target.id)
    return not any(isinstance(one.ctx, ast.Store) and id(one) not in added for one in names)


def averaged(node: ast.Assign, value: Value, env: Env, ctx: Context) -> None:
    """Record ``e.data = d * e.data + (1 - d) * p.data`` in a loop over parameters."""
    place = ctx.loops[-1]
    if ctx.sink is None or place.kind != "for" or not isinstance(value, Tensor):
        return
    if not is_weighted_sum(node.value) or offers_foreach(ctx):
        return
    for factor in _factors(node.value):
        tensor = tensor_of(evaluate(factor, env, ctx.silent()))
        if tensor is not None and tensor.role in OF_MODULES and changes_in(factor, place.node):
            emit(ctx, SiteKind.PARAMETER_LOOP, "lerp_", node, tensor, operand_node=factor)
            return


def _factors(node: ast.expr) -> list[ast.expr]:
    """Return the names, attributes and items in a weighted sum."""
    if isinstance(node, ast.BinOp):
        return [*_factors(node.left), *_factors(node.right)]
    return [node] if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else []


def branch(ctx: Context, operation: str, node: ast.expr, value: Value) -> None:
    """Record the comparison of a tensor by ``match``."""
    emit_read(ctx, SiteKind.BRANCH, operation, node, value, operand_node=node)
