"""Loops: their bodies to a fixed point, and the sites that only a loop makes.

Enters a for or while statement; leaves the flow after it. Must not know rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from flake8_torchperf.interpret import expressions, statements, targets, torch_calls
from flake8_torchperf.interpret.emit import emit, emit_read
from flake8_torchperf.interpret.environment import Env, merge, path_of
from flake8_torchperf.interpret.iteration import element_of, unpack_reads
from flake8_torchperf.interpret.machine import LoopPlace, Pending
from flake8_torchperf.interpret.narrowing import narrow
from flake8_torchperf.interpret.values import (
    External,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)
from flake8_torchperf.sites.model import Site, SiteKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpret.machine import Context
    from flake8_torchperf.interpret.statements import Flow

# Passes over a loop body before what still changes is taken as it is.
MAX_PASSES = 3
GROWING = {"torch.cat", "torch.concat", "torch.concatenate", "torch.stack", "torch.hstack",
           "torch.vstack", "torch.dstack", "torch.column_stack", "torch.row_stack"}  # fmt: skip
AUGMENTED = {"AddAssign": "add_", "SubtractAssign": "sub_", "MultiplyAssign": "mul_",
             "DivideAssign": "div_", "PowerAssign": "pow_"}  # fmt: skip


def run_for(node: cst.For, env: Env, ctx: Context) -> Flow:
    """``for target in iter``."""
    ahead: list[Site] = []
    quiet = ctx.sink is None
    iterated = expressions.evaluate(node.iter, env, ctx if quiet else replace(ctx, sink=ahead))
    index, measured = _index_loop(node, iterated, env, ctx)
    place = ctx.within(LoopPlace(node, "for", node.iter, iterated, index, measured))

    def body(start: Env, inner: Context) -> Flow:
        targets.assign(node.target, element_of(iterated), start, inner)
        return statements.block(node.body, start, inner)

    before = ctx.budget.opaque_calls
    seen: list[Site] = []
    flow = _fixed_point(body, env, place if quiet else replace(place, sink=seen))
    traits = ("opaque-body",) if ctx.budget.opaque_calls > before else ()
    unpack_reads(iterated, "for", node.iter, ctx, traits)
    if ctx.sink is not None:
        ctx.sink.extend(_with_traits(site, node, traits) for site in (*ahead, *seen))
    return _finish(env, flow, node.orelse, ctx, runs_maybe_never=True)


def _with_traits(site: Site, node: cst.For, traits: tuple[str, ...]) -> Site:
    """What ``enumerate(t)`` and ``range(len(t))`` say of the loop they stand in."""
    own = site.node is node.iter and site.kind is SiteKind.ELEMENT_ACCESS
    head = site.kind is SiteKind.TENSOR_ITERATION and _inside(site.node, node.iter)
    if own or head:
        return replace(site, traits=site.traits.union(traits))
    return site


def _inside(node: cst.CSTNode, call: cst.BaseExpression) -> bool:
    """Is ``node`` an argument of the call that a loop runs over?"""
    return isinstance(call, cst.Call) and any(argument.value is node for argument in call.args)


def run_while(node: cst.While, env: Env, ctx: Context) -> Flow:
    """``while test``: the test runs once more than the body."""
    place = ctx.within(LoopPlace(node, "while", None))

    def body(start: Env, inner: Context) -> Flow:
        expressions.truth(node.test, start, inner, "while")
        entered = narrow(node.test, start, inner, True)
        if entered is None:
            return statements.Flow(None)
        return statements.block(node.body, entered, inner)

    flow = _fixed_point(body, env, place)
    forever = isinstance(node.test, cst.Name) and node.test.value == "True"
    return _finish(env, flow, node.orelse, ctx, runs_maybe_never=not forever)


def _fixed_point(body: Callable[[Env, Context], Flow], env: Env, place: Context) -> Flow:
    """Run a loop body until what enters it no longer changes; report the sites of that pass."""
    entry = dict(env)
    flow = statements.Flow(None)
    for turn in range(MAX_PASSES):
        sites = None if place.sink is None else list[Site]()
        waiting = None if place.pending is None else list[Pending]()
        inner = replace(place, sink=sites, pending=waiting)
        flow = body(dict(entry), inner)
        again = merge((flow.env, *flow.continues))
        widened = entry if again is None else merge((entry, again)) or entry
        settled = all(widened.get(key) == value for key, value in entry.items())
        if settled or turn == MAX_PASSES - 1 or place.budget.steps <= 0:
            if place.sink is not None:
                place.sink.extend(sites or ())
            if place.pending is not None:
                place.pending.extend(waiting or ())
            break
        entry = widened
    return flow


def _finish(
    env: Env, flow: Flow, orelse: cst.Else | None, ctx: Context, *, runs_maybe_never: bool
) -> Flow:
    done = merge((env if runs_maybe_never else None, flow.env, *flow.continues))
    if orelse is not None and done is not None:
        after = statements.block(orelse.body, done, ctx)
        return statements.Flow(merge((after.env, *flow.breaks)), after.breaks, after.continues)
    return statements.Flow(merge((done, *flow.breaks)))


def _index_loop(node: cst.For, iterated: Value, env: Env, ctx: Context) -> tuple[str, str]:
    """The loop variable and the tensor of ``for i in range(len(t))``; empty for other loops."""
    target = node.target
    if not isinstance(target, cst.Name) or not isinstance(node.iter, cst.Call):
        return "", ""
    if not isinstance(iterated, Sequence) or iterated.kind != "range":
        return "", ""
    for argument in node.iter.args:
        value = expressions.evaluate(argument.value, env, ctx.silent())
        sized = sizes(argument.value, value, env, ctx)
        if isinstance(sized, Scalar) and sized.size_of:
            return target.value, sized.size_of
    return "", ""


def sizes(node: cst.BaseExpression, value: Value, env: Env, ctx: Context) -> Value:
    """``value`` marked with the tensor whose length it is, where ``node`` asks a tensor for one."""
    measured = _measured(node)
    if measured is None:
        return value
    tensor = tensor_of(expressions.evaluate(measured, env, ctx.silent()))
    path = path_of(measured)
    if tensor is None or path is None:
        return value
    if isinstance(value, Scalar):
        return replace(value, size_of=path)
    if isinstance(value, Sequence) and isinstance(value.element, Scalar):
        return replace(value, element=replace(value.element, size_of=path))
    return value


def _measured(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The ``t`` of ``len(t)``, ``t.shape``, ``t.shape[0]``, ``t.size(0)``, ``t.numel()``."""
    match node:
        case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=inner)]):
            return inner
        case cst.Call(
            func=cst.Attribute(value=inner, attr=cst.Name(value="size" | "numel" | "nelement"))
        ):
            return inner
        case cst.Subscript(value=cst.Attribute(value=inner, attr=cst.Name(value="shape"))):
            return inner
        case cst.Attribute(value=inner, attr=cst.Name(value="shape")):
            return inner
    return None


def element_access(node: cst.Subscript, tensor: Tensor, ctx: Context) -> None:
    """``t[i]`` inside ``for i in range(len(t))``: one dispatch, and one view, per element."""
    path = path_of(node.value)
    for place in ctx.loops:
        if not place.index or place.measures != path or place.over is None:
            continue
        first = node.slice[0].slice
        if isinstance(first, cst.Index) and _mentions(first.value, place.index):
            outside = replace(ctx, loops=ctx.loops[: ctx.loops.index(place) + 1])
            emit(
                outside,
                SiteKind.ELEMENT_ACCESS,
                "index-loop",
                place.over,
                tensor,
                operand_node=node.value,
            )


def _mentions(node: cst.BaseExpression, name: str) -> bool:
    if isinstance(node, cst.Tuple):
        return any(_mentions(e.value, name) for e in node.elements)
    return isinstance(node, cst.Name) and node.value == name


def growth(target: cst.BaseExpression, value: cst.BaseExpression, env: Env, ctx: Context) -> None:
    """``x = torch.cat([x, y])`` in a loop: everything gathered so far is copied each time."""
    if not ctx.loops or not isinstance(value, cst.Call) or not value.args:
        return
    path = path_of(target)
    pieces = value.args[0].value
    if path is None or not isinstance(pieces, (cst.List, cst.Tuple)):
        return
    if not any(path_of(e.value) == path for e in pieces.elements):
        return
    callee = expressions.evaluate(value.func, env, ctx.silent())
    if not isinstance(callee, External) or callee.name not in GROWING:
        return
    if not _carried(path, value, ctx.loops[-1].node):
        return
    grown = expressions.evaluate(pieces.elements[0].value, env, ctx.silent())
    operand = tensor_of(grown)
    name = callee.name.rpartition(".")[2]
    emit(ctx, SiteKind.GROWTH, name, value, operand, operand_node=target)


def _carried(path: str, grown: cst.Call, loop: cst.CSTNode) -> bool:
    """Does what was grown reach the next round: is nothing else assigned to it each round?

    An assignment beside the growing one in the same ``if`` (the first round's) does not count.
    """
    if not isinstance(loop, (cst.For, cst.While)):
        return False
    if isinstance(loop, cst.For) and path in targets.names(loop.target):
        return False
    for statement in loop.body.body:
        inside = _assignments(statement)
        if any(value is grown for _, value in inside):
            continue
        if any(path in targets.names(target) or path_of(target) == path for target, _ in inside):
            return False
    return True


def _assignments(
    node: cst.CSTNode,
) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Every assignment inside a statement: its target and value."""
    match node:
        case cst.Assign(targets=several, value=value):
            return [(target.target, value) for target in several]
        case cst.AnnAssign(target=target, value=value):
            return [(target, value)]
        case cst.For(target=target):
            found: list[tuple[cst.BaseExpression, cst.BaseExpression | None]] = [(target, None)]
        case cst.Expr() | cst.FunctionDef() | cst.Return():
            return []
        case _:
            found = []
    for child in node.children:
        if isinstance(child, (cst.BaseStatement, cst.BaseSmallStatement, cst.BaseSuite, cst.Else)):
            found.extend(_assignments(child))
    return found


def in_place(node: cst.AugAssign, left: Value, ctx: Context) -> None:
    """``p.grad *= c`` in a loop over parameters."""
    tensor = tensor_of(left)
    name = AUGMENTED.get(type(node.operator).__name__, "")
    if tensor is None or tensor.role not in ("parameter", "gradient") or not ctx.loops:
        return
    if name in torch_calls.PER_PARAMETER and ctx.loops[-1].kind == "for":
        emit(ctx, SiteKind.PARAMETER_LOOP, name, node, tensor, operand_node=node.target)


def branch(ctx: Context, operation: str, node: cst.BaseExpression, value: Value) -> None:
    """A tensor compared by ``match``."""
    emit_read(ctx, SiteKind.BRANCH, operation, node, value, operand_node=node)
