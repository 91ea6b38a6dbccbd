"""Expressions to values.

Enters a libcst expression, an environment and a context; leaves its value, and sites in the
context's sink. One plain recursive function per kind of node. Must not know rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.interpret import attributes, calls, comprehensions, operators, subscripts
from flake8_torchperf.interpret.contexts import LATER
from flake8_torchperf.interpret.emit import emit_read
from flake8_torchperf.interpret.environment import Env, bind, path_of
from flake8_torchperf.interpret.iteration import element_of, unpack_reads
from flake8_torchperf.interpret.narrowing import narrow
from flake8_torchperf.interpret.values import (
    BOOL,
    NONE,
    STR,
    UNKNOWN,
    Closure,
    External,
    Imported,
    Mapping_,
    Scalar,
    Sequence,
    Value,
    join,
    join_all,
    literal,
    tensor_of,
)
from flake8_torchperf.parse.snippet import literal_of
from flake8_torchperf.sites.model import SiteKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpret.machine import Context


def evaluate(node: cst.BaseExpression, env: Env, ctx: Context) -> Value:
    """The value of an expression. Unknown for what is not understood or costs too much."""
    handler = HANDLERS.get(type(node))
    if handler is None:
        return UNKNOWN
    budget = ctx.budget
    try:
        return handler(node, env, ctx) if budget.enter() else UNKNOWN
    finally:
        budget.leave()


def truth(node: cst.BaseExpression, env: Env, ctx: Context, operation: str) -> None:
    """Evaluate an expression as a test: Python asks each tensor in it for its truth value."""
    match node:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            truth(inner, env, ctx, operation)
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            truth(left, env, ctx, operation)
            after = narrow(left, env, ctx, isinstance(operator, cst.And))
            if after is not None:
                truth(right, after, ctx, operation)
                _keep_walrus(after, env)
        case _:
            value = evaluate(node, env, ctx)
            emit_read(ctx, SiteKind.BRANCH, operation, node, value, operand_node=node)


def _keep_walrus(inner: Env, env: Env) -> None:
    for key, value in inner.items():
        if key not in env:
            env[key] = value


def name(node: cst.Name, env: Env, ctx: Context) -> Value:
    """A name: local, then enclosing, then the module's, then Python's own."""
    found = env.get(node.value) or CONSTANTS.get(node.value)
    if isinstance(found, Imported):
        return ctx.machine.external(found.name)
    if found is not None:
        return found
    return ctx.machine.lookup(ctx.module, node.value)


def _string(node: cst.SimpleString, env: Env, ctx: Context) -> Value:
    value = literal_of(node.value)
    return literal("str", value) if isinstance(value, str) else Scalar("bytes")


def _concatenated(node: cst.ConcatenatedString, env: Env, ctx: Context) -> Value:
    evaluate(node.left, env, ctx)
    evaluate(node.right, env, ctx)
    return STR


def _formatted(node: cst.FormattedString, env: Env, ctx: Context) -> Value:
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            value = evaluate(part.expression, env, ctx)
            operators.formatted(value, "f-string", part.expression, ctx)
            for inner in part.format_spec or ():
                if isinstance(inner, cst.FormattedStringExpression):
                    evaluate(inner.expression, env, ctx)
    return STR


def _integer(node: cst.Integer, env: Env, ctx: Context) -> Value:
    return literal("int", literal_of(node.value))


def _float(node: cst.Float, env: Env, ctx: Context) -> Value:
    return literal("float", literal_of(node.value))


def _display(node: cst.Tuple | cst.List | cst.Set, env: Env, ctx: Context) -> Value:
    kind = {cst.Tuple: "tuple", cst.List: "list", cst.Set: "set"}[type(node)]
    items: list[Value] = []
    exact = True
    for element in node.elements:
        value = evaluate(element.value, env, ctx)
        if isinstance(element, cst.StarredElement):
            exact = False
            unpack_reads(value, "star", element.value, ctx)
            items.append(element_of(value))
        else:
            items.append(value)
    element_value = join_all(items)
    return Sequence(kind, element_value, tuple(items) if exact else None)


def _dict(node: cst.Dict, env: Env, ctx: Context) -> Value:
    keys: list[Value] = []
    values: list[Value] = []
    items: dict[str, Value] = {}
    for element in node.elements:
        value = evaluate(element.value, env, ctx)
        if not isinstance(element, cst.DictElement):
            if isinstance(value, Mapping_):
                items.update(value.items)
                values.append(value.element)
                keys.append(value.key)
            else:
                values.append(UNKNOWN)
            continue
        key = evaluate(element.key, env, ctx)
        keys.append(key)
        values.append(value)
        if isinstance(key, Scalar) and isinstance(key.value, str):
            items[key.value] = value
    named = len(items) == len(node.elements)
    other = UNKNOWN if named else join_all(values)
    return Mapping_(join_all(keys), other, tuple(items.items()), made=named)


def _conditional(node: cst.IfExp, env: Env, ctx: Context) -> Value:
    truth(node.test, env, ctx, "ifexp")
    yes = narrow(node.test, env, ctx, True)
    no = narrow(node.test, env, ctx, False)
    branches = [
        evaluate(branch, after, ctx)
        for branch, after in ((node.body, yes), (node.orelse, no))
        if after is not None
    ]
    return join_all(branches)


def _boolean(node: cst.BooleanOperation, env: Env, ctx: Context) -> Value:
    operation = "and" if isinstance(node.operator, cst.And) else "or"
    left = evaluate(node.left, env, ctx)
    emit_read(ctx, SiteKind.BRANCH, operation, node.left, left, operand_node=node.left)
    after = narrow(node.left, env, ctx, operation == "and")
    if after is None:
        return left
    right = evaluate(node.right, after, ctx)
    if operation == "or" and left == NONE:
        return right
    return join(operators.truthy(left) if operation == "or" else left, right)


def _walrus(node: cst.NamedExpr, env: Env, ctx: Context) -> Value:
    value = evaluate(node.value, env, ctx)
    path = path_of(node.target)
    if path is not None:
        bind(env, path, value)
    return value


def _lambda(node: cst.Lambda, env: Env, ctx: Context) -> Value:
    # What the body does with captured values happens wherever it is called; unknown parameters
    # stay silent.
    inside = dict(env)
    for parameter in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params):
        default = parameter.default
        inside[parameter.name.value] = (
            UNKNOWN if default is None else evaluate(default, env, ctx.silent())
        )
    if ctx.sink is not None:
        evaluate(node.body, inside, ctx.mark(LATER))
    return Closure(node, id(node), env, ctx.module)


def _await(node: cst.Await, env: Env, ctx: Context) -> Value:
    return evaluate(node.expression, env, ctx)


def _yield(node: cst.Yield, env: Env, ctx: Context) -> Value:
    if isinstance(node.value, cst.From):
        source = evaluate(node.value.item, env, ctx)
        unpack_reads(source, "for", node.value.item, ctx)
        value = element_of(source)
    else:
        value = evaluate(node.value, env, ctx) if node.value is not None else NONE
    if ctx.returns is not None:
        ctx.returns.append(Sequence("iterator", value))
    return UNKNOWN


def _call(node: cst.Call, env: Env, ctx: Context) -> Value:
    return calls.call(node, env, ctx)


def _comparison(node: cst.Comparison, env: Env, ctx: Context) -> Value:
    return operators.comparison(node, env, ctx)


def _binary(node: cst.BinaryOperation, env: Env, ctx: Context) -> Value:
    left = evaluate(node.left, env, ctx)
    right = evaluate(node.right, env, ctx)
    return operators.binary(node.operator, left, right, node, ctx)


def _unary(node: cst.UnaryOperation, env: Env, ctx: Context) -> Value:
    value = evaluate(node.expression, env, ctx)
    if isinstance(node.operator, cst.Not):
        emit_read(ctx, SiteKind.BRANCH, "not", node.expression, value, operand_node=node.expression)
        return BOOL
    tensor = tensor_of(value)
    if tensor is not None:
        return replace(tensor, role="")
    match value, node.operator:
        case Scalar(kind=kind, value=(int() | float()) as number), cst.Minus():
            return literal(kind, -number)
    return value


HANDLERS: dict[type[cst.CSTNode], Callable[[Any, Env, Context], Value]] = {
    cst.Name: name,
    cst.Attribute: attributes.attribute,
    cst.Call: _call,
    cst.Subscript: subscripts.subscript,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _concatenated,
    cst.FormattedString: _formatted,
    cst.Integer: _integer,
    cst.Float: _float,
    cst.Imaginary: lambda node, env, ctx: Scalar("complex"),
    cst.Tuple: _display,
    cst.List: _display,
    cst.Set: _display,
    cst.Dict: _dict,
    cst.IfExp: _conditional,
    cst.BooleanOperation: _boolean,
    cst.NamedExpr: _walrus,
    cst.Lambda: _lambda,
    cst.Await: _await,
    cst.Yield: _yield,
    cst.Comparison: _comparison,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.ListComp: comprehensions.comprehension,
    cst.SetComp: comprehensions.comprehension,
    cst.GeneratorExp: comprehensions.comprehension,
    cst.DictComp: comprehensions.dict_comprehension,
}

CONSTANTS: dict[str, Value] = {
    "True": literal("bool", True),
    "False": literal("bool", False),
    "None": NONE,
    "NotImplemented": UNKNOWN,
    "__debug__": BOOL,
    "Ellipsis": External("builtins.Ellipsis"),
}
