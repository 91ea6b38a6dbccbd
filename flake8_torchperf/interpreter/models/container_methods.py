"""Methods of lists, dicts, strings and numpy arrays."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.models import builtin_reductions, torch_classes
from flake8_torchperf.interpreter.models.libraries import executors
from flake8_torchperf.interpreter.transfer import assignment, subscripts
from flake8_torchperf.interpreter.transfer.operators import formatted, sought
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.environments import Env, path_of
from flake8_torchperf.values.values import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    UNKNOWN,
    Mapping_,
    Scalar,
    Sequence,
    Value,
    join,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments


def call_method(
    owner: Value,
    node: ast.expr | None,
    name: str,
    arguments: Arguments,
    env: Env,
    ctx: Context,
) -> Value:
    """Return the value of ``owner.name(arguments)``; ``node`` is the owner's expression."""
    match owner:
        case Sequence():
            return _sequence(owner, node, name, arguments, env, ctx)
        case Mapping_():
            return _mapping(owner, node, name, arguments, env, ctx)
        case Scalar(kind="str"):
            return _string(name, arguments, ctx)
        case Scalar():
            return SCALAR_METHODS.get(name, UNKNOWN)
    return UNKNOWN


SCALAR_METHODS: dict[str, Value] = {
    "item": Scalar("number"), "is_integer": BOOL, "bit_length": INT, "hex": STR,
    "conjugate": Scalar("number"), "total_seconds": FLOAT, "tolist": Scalar("number"),
}  # fmt: skip


def _change(env: Env, node: ast.expr | None, value: Value, ctx: Context) -> None:
    """Replace a container's value, also in the container that holds it."""
    path = path_of(node) if node is not None else None
    if path is not None:
        assignment.fill(path, value, env, ctx)
    match node:
        case ast.Subscript(value=outer):
            key = subscripts.literal_key(node)
        case ast.Call(func=ast.Attribute(value=outer, attr="setdefault"), args=[first, *_]):
            text = first.value if isinstance(first, ast.Constant) else None
            key = text if isinstance(text, str) else None
        case _:
            return
    holder = evaluate(outer, env, ctx.silent())
    held = assignment.holding(holder, key, value)
    if held is not None:
        _change(env, outer, held, ctx)


def _sequence(
    owner: Sequence,
    node: ast.expr | None,
    name: str,
    arguments: Arguments,
    env: Env,
    ctx: Context,
) -> Value:
    if owner.kind in (executors.QUEUE, executors.FUTURE) and name in executors.OUT_OF:
        return owner.element
    match name:
        case "put" | "put_nowait" if owner.kind == executors.QUEUE:
            _change(env, node, _grown(owner, arguments.value(0)), ctx)
            return NONE
        case "append" | "add" | "appendleft" | "insert":
            value = arguments.value(1 if name == "insert" else 0)
            _change(env, node, _grown(owner, value), ctx)
            return NONE
        case "extend" | "update" | "extendleft":
            _change(env, node, _grown(owner, element_of(arguments.value(0))), ctx)
            return NONE
        case "pop" | "popleft" | "__getitem__" | "popitem":
            return owner.element
        case "copy" | "union" | "intersection" | "difference":
            return owner
        case "index" | "count" | "remove":
            given = arguments.get(0)
            if given is not None:
                sought(given.value, owner, arguments.node, given.node, ctx)
            return NONE if name == "remove" else INT
        case "numel":
            return INT
        case "items":
            return UNKNOWN
        case "sort":
            builtin_reductions.ordered(owner, node, arguments, env, ctx)
            return NONE
        case "clear" | "reverse":
            return NONE
    if owner.names and name == "_asdict":
        pairs = tuple(zip(owner.names, owner.items or (), strict=False))
        return Mapping_(STR, owner.element, pairs)
    return _of_modules(owner, name, arguments)


def _of_modules(owner: Value, name: str, arguments: Arguments) -> Value:
    """Return the result of a module's method on one of torch's lists or dicts of modules."""
    if name in ("parameters", "named_parameters", "buffers", "named_buffers"):
        return torch_classes.module_iteration(name, arguments.node)
    return owner if name in ("to", "cuda", "eval", "train", "requires_grad_") else UNKNOWN


def _grown(owner: Sequence, value: Value) -> Sequence:
    """Return the list with one more element."""
    element = value if owner.items == () else join(owner.element, value)
    return replace(owner, element=element, items=None)


def _mapping(
    owner: Mapping_,
    node: ast.expr | None,
    name: str,
    arguments: Arguments,
    env: Env,
    ctx: Context,
) -> Value:
    values = owner.any_value()
    match name:
        case "values":
            return Sequence("iterable", values)
        case "keys":
            return Sequence("iterable", owner.key)
        case "items":
            pair = (owner.key, values)
            return Sequence("iterable", Sequence("tuple", UNKNOWN, pair))
        case "get" | "pop" | "__getitem__":
            return _get(owner, arguments)
        case "setdefault":
            key = arguments.value(0)
            known = key.value if isinstance(key, Scalar) and isinstance(key.value, str) else None
            held = _get(owner, replace(arguments, positional=arguments.positional[:1]))
            alone = owner.made and held is UNKNOWN
            result = arguments.value(1) if alone else join(held, arguments.value(1))
            _change(env, node, assignment.put(owner, known, result), ctx)
            return result
        case "update":
            _change(env, node, _updated(owner, arguments), ctx)
            return NONE
        case "copy":
            return owner
        case "popitem":
            return Sequence("tuple", UNKNOWN, (owner.key, values))
    return _of_modules(owner, name, arguments)


def _get(owner: Mapping_, arguments: Arguments) -> Value:
    key = arguments.value(0)
    found = owner.element
    if isinstance(key, Scalar) and isinstance(key.value, str):
        found = dict(owner.items).get(key.value, found)
    if len(arguments.positional) > 1:
        return join(found, arguments.value(1))
    return found


def _updated(owner: Mapping_, arguments: Arguments) -> Mapping_:
    items = dict(owner.items)
    items.update({name: a.value for name, a in arguments.keywords.items()})
    other = arguments.value(0) if arguments.positional else None
    element = owner.element
    if isinstance(other, Mapping_):
        items.update(other.items)
        if other.element is not UNKNOWN:
            element = (
                other.element if owner.made and element is UNKNOWN else join(element, other.element)
            )
    elif other is not None:
        element = UNKNOWN
    made = owner.made and other is None
    return replace(owner, element=element, items=tuple(items.items()), made=made)


def _string(name: str, arguments: Arguments, ctx: Context) -> Value:
    if name == "format":
        for argument in arguments.all():
            formatted(argument.value, "format", argument.node, ctx)
        return STR
    if name in ("split", "rsplit", "splitlines", "partition", "rpartition"):
        return Sequence("list", STR)
    if name.startswith("is") or name in ("startswith", "endswith"):
        return BOOL
    if name in ("find", "rfind", "index", "count"):
        return INT
    return Scalar("bytes") if name == "encode" else STR
