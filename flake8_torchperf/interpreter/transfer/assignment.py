"""Assignment targets: names, attributes, items and unpacking."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.events import debug_switches, transfers
from flake8_torchperf.interpreter.inference.from_callees import value_at, values_inside
from flake8_torchperf.interpreter.inference.parameters import on_host
from flake8_torchperf.interpreter.inference.placed import as_placed, placed_in
from flake8_torchperf.interpreter.inference.tensor_api import attributes_by_name
from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_module
from flake8_torchperf.interpreter.transfer import subscripts
from flake8_torchperf.interpreter.transfer.iteration import unpack_reads
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.suspects.words import MODULE_MOVES
from flake8_torchperf.syntax.names import given_to, is_name
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values.combining import whole
from flake8_torchperf.values.elements import values_of, with_attribute
from flake8_torchperf.values.environments import Env, bind, path_of
from flake8_torchperf.values.host_data import MOVES
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    COMPARED,
    STR,
    UNKNOWN,
    Mapping_,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    join,
    tensor_of,
    weaken,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionNode


def moved_itself(call: ast.expr, moved: Value, env: Env) -> None:
    """Bind a loader's batch that a statement moves, ``batch.to(device)``, to what that returns.

    Such a batch is an object that moves its own tensors: of a tensor, the result would be lost.
    """
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            held = env.get(name)
            of_loader = isinstance(held, Tensor) and held.reason.source is Source.LOADER_BATCH
            if method in MODULE_MOVES and of_loader:
                bind(env, name, moved)


def assign(target: ast.expr, value: Value, env: Env, ctx: Context) -> None:
    """Run ``target = value``."""
    if isinstance(target, ast.Name):
        doubtful = _is_doubtful(value)
        if ctx.node is not None and (doubtful or _may_be_loss(value, ctx)):
            used = value_at(target, ctx)
            value = _believed(value, used) if doubtful else _sized(value, used)
            if doubtful:
                value = _in_its_place(value, target.id, ctx)
        held = isinstance(value, Sequence) and isinstance(value.element, Tensor)
        if held and ctx.analysis.conventions.says("variable", target.id, "host-tensors"):
            value = on_host(value)
        if (
            isinstance(value, Tensor)
            and value.reason.source is Source.LOADER_BATCH
            and ctx.node is not None
        ):
            value = _as_used(target.id, value, ctx.node, ctx)
        bind(env, target.id, value)
        if value is UNKNOWN:
            _tell_inside(target, env, ctx)
    elif isinstance(target, ast.Attribute):
        value = _by_use(target, value, ctx)
        _attribute(target, value, env, ctx)
        if value is UNKNOWN:
            _tell_inside(target, env, ctx)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(target, value, env, ctx)
    elif isinstance(target, ast.Subscript):
        _item(target, _by_use(target, value, ctx), env, ctx)
    elif isinstance(target, ast.Starred):
        assign(target.value, Sequence("list", value), env, ctx)


# How deep in calls the use of attributes, entries and items is looked for.
MAX_USED_DEPTH = 1


def _by_use(target: ast.expr, value: Value, ctx: Context) -> Value:
    """Return the value of an attribute or entry that is assigned, as the uses of it show it."""
    if value is not UNKNOWN or ctx.depth > MAX_USED_DEPTH:
        return value
    return _believed(value, value_at(target, ctx))


def _tell_inside(target: ast.expr, env: Env, ctx: Context) -> None:
    """Note the items, entries and attributes of an unknown value that are tensors by their use."""
    if ctx.node is None or ctx.depth > MAX_USED_DEPTH:
        return
    for place, part in values_inside(target, ctx):
        env[place] = _in_its_place(part, target.id, ctx) if isinstance(target, ast.Name) else part


def _in_its_place(value: Value, name: str, ctx: Context) -> Value:
    """Return a tensor, or a sequence of tensors, where the part of a batch of a name lies."""
    if ctx.node is None:
        return value
    if isinstance(value, Tensor):
        return as_placed(value, name, placed_in(ctx.node, ctx.module, ctx.owner, ctx.analysis))
    if isinstance(value, Sequence) and value.items is None and isinstance(value.element, Tensor):
        return replace(value, element=_in_its_place(value.element, name, ctx))
    return value


def _as_used(name: str, batch: Tensor, function: FunctionNode, ctx: Context) -> Value:
    """Return a batch as its use shows it: a tensor, a dict of tensors or another object.

    One on the host that is moved as a whole is no dict, and another one costs no wait.
    """
    if batch.chain:
        return batch
    uses = _uses_by_name(function).get(name, frozenset())
    on_host = batch.device == "host"
    if not uses.isdisjoint(ASKED_OF_DICTS) and not (on_host and not uses.isdisjoint(MOVES)):
        return Mapping_(STR, batch)
    if on_host:
        return batch
    table = ctx.analysis.table
    if any(table.attribute(use) is None and table.method(use) is None for use in uses):
        return UNKNOWN
    return batch


# `batch["x"]` and `f(**batch)` count as uses of `__getitem__`.
ASKED_OF_DICTS = frozenset(("__getitem__", "items", "keys", "get", "pop", "update"))


@once
def _uses_by_name(function: FunctionNode) -> dict[str, frozenset[str]]:
    """Return the attributes and methods that a function uses, by the name of their owner."""
    found = dict(attributes_by_name(function))
    for node in walk([function]):
        match node:
            case (
                ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str()))
                | ast.keyword(arg=None, value=ast.Name(id=name))
            ):
                found[name] = found.get(name, frozenset()) | {"__getitem__"}
            case ast.For(target=ast.Name(id=key), iter=ast.Name(id=name), body=body):
                if _takes_by(key, name, body):
                    found[name] = found.get(name, frozenset()) | {"__getitem__"}
    return found


def _takes_by(key: str, name: str, body: list[ast.stmt]) -> bool:
    """True if a loop over a name takes items of the name by what the loop gives."""
    return any(
        isinstance(one, ast.Subscript) and is_name(one.slice, key) and is_name(one.value, name)
        for one in walk(body)
    )


def _is_doubtful(value: Value) -> bool:
    """True for an unknown value or a tensor by convention alone, whose use is better evidence.

    So it is for one of several values of which no other one shows which it is.
    """
    tensor = tensor_of(value)
    if tensor is None:
        return value in (UNKNOWN, COMPARED) or isinstance(value, Union)
    return tensor.reason.strength is Strength.ASSUMED


def _may_be_loss(value: Value, ctx: Context) -> bool:
    """True for a tensor of unknown size in a function that runs backward."""
    if ctx.node is None or not isinstance(value, Tensor) or value.scalar is not None:
        return False
    return not methods_of("runs-backward").isdisjoint(ctx.module.nodes(ctx.node).words())


def _sized(value: Value, used: Value) -> Value:
    """Return a tensor with the one element that ``backward()`` on it shows."""
    single = isinstance(used, Tensor) and used.scalar is True
    return replace(value, scalar=True) if single and isinstance(value, Tensor) else value


def _believed(value: Value, used: Value) -> Value:
    if isinstance(value, Tensor):
        return replace(value, reason=used.reason) if isinstance(used, Tensor) else value
    if value is COMPARED:
        return replace(used, dtype="bool") if isinstance(used, Tensor) else value
    if isinstance(value, Union):
        if not isinstance(used, Tensor) or used.scalar is not True:
            return value  # a test of its type may choose another one before it is used
        tensors = (whole(one) for one in value.options if isinstance(one, Tensor))
        return _believed(next(tensors, UNKNOWN), used)
    return used


def names(target: ast.expr) -> set[str]:
    """Return the names that an assignment to ``target`` binds."""
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, ast.Starred):
        return names(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return {name for element in target.elts for name in names(element)}
    return set()


def _unpack(target: ast.Tuple | ast.List, value: Value, env: Env, ctx: Context) -> None:
    tensor = tensor_of(value)
    if tensor is not None and _may_be_tuple(tensor):
        value = Sequence("tuple", _assumed_item(tensor))
    elif tensor is not None:
        unpack_reads(value, "unpack", target, ctx)
    starred = [isinstance(e, ast.Starred) for e in target.elts]
    places = [e.value if isinstance(e, ast.Starred) else e for e in target.elts]
    count = len(places)
    if not any(starred):
        for place, item in zip(places, values_of(value, count), strict=True):
            assign(place, item, env, ctx)
        return
    at = starred.index(True)
    items = list(value.items) if isinstance(value, Sequence) and value.items else []
    rest = values_of(value, -1)[:0] or [_element(value)]
    after = count - at - 1
    for i, place in enumerate(places):
        if i == at:
            middle = items[at : len(items) - after] if len(items) >= count - 1 else []
            assign(place, _list(middle, rest[0]), env, ctx)
        elif len(items) >= count - 1:
            assign(place, items[i] if i < at else items[i - count], env, ctx)
        else:
            assign(place, rest[0], env, ctx)


# The roles of a tensor that iterating or indexing another tensor gives.
ROW_ROLES = ("iterated", "element")


def _may_be_tuple(tensor: Tensor) -> bool:
    """True if the value is more likely a tuple that the annotation or docstring leaves out.

    It is if the value is a call's result that is assumed to be a tensor, and nothing was computed
    with it. The evidence for rows of an argument comes from the callers.
    """
    why = tensor.reason
    if why.source is Source.CALL and why.because is not None and tensor.role in ROW_ROLES:
        why = why.because
    source, strength = why.source, why.strength
    if strength < Strength.STATED and not tensor.chain and source is not Source.LOADER_BATCH:
        return True
    return source in (Source.RETURN_ANNOTATION, Source.DOCSTRING)


def _assumed_item(tensor: Tensor) -> Value:
    """Return an item of a module's output that is a tuple: a tensor, as the whole was assumed."""
    if tensor.reason.source is not Source.MODULE_OUTPUT:
        return UNKNOWN
    return weaken(tensor, Strength.ASSUMED)


def _element(value: Value) -> Value:
    return values_of(value, 1)[0] if not isinstance(value, Sequence) else value.element


def _list(items: list[Value], element: Value) -> Value:
    if not items:
        return Sequence("list", element)
    joined = items[0]
    for item in items[1:]:
        joined = join(joined, item)
    return Sequence("list", joined, tuple(items))


def _attribute(target: ast.Attribute, value: Value, env: Env, ctx: Context) -> None:
    path = path_of(target)
    if path is None:
        evaluate(target.value, env, ctx)
        return
    head, _, attr = path.rpartition(".")
    owner = UNKNOWN if head == ctx.self_name else evaluate(target.value, env, ctx.silent())
    set_attribute(head, owner, attr, value, env, ctx)
    if ctx.writes is not None and head == ctx.self_name:
        written = ctx.writes.get(attr)
        ctx.writes[attr] = value if written is None else join(written, value)


def set_attribute(
    path: str, owner: Value, attribute: str, value: Value, env: Env, ctx: Context
) -> None:
    """Bind an attribute of the object at a path, and let the object hold it."""
    changed = None if is_module(owner, ctx.analysis) else with_attribute(owner, attribute, value)
    if changed is not None:
        fill(path, changed, env, ctx)
    bind(env, f"{path}.{attribute}", value)


def _item(target: ast.Subscript, value: Value, env: Env, ctx: Context) -> None:
    debug_switches.variable(target, value, ctx)
    base = evaluate(target.value, env, ctx)
    subscripts.assigned(target, base, value, env, ctx)
    path = path_of(target.value)
    if path is None:
        return
    match base:
        case Mapping_():
            fill(path, put(base, subscripts.literal_key(target), value), env, ctx)
            inside = path_of(target)
            if inside is not None:
                env[inside] = value
        case Sequence(kind="list", element=element):
            inside = path_of(target)
            fill(path, Sequence("list", join(element, value)), env, ctx)
            if inside is not None:
                env[inside] = value
        case Tensor():
            transfers.written(target.value, env, transfers.filled(target.value, base, value, ctx))
        case Scalar():
            pass
        case _:
            inside = path_of(target)
            if inside is not None:
                bind(env, inside, value)


def put(mapping: Mapping_, key: str | None, value: Value) -> Mapping_:
    """Return the dict with one more value, under a known key or a computed one."""
    if key is not None:
        return replace(mapping, items=tuple({**dict(mapping.items), key: value}.items()))
    if mapping.made and mapping.element is UNKNOWN:
        return replace(mapping, element=value, made=value is not UNKNOWN)
    if mapping.element is UNKNOWN:
        return mapping  # the other values are unknown; one value is no evidence for them
    return replace(mapping, element=join(mapping.element, value))


def holding(holder: Value, key: str | None, value: Value) -> Value | None:
    """Return a list or dict with ``value`` as one of its containers; None for other holders."""
    match holder:
        case Mapping_() if key is not None:
            return put(holder, key, value)
        case Mapping_(element=Sequence() | Mapping_() as element) if _says_nothing(element):
            return replace(holder, element=value)
        case Mapping_():
            return put(holder, None, value)
        case Sequence(kind="list", element=Sequence() | Mapping_() as element):
            filled = value if _says_nothing(element) else join(element, value)
            return replace(holder, element=filled, items=None)
    return None


def _says_nothing(container: Sequence | Mapping_) -> bool:
    """True for a list or dict that was made empty."""
    if isinstance(container, Sequence):
        return container.items == ()
    return container.made and not container.items and container.element is UNKNOWN


def fill(path: str, container: Value, env: Env, ctx: Context) -> None:
    """Store a container with one more item; for an attribute of ``self``, note the write."""
    env[path] = container
    head, _, attr = path.rpartition(".")
    if ctx.writes is not None and head and head == ctx.self_name:
        written = ctx.writes.get(attr)
        ctx.writes[attr] = container if written is None else join(written, container)


def renamed(target: ast.expr, call: ast.Call, env: Env, ctx: Context) -> Value:
    """Return the value under the names of ``model, rest = unknown(model, rest)``.

    If a module is passed to an unknown call and the result takes its name, the result is that
    module in a wrapper: quantised, sharded or adapted.
    """
    if isinstance(target, (ast.Tuple, ast.List)):
        items = tuple(renamed(part, call, env, ctx) for part in target.elts)
        known = any(item is not UNKNOWN for item in items)
        return Sequence("tuple", UNKNOWN, items) if known else UNKNOWN
    path = path_of(target) if call.args or call.keywords else None
    if path is None:
        return UNKNOWN
    for given in given_to(call):
        if path_of(given) == path:
            value = evaluate(given, env, ctx.silent())
            return value if is_module(value, ctx.analysis) else UNKNOWN
    return UNKNOWN
