"""Evaluation by tables: the handler for each kind of syntax and for each class of values.

`driver/handlers.py` alone fills the tables.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeAlias

from flake8_torchperf.interpreter.engine.analysis import MAX_EXPRESSION_DEPTH
from flake8_torchperf.interpreter.engine.place import Context
from flake8_torchperf.values.arguments import Arguments
from flake8_torchperf.values.environments import Env, Exits
from flake8_torchperf.values.values import UNKNOWN, Value

Expression: TypeAlias = Callable[[Any, Env, Context], Value]
Simple: TypeAlias = Callable[[Any, Env, Context], None]
Compound: TypeAlias = Callable[[Any, Env, Context], Exits]
Called: TypeAlias = Callable[[Any, Arguments, Env, Context], Value]
Member: TypeAlias = Callable[[Any, str, ast.Attribute | None, Context], Value]

EXPRESSIONS: dict[type[ast.AST], Expression] = {}
# Statements after which the next one follows, and those that may go elsewhere.
SIMPLE: dict[type[ast.stmt], Simple] = {}
COMPOUND: dict[type[ast.stmt], Compound] = {}
# How a statement changes the place of the statements after it in its block.
FOLLOWING: dict[type[ast.stmt], Callable[[Any, Env, Context], Context]] = {}
# Keyed by the class of the value that is called, indexed or whose attribute is read.
CALLABLES: dict[type[Any], Called] = {}
# The entry of `object` handles values of all classes without an entry of their own.
MEMBERS: dict[type[Any], Member] = {}
ITEMS: dict[type[Any], Callable[[Any, Context], Value]] = {}
ITERATED: dict[type[Any], Callable[[Any, Context], Value]] = {}


def evaluate(node: ast.expr, env: Env, ctx: Context) -> Value:
    """Return the value of an expression; UNKNOWN if it is not understood or costs too much."""
    handler = EXPRESSIONS.get(type(node))
    if handler is None:
        return UNKNOWN
    # Count one step and one level. This runs a hundred thousand times, so it makes no call.
    budget = ctx.budget
    stack = budget.stack
    budget.steps -= 1
    stack.expressions += 1
    affordable = budget.steps >= 0 and stack.expressions <= MAX_EXPRESSION_DEPTH
    value = handler(node, env, ctx) if affordable else UNKNOWN
    # No `finally` is needed: after an exception, nothing more is evaluated in this function.
    stack.expressions -= 1
    return value


def run_block(
    body: list[ast.stmt], env: Env, ctx: Context, states: list[Env] | None = None
) -> Exits:
    """Run the statements of a block one after the other.

    ``states`` collects the environment after each statement; an except block may start from any.
    """
    breaks: tuple[Env, ...] = ()
    continues: tuple[Env, ...] = ()
    current: Env | None = env
    for statement in body:
        if current is None:
            break
        kind = type(statement)
        simple = SIMPLE.get(kind)
        compound = None if simple is not None else COMPOUND.get(kind)
        if simple is not None:
            simple(statement, current, ctx)
        elif compound is not None:
            flow = compound(statement, current, ctx)
            current = flow.env
            breaks += flow.breaks
            continues += flow.continues
            following = FOLLOWING.get(kind)
            if following is not None and current is not None:
                ctx = following(statement, current, ctx)
        if states is not None and current is not None:
            states.append(dict(current))
    return Exits(current, breaks, continues)


def apply(callee: Value, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Call a value with arguments; UNKNOWN if the tables have no handler for its class."""
    handler = CALLABLES.get(type(callee))
    return UNKNOWN if handler is None else handler(callee, arguments, env, ctx)


def attribute_of(owner: Value, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    """Return the attribute ``name`` of a value; ``node`` is None if the source has no such node."""
    handler = MEMBERS.get(type(owner)) or MEMBERS[object]
    return handler(owner, name, node, ctx)


def item_of(owner: Value, ctx: Context) -> Value:
    """Return the value of an object's item at any index."""
    handler = ITEMS.get(type(owner))
    return UNKNOWN if handler is None else handler(owner, ctx)


def iterated_of(owner: Value, ctx: Context) -> Value:
    """Return what a loop over a value goes over: the value itself, or what its class yields."""
    handler = ITERATED.get(type(owner))
    return owner if handler is None else handler(owner, ctx)
