"""Loops over positions: the lengths that they run over, and the tensors that they index."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.engine.place import Site
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.syntax.bindings import bound_in, changes_in
from flake8_torchperf.syntax.traversal import plain_names, round_counters, walk
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.environments import Env, path_of
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context, LoopPlace

Looping: TypeAlias = ast.For | ast.AsyncFor | ast.comprehension


def index_of(loop: Looping, iterated: Value, env: Env, ctx: Context) -> tuple[str, str]:
    """Return the variable of a loop over positions, and the tensor whose length it runs over.

    ``for i in range(len(t))``, reversed or not, gives both, ``for i in range(n)`` the variable
    alone. Both are empty for other loops, and for loops over a constant range.
    """
    target, call = loop.target, loop.iter
    match call:
        case ast.Call(func=ast.Name(id="reversed"), args=[ast.Call() as inner]):
            call, iterated = inner, evaluate(inner, env, ctx.silent())
    if not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
        return "", ""
    if not isinstance(iterated, Sequence) or iterated.kind != "range":
        return "", ""
    given = arguments_of(call)
    for argument in given:
        value = evaluate(argument, env, ctx.silent())
        sized = sizes(argument, value, env, ctx)
        if isinstance(sized, Scalar) and sized.size_of:
            return target.id, sized.size_of
    counted = all(isinstance(argument, ast.Constant) for argument in given)
    return ("" if counted else target.id), ""


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call, by position or by keyword, without stars."""
    positional = (a.value if isinstance(a, ast.Starred) else a for a in call.args)
    return [*positional, *(keyword.value for keyword in call.keywords)]


def is_given(node: ast.AST, call: ast.expr) -> bool:
    """True if ``node`` is an argument of the call that a loop runs over."""
    given = arguments_of(call) if isinstance(call, ast.Call) else []
    return any(argument is node for argument in given)


def sizes(node: ast.expr, value: Value, env: Env, ctx: Context) -> Value:
    """Return ``value`` marked with the tensor whose length it is, if ``node`` reads a length."""
    measured = _measured(node)
    if measured is None:
        return value
    tensor = tensor_of(evaluate(measured, env, ctx.silent()))
    path = path_of(measured)
    if tensor is None or path is None:
        return value
    if isinstance(value, Scalar):
        return replace(value, size_of=path)
    if isinstance(value, Sequence) and isinstance(value.element, Scalar):
        return replace(value, element=replace(value.element, size_of=path))
    return value


def _measured(node: ast.expr) -> ast.expr | None:
    """Return the ``t`` of ``len(t)``, ``t.shape``, ``t.shape[0]``, ``t.size(0)``, ``t.numel()``."""
    if isinstance(node, ast.Call):
        match node.func:
            case ast.Name(id="len") if len(node.args) == 1:
                return node.args[0]
            case ast.Attribute(value=inner, attr="size" | "numel" | "nelement"):
                return inner
        return None
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None


# The trait of a site in a loop over positions that are not known to be a tensor's rows. Only the
# independent work of each round could run at once there.
COUNTED = "counted"
OPAQUE_BODY = "opaque-body"


def element_access(node: ast.Subscript, tensor: Tensor, ctx: Context) -> None:
    """Record ``t[i]`` inside ``for i in range(len(t))``: one dispatch and one view per element."""
    if not any(place.index for place in ctx.loops):
        return
    if tensor.device == "host" and ctx.demoted is not Cause.NO_DEVICE:
        return
    path = path_of(node.value)
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for depth, place in enumerate(ctx.loops):
        if not place.index or place.over is None:
            continue
        if not any(_mentions(index, place.index) for index in indices):
            continue
        if place.measures == path and _mentions(indices[0], place.index):
            _indexed("index-loop", place, depth, tensor, node.value, ctx)
        elif place.measures in ("", path) and not changes_in(node.value, place.node):
            _indexed("index-loop", place, depth, tensor, node.value, ctx, (COUNTED,))


def compared(sides: tuple[ast.expr, ast.expr], tensor: Tensor, ctx: Context) -> None:
    """Record ``target == c`` inside ``for c in range(classes)``: one comparison per class."""
    for depth, place in enumerate(ctx.loops):
        if place.index and place.over is not None and tensor.device != "host":
            for side, other in (sides, sides[::-1]):
                counter = isinstance(side, ast.Name) and side.id == place.index
                if counter and not changes_in(other, place.node):
                    _indexed("class-loop", place, depth, tensor, other, ctx, (COUNTED,))


def _indexed(
    operation: str,
    place: LoopPlace,
    depth: int,
    tensor: Tensor,
    node: ast.expr,
    ctx: Context,
    traits: tuple[str, ...] = (),
) -> None:
    """Record a loop over positions at its iterable, once for all tensors that it indexes."""
    outside = ctx.but(loops=ctx.loops[: depth + 1])
    assert place.over is not None
    emit(
        outside,
        SiteKind.ELEMENT_ACCESS,
        operation,
        place.over,
        tensor,
        operand_node=node,
        traits=traits,
    )


def _mentions(node: ast.expr, name: str) -> bool:
    if isinstance(node, ast.Tuple):
        return any(_mentions(e, name) for e in node.elts)
    return isinstance(node, ast.Name) and node.id == name


def varies(bound: ast.expr, value: Value, alone: bool, ctx: Context) -> bool:
    """True if a slice's length differs between the rounds of the loop around it.

    It differs for ``row[: lengths[i]]``, for ``row[:n]`` if ``n`` comes with the row, and for
    ``x[i:]``, which has one bound ``alone``. It does not differ for ``x[i : i + width]``.
    """
    if isinstance(bound, ast.Constant) or not ctx.loops:
        return False
    if tensor_of(value) is not None:
        return bool(ctx.loops[-1].index)  # if items are iterated, the read of the bound is reported
    if isinstance(value, Scalar) and value.read is not None:
        return True
    loop = ctx.loops[-1].node
    changing = plain_names(bound) & bound_in(loop)
    if not changing:
        return False
    counters = {place.index for place in ctx.loops if place.index} | round_counters(loop)
    if changing <= counters:
        return alone or any(isinstance(part, ast.Subscript) for part in ast.walk(bound))
    return not isinstance(value, Scalar) or _from_items(changing, counters, loop)


def _from_items(names: set[str], counters: set[str], loop: ast.AST) -> bool:
    """True if one of the names is an item of the round, as in ``n = lengths[i]``.

    So is a number made of one: ``for span in spans: n = int(span[1])``.
    """
    items = bound_in(loop.target) - counters if isinstance(loop, ast.For) else set()
    made = [
        node.value
        for node in walk([loop])
        if isinstance(node, ast.Assign) and not names.isdisjoint(bound_in(node.targets[0]))
    ]
    return any(not items.isdisjoint(plain_names(value)) for value in made) or any(
        isinstance(part, ast.Subscript) and not counters.isdisjoint(plain_names(part.slice))
        for part in walk(made)
    )


def indexes_lists(node: ast.AST, index: str, env: Env | None, ctx: Context) -> bool:
    """True if a loop over positions also takes tensors out of a list.

    The tensors in a list may differ in size, so no operation works on all of them at once.
    """
    if ctx.sink is None or env is None:
        return False
    for inner in ctx.module.nodes(node).of(ast.Subscript):
        if isinstance(inner.slice, ast.Name) and inner.slice.id == index:
            value = evaluate(inner.value, env, ctx.silent())
            if isinstance(value, Sequence) and tensor_of(value.element) is not None:
                return True
    return False


def with_body(site: Site, head: ast.expr, *, opaque: bool, apart: bool) -> Site:
    """Return the site of a loop's head, with the trait that the loop's body gives it.

    ``opaque`` says that the body makes opaque calls. ``apart`` says that the rounds are not parts
    of one operation: each continues from the one before, or their sizes depend on data.
    """
    iterated = site.kind is SiteKind.TENSOR_ITERATION and is_given(site.node, head)
    if not (iterated or (site.node is head and site.kind is SiteKind.ELEMENT_ACCESS)):
        return site
    if opaque or (apart and COUNTED in site.traits):
        return site.with_traits(OPAQUE_BODY)
    return site
