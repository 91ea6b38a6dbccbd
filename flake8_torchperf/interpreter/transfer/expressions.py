"""Expressions to values.

One plain recursive function per kind of node.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from flake8_torchperf.idioms.row_storage import formatted_displays
from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.engine.place import Frame
from flake8_torchperf.interpreter.events import graph_breaks
from flake8_torchperf.interpreter.events.guards import (
    branch_context,
    guard_of,
    outcome_here,
    sides,
)
from flake8_torchperf.interpreter.events.recording import emit_read, note_work
from flake8_torchperf.interpreter.inference.parameters import parameters_of
from flake8_torchperf.interpreter.transfer.iteration import unpack_reads
from flake8_torchperf.interpreter.transfer.narrowing import narrow
from flake8_torchperf.interpreter.transfer.operators import binary, formatted
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.combining import may_be_number, truthy
from flake8_torchperf.values.devices import BESIDE_HOST, OPEN
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.environments import Env, bind, path_of
from flake8_torchperf.values.named_types import TENSOR_CLASSES
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BOOL,
    COMPARED,
    NONE,
    NUMBER,
    STR,
    UNKNOWN,
    ClassValue,
    Closure,
    External,
    Function,
    Imported,
    Mapping_,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
    join,
    join_all,
    literal,
    tensor_of,
    weaken,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Context


def truth(node: ast.expr, env: Env, ctx: Context, operation: str) -> None:
    """Evaluate an expression as a test: Python reads the truth value of each tensor in it."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        truth(node.operand, env, ctx, operation)
    elif isinstance(node, ast.BoolOp):
        _truths(node, env, ctx, operation)
    elif ctx.sink is None and _changes_nothing(node):
        return
    else:
        value = evaluate(node, env, ctx)
        emit_read(ctx, SiteKind.BRANCH, operation, node, value, operand_node=node)


def _changes_nothing(node: ast.expr) -> bool:
    """True if evaluating the expression changes nothing; a call may change its arguments."""
    if isinstance(node, ast.Attribute):
        return _changes_nothing(node.value)
    if isinstance(node, ast.Compare):
        return _changes_nothing(node.left) and all(map(_changes_nothing, node.comparators))
    return isinstance(node, (ast.Name, ast.Constant))


def _truths(node: ast.BoolOp, env: Env, ctx: Context, operation: str) -> None:
    """Evaluate ``a and b`` as tests: each runs if those before it held (failed, for ``or``)."""
    truth(node.values[0], env, ctx, operation)
    inner = env
    conjunction = isinstance(node.op, ast.And)
    for before, value in pairwise(node.values):
        after = narrow(before, inner, ctx, conjunction)
        if after is None:
            return
        ctx = sides(before, inner, ctx)[0 if conjunction else 1]
        guard = guard_of(before, inner, ctx)
        ctx = branch_context(ctx, guard, None, holds=conjunction)
        truth(value, after, ctx, operation)
        _keep_walrus(after, env)
        inner = after


def _keep_walrus(inner: Env, env: Env) -> None:
    for key, value in inner.items():
        if key not in env:
            env[key] = value


def name(node: ast.Name, env: Env, ctx: Context) -> Value:
    """Return the value of a name: local, then enclosing, then the module's, then Python's own."""
    own = node.id
    found = env.get(own) or CONSTANT_VALUES.get(own)
    if isinstance(found, Imported):
        return ctx.analysis.external(found.name)
    if found is None:
        return ctx.analysis.lookup(ctx.module, own)
    if type(found) is Tensor and found.device in OPEN and _says_host(own, ctx):
        return replace(found, device=BESIDE_HOST)
    return found


def _says_host(name: str, ctx: Context) -> bool:
    """True if the name shows that the value lies on the host, as ``lengths_cpu`` does."""
    return ctx.analysis.conventions.says("variable", name, "on-host")


def _constant(node: ast.Constant, env: Env, ctx: Context) -> Value:
    value = node.value
    kind = LITERALS.get(type(value))
    return literal(kind, value) if kind is not None else OTHER_LITERALS.get(type(value), UNKNOWN)


def _formatted(node: ast.JoinedStr, env: Env, ctx: Context) -> Value:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            inside = part.value
            parts = _branches(inside, env, ctx) if isinstance(inside, ast.IfExp) else None
            for value in parts or [evaluate(inside, env, ctx)]:
                formatted(value, "f-string", inside, ctx)
            spec = part.format_spec
            for inner in spec.values if isinstance(spec, ast.JoinedStr) else ():
                if isinstance(inner, ast.FormattedValue):
                    evaluate(inner.value, env, ctx)
    return STR


def _display(node: ast.Tuple | ast.List | ast.Set, env: Env, ctx: Context) -> Value:
    items: list[Value] = []
    exact, of_tensors = True, False
    for element in node.elts:
        if isinstance(element, ast.Starred):
            exact = False
            value = evaluate(element.value, env, ctx)
            read = ctx.node is None or id(node) in formatted_displays(ctx.node)
            place = ctx if read else ctx.demote(Cause.AT_ONCE)
            unpack_reads(value, "star", element.value, place)
            items.append(element_of(value))
            of_tensors = of_tensors or tensor_of(items[-1]) is not None
        else:
            items.append(evaluate(element, env, ctx))
    found = join_all(items)
    if of_tensors and isinstance(found, Union):
        # `(*t.unbind(), n > 1)`: the places of the items show which of them are tensors.
        found = replace(found, met=False)
    return Sequence(DISPLAY_KINDS[type(node)], found, tuple(items) if exact else None)


def _dict(node: ast.Dict, env: Env, ctx: Context) -> Value:
    keys: list[Value] = []
    values: list[Value] = []
    items: dict[str, Value] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        value = evaluate(value_node, env, ctx)
        if key_node is None:
            if isinstance(value, Mapping_):
                items.update(value.items)
                values.append(value.element)
                keys.append(value.key)
            else:
                values.append(UNKNOWN)
            continue
        key = evaluate(key_node, env, ctx)
        keys.append(key)
        values.append(value)
        if isinstance(key, Scalar) and isinstance(key.value, str):
            items[key.value] = value
    named = len(items) == len(node.keys)
    other = UNKNOWN if named else join_all(values)
    return Mapping_(join_all(keys), other, tuple(items.items()), made=named)


def _conditional(node: ast.IfExp, env: Env, ctx: Context) -> Value:
    return join_all(_branches(node, env, ctx))


def _branches(node: ast.IfExp, env: Env, ctx: Context) -> list[Value]:
    """Return the values that ``a if test else b`` may have."""
    truth(node.test, env, ctx, "ifexp")
    guard = guard_of(node.test, env, ctx)
    taken = outcome_here(node.test, guard, env, ctx)
    found: list[Value] = []
    yes, no = sides(node.test, env, ctx)
    for branch, place, holds in ((node.body, yes, True), (node.orelse, no, False)):
        after = narrow(node.test, env, ctx, holds)
        if after is None:
            continue
        value = evaluate(branch, after, branch_context(place, guard, None, holds=holds))
        if taken is None or taken is holds:
            found.append(value)
    return found


def _boolean(node: ast.BoolOp, env: Env, ctx: Context) -> Value:
    """Return the value of ``a and b``, one of its values; all but the last are tested."""
    operation = "and" if isinstance(node.op, ast.And) else "or"
    inner = env
    before = node.values[0]
    value = result = evaluate(before, env, ctx)
    for value_node in node.values[1:]:
        after = narrow(before, inner, ctx, operation == "and")
        other = value
        if after is not None and ctx.sink is not None and isinstance(value, Tensor):
            other = evaluate(value_node, dict(after), ctx.silent())
        emit_read(
            ctx,
            SiteKind.BRANCH,
            operation,
            before,
            value,
            operand_node=before,
            traits=_truth_of(value, other),
        )
        if after is None or (operation == "or" and _always_true(value)):
            break
        holds = outcome_here(before, guard_of(before, inner, ctx), inner, ctx)
        ctx = sides(before, inner, ctx)[0 if operation == "and" else 1]
        value = evaluate(value_node, after, ctx)
        if holds is None:
            result = _either(operation, result, value)
        elif holds is (operation == "and"):
            result = value  # the test of the run mode leaves the value to what follows it
        else:
            return result
        before, inner = value_node, after
    return result


# The traits of values for which `&`, `|` and `~` are logical, and of values for which they are not.
OF_BOOLS = "of-bools"
OF_NUMBERS = "of-numbers"


def _truth_of(*values: Value) -> tuple[str, ...]:
    """Return the trait that shows if ``&``, ``|`` and ``~`` suit these values; () if unknown."""
    kinds = set(map(_kind, values))
    if kinds == {"bool"}:
        return (OF_BOOLS,)
    return () if kinds.isdisjoint(("int", "float", "complex", "number")) else (OF_NUMBERS,)


def _kind(value: Value) -> str:
    if isinstance(value, Tensor):
        counted = (
            value.dtype == "unknown" and bool(value.chain) and value.chain[-1] in NUMERIC_OPERATIONS
        )
        return "number" if counted else value.dtype
    return value.kind if isinstance(value, Scalar) else "unknown"


# Operations that never give bools.
NUMERIC_OPERATIONS = frozenset((
    "sum", "mean", "prod", "norm", "std", "var", "argmax", "argmin", "abs", "count_nonzero",
))  # fmt: skip


def _always_true(value: Value) -> bool:
    """True for classes and functions."""
    if isinstance(value, External):
        return value.name in CLASSES
    return isinstance(value, (ClassValue, Function, Closure))


def _either(operation: str, left: Value, right: Value) -> Value:
    if operation == "or" and left is NONE:
        return right
    joined = join(truthy(left) if operation == "or" else left, right)
    if isinstance(joined, Union) and isinstance(left, Scalar) and left.kind == "bool":
        return replace(joined, met=False)  # the bool often decides alone
    return joined


def _walrus(node: ast.NamedExpr, env: Env, ctx: Context) -> Value:
    value = evaluate(node.value, env, ctx)
    path = path_of(node.target)
    if path is not None:
        bind(env, path, value)
    return value


def _lambda(node: ast.Lambda, env: Env, ctx: Context) -> Value:
    # The body reads captured values wherever it is called. Its unknown parameters are not reported.
    inside = dict(env)
    for parameter, default in parameters_of(node.args):
        inside[parameter.arg] = UNKNOWN if default is None else evaluate(default, env, ctx.silent())
    if ctx.sink is not None:
        place = ctx.but(frame=Frame(outer=ctx.frame))
        evaluate(node.body, inside, graph_breaks.entered(place, node))
    return Closure(node, id(node), env, ctx.module)


def _await(node: ast.Await, env: Env, ctx: Context) -> Value:
    return evaluate(node.value, env, ctx)


def _yield(node: ast.Yield, env: Env, ctx: Context) -> Value:
    return _yielded(evaluate(node.value, env, ctx) if node.value is not None else NONE, ctx)


def _yield_from(node: ast.YieldFrom, env: Env, ctx: Context) -> Value:
    source = evaluate(node.value, env, ctx)
    unpack_reads(source, "for", node.value, ctx)
    return _yielded(element_of(source), ctx)


def _yielded(value: Value, ctx: Context) -> Value:
    if ctx.returns is not None:
        ctx.returns.append(Sequence("iterator", value))
    return UNKNOWN


def _binary(node: ast.BinOp, env: Env, ctx: Context) -> Value:
    left = evaluate(node.left, env, ctx)
    right = evaluate(node.right, env, ctx)
    return binary(node.op, left, right, node, ctx)


def _unary(node: ast.UnaryOp, env: Env, ctx: Context) -> Value:
    value = evaluate(node.operand, env, ctx)
    if isinstance(node.op, ast.Not):
        asked = node.operand
        traits = _truth_of(value)
        emit_read(ctx, SiteKind.BRANCH, "not", asked, value, operand_node=asked, traits=traits)
        return BOOL
    tensor = tensor_of(value)
    if tensor is not None:
        if may_be_number(value):
            return value
        note_work(tensor, node, ctx)
        if isinstance(node.op, ast.Invert) and tensor.dtype == "unknown":
            # The inverse of integers is rare, so the tensor is taken to be boolean.
            return replace(weaken(tensor), dtype="bool", role="inverted")
        return replace(tensor, role="")
    if value is COMPARED:
        return COMPARED if isinstance(node.op, ast.Invert) else NUMBER
    match value, node.op:
        case Scalar(kind=kind, value=(int() | float()) as number), ast.USub():
            return literal(kind, -number)
    return value


# Classes of torch, numpy and Python that code tests by name.
CLASSES = {*TENSOR_CLASSES, "numpy.ndarray", "builtins.list", "builtins.tuple", "builtins.dict"}

DISPLAY_KINDS = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
LITERALS: dict[type[Any], str] = {str: "str", int: "int", float: "float", bool: "bool"}
OTHER_LITERALS: dict[type[Any], Value] = {
    type(None): NONE,
    bytes: Scalar("bytes"),
    complex: Scalar("complex"),
}
CONSTANT_VALUES: dict[str, Value] = {
    "NotImplemented": UNKNOWN,
    "__debug__": BOOL,
    "Ellipsis": External("builtins.Ellipsis"),
}


EXPRESSION_HANDLERS: dict[type[ast.AST], Callable[[Any, Env, Context], Value]] = {
    ast.Name: name,
    ast.Constant: _constant,
    ast.JoinedStr: _formatted,
    ast.Tuple: _display,
    ast.List: _display,
    ast.Set: _display,
    ast.Dict: _dict,
    ast.IfExp: _conditional,
    ast.BoolOp: _boolean,
    ast.NamedExpr: _walrus,
    ast.Lambda: _lambda,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
}
