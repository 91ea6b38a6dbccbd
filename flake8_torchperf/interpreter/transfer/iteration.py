"""The values that iterating or unpacking yields, and the sites of iterating a tensor."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.events.element_loops import AT_ONCE
from flake8_torchperf.interpreter.events.recording import emit_read
from flake8_torchperf.interpreter.inference.parameters import parameters_of
from flake8_torchperf.interpreter.inference.usage_inference import evidence_of
from flake8_torchperf.syntax.names import is_name
from flake8_torchperf.syntax.traversal import inside, once
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    UNKNOWN,
    Mapping_,
    NoneValue,
    Sequence,
    Tensor,
    Union,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env


def _never_tested(value: Value) -> bool:
    """True if a declaration allows None, and no test has excluded it.

    The declaration is weak evidence if the value is unpacked: with ``cos, sin = rotary``, a
    ``rotary: Tensor | None = None`` is a pair.
    """
    return (
        isinstance(value, Union)
        and not value.met
        and any(isinstance(option, NoneValue) for option in value.options)
    )


def _left_out(value: Value, ctx: Context) -> bool:
    """True for an unchanged parameter that is declared a tensor and is None by default.

    The declaration is weak evidence too, whether or not the code tests the value for None.
    """
    if not isinstance(value, Tensor) or value.chain or value.role or ctx.node is None:
        return False
    return any(
        isinstance(default, ast.Constant) and default.value is None
        for parameter, default in parameters_of(ctx.node.args)
        if value.reason.node is parameter and parameter.annotation is not None
    )


def _only_declared(value: Value, ctx: Context) -> bool:
    """True for a parameter declared a tensor that is only unpacked.

    ``def forward(self, x: Tensor, rotary: Tensor)`` with ``cos, sin = rotary`` takes a pair.
    """
    if not isinstance(value, Tensor) or value.chain or ctx.node is None:
        return False
    node = value.reason.node
    if not isinstance(node, ast.arg) or value.reason.source is not Source.PARAMETER_ANNOTATION:
        return False
    use = evidence_of(ctx.node, ctx.module, ctx.analysis).uses.get(node.arg)
    return use is None or not (use.told or use.hints or use.method)


def unpack_reads(
    value: Value,
    operation: str,
    node: ast.expr,
    ctx: Context,
    traits: tuple[str, ...] = (),
) -> None:
    """Record that a tensor is iterated by Python."""
    kind = SiteKind.TENSOR_ITERATION
    declared = _never_tested(value) or _left_out(value, ctx) or _only_declared(value, ctx)
    if operation in AT_ONCE and declared:
        return
    if operation == "unpack" or (operation == "list" and not ctx.loops and not _row_of(value)):
        # torch/_tensor.py, `__iter__`: one `unbind`, whatever the number of names.
        ctx = ctx.demote(Cause.AT_ONCE)
    if operation == "tuple" and _as_index(node, ctx):
        ctx = ctx.demote(Cause.AT_ONCE)
    emit_read(ctx, kind, operation, node, value, operand_node=node, traits=traits)


# The trait of a tensor that is iterated together with a list.
BESIDE_LIST = "beside-list"


@once
def added_up(function: ast.AST) -> frozenset[int]:
    """Return the calls of zip, by identity, whose rounds only make values to add or stack."""
    found: set[int] = set()
    for inner in (*inside(function, ast.Call), *inside(function, ast.For)):
        match inner:
            case ast.Call(
                func=ast.Name(id="sum") | ast.Attribute(attr="stack"),
                args=[
                    ast.GeneratorExp(
                        elt=elt, generators=[ast.comprehension(iter=ast.Call() as rows, ifs=[])]
                    )
                    | ast.ListComp(
                        elt=elt, generators=[ast.comprehension(iter=ast.Call() as rows, ifs=[])]
                    ),
                    *_,
                ],
            ):
                if _is_arithmetic(elt):
                    found.add(id(rows))
            case ast.For(iter=ast.Call() as rows, body=body):
                if all(map(_adds, body)):
                    found.add(id(rows))
    return frozenset(found)


@once
def unpacked_calls(function: ast.AST) -> frozenset[int]:
    """Return the calls, by identity, whose result is unpacked into names: ``a, b = map(f, t)``."""
    return frozenset(
        id(statement.value)
        for statement in inside(function, ast.Assign)
        if isinstance(statement.value, ast.Call)
        and any(isinstance(target, (ast.Tuple, ast.List)) for target in statement.targets)
    )


def yields_keys(target: ast.expr, source: ast.expr, loop: ast.AST, ctx: Context) -> bool:
    """True for a dict: what iterating it yields is its own key, as in ``d[k] for k in d``."""
    if not isinstance(target, ast.Name):
        return False
    path = path_of(source)
    return path is not None and any(
        is_name(item.slice, target.id) and path_of(item.value) == path
        for item in ctx.module.nodes(loop).of(ast.Subscript)
    )


def _adds(statement: ast.stmt) -> bool:
    """True for ``total += a * b`` and ``total = total + a * b``."""
    match statement:
        case ast.AugAssign(target=ast.Name(), op=ast.Add(), value=value):
            return _is_arithmetic(value)
        case ast.Assign(
            targets=[ast.Name(id=total)],
            value=ast.BinOp(left=ast.Name(id=before), op=ast.Add(), right=value),
        ):
            return total == before and _is_arithmetic(value)
    return False


def _is_arithmetic(node: ast.expr) -> bool:
    """True if the value is computed by operators alone, from at least two operands."""
    if not isinstance(node, ast.BinOp):
        return False
    return all(
        isinstance(side, (ast.Name, ast.Attribute, ast.Constant)) or _is_arithmetic(side)
        for side in (node.left, node.right)
    )


def _row_of(value: Value) -> bool:
    """True for a tensor of one dimension, whose list holds one tensor for each number."""
    return isinstance(value, Tensor) and value.rank == 1


def _as_index(node: ast.expr, ctx: Context) -> bool:
    """True for ``tuple(indices)`` in an index: one item for each dimension, which are few."""
    return ctx.node is not None and id(node) in _in_index_tuples(ctx.node)


@once
def _in_index_tuples(function: ast.AST) -> frozenset[int]:
    """Return the calls that are indices themselves, and their arguments, by identity."""
    found: set[int] = set()
    for inner in (*inside(function, ast.Subscript), *inside(function, ast.Call)):
        match inner:
            case (
                ast.Subscript(slice=ast.Call(args=[given]) as call)
                | ast.Call(
                    func=ast.Attribute(attr="index_put" | "index_put_"),
                    args=[ast.Call(args=[given]) as call, *_],
                )
            ):
                found.update((id(call), id(given)))
    return frozenset(found)


# The methods of a tensor that return it elsewhere.
_MOVING = frozenset(("cpu", "cuda", "to"))
# Tests of items that let all tensors through.
_FOR_TENSORS = frozenset(("isinstance", "is_tensor", "hasattr"))


def move_items(node: ast.For | ast.AsyncFor, within: Env, after: Env, ctx: Context) -> None:
    """Put what a loop stores for each item of a container into it, in the environment ``after``.

    ``for k in x: x[k] = x[k].cpu()`` is such a loop. If it has no rounds, there are no items.
    ``within`` is the environment at the end of a round.
    """
    for name, call in _moves(node):
        moved = evaluate(call, within, ctx.silent())
        held = after.get(name, UNKNOWN)
        if isinstance(moved, Tensor):
            changed = _holding(held, moved, is_list=isinstance(node.iter, ast.Call))
            after[name] = held if changed is None else changed


def _holding(held: Value, moved: Tensor, *, is_list: bool) -> Value | None:
    match held:
        case Mapping_(items=items):
            return replace(held, element=moved, items=tuple((key, moved) for key, _ in items))
        case Sequence():
            return Sequence("list", moved)
        case _ if held is UNKNOWN:
            return Sequence("list", moved) if is_list else Mapping_(UNKNOWN, moved)
    return None


def _moves(node: ast.For | ast.AsyncFor) -> Iterator[tuple[str, ast.Call]]:
    """Yield the names of containers whose items a loop over all of them moves, with the calls."""
    key, item = _targets(node.target)
    for one in _plain(node.body):
        match one:
            case ast.Assign(
                targets=[
                    ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=index)) as target
                ],
                value=ast.Call(func=ast.Attribute(value=moved, attr=method)) as call,
            ):
                if index != key or method not in _MOVING or not _is_over(node.iter, name):
                    continue
                if is_name(moved, item) or ast.unparse(moved) == ast.unparse(target):
                    yield name, call


def _targets(target: ast.expr) -> tuple[str, str]:
    """Return the names of a loop for a key and for its item; "" for none."""
    match target:
        case ast.Name(id=key):
            return key, ""
        case ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=item)]):
            return key, item
    return "", ""


def _plain(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, with those that all of its tensors reach."""
    for one in body:
        match one:
            case ast.If(test=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
                yield from one.body if name in _FOR_TENSORS else ()
            case _:
                yield one


def _is_over(iterated: ast.expr, name: str) -> bool:
    """True if a loop goes over all keys, indices or items of a container."""
    match iterated:
        case ast.Name(id=found):
            return found == name
        case ast.Call(func=ast.Name(id="range" | "len" | "list" | "enumerate"), args=[inner]):
            return _is_over(inner, name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr="keys" | "items"), args=[]):
            return found == name
    return False
