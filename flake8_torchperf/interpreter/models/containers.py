"""Sequences and dicts as values: sums, library functions, calls with synthetic arguments."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.place import LoopPlace
from flake8_torchperf.interpreter.inference.iterables import iterable
from flake8_torchperf.interpreter.models.torch_signatures import device_of
from flake8_torchperf.interpreter.transfer.iteration import unpack_reads
from flake8_torchperf.knowledge.objects import object_kind
from flake8_torchperf.values.arguments import Argument, Arguments
from flake8_torchperf.values.elements import DATA_LOADER, element_of, fields_of, paired
from flake8_torchperf.values.values import (
    NUMBER,
    STR,
    UNKNOWN,
    Closure,
    External,
    Instance,
    Mapping_,
    Partial,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env


def summed(value: Value, start: Value) -> Value:
    """Return the value of ``sum(values)``: adding tensors stays on the device."""
    element = element_of(value)
    tensor = tensor_of(element)
    if tensor is not None:
        return replace(tensor, chain=(*tensor.chain, "add")[-4:], role="")
    if isinstance(element, Scalar):
        return Scalar("number", read=element.read, tensor=element.tensor)
    if isinstance(element, Sequence):
        return element
    return UNKNOWN if element is UNKNOWN else join(element, start)


def single(arguments: Arguments, value: Value) -> Arguments:
    """Return a call with one synthetic argument, placed at the first real one."""
    return several(arguments, [value])


def several(arguments: Arguments, values: list[Value]) -> Arguments:
    """Return a call with synthetic arguments."""
    node = arguments.positional[0].node if arguments.positional else ast.Name("_", ast.Load())
    return Arguments(arguments.node, tuple(Argument(node, v) for v in values), {})


def completed(partial: Partial, arguments: Arguments) -> Arguments:
    """Return the arguments of a call of a partial: its stored ones, then the given ones."""
    held = several(arguments, list(partial.positional))
    node = arguments.node.func
    keywords = {name: Argument(node, value) for name, value in partial.keywords}
    return Arguments(
        arguments.node,
        held.positional + arguments.positional,
        {**keywords, **arguments.keywords},
        arguments.open or partial.open,
        None if arguments.counted is None else len(held.positional) + arguments.counted,
    )


def inside_loop(arguments: Arguments, ctx: Context) -> Context:
    """Return the place inside ``map`` or ``filter``, which runs once per element."""
    over = arguments.positional[-1].node if arguments.positional else None
    return ctx.within(LoopPlace(arguments.node, "comprehension", over))


def grad_filter(function: Value) -> bool:
    """True for ``lambda p: p.grad is not None`` and ``lambda p: p.requires_grad``."""
    if not isinstance(function, Closure) or not isinstance(function.node, ast.Lambda):
        return False
    body = function.node.body
    if isinstance(body, ast.Compare):
        body = body.left
    return isinstance(body, ast.Attribute) and body.attr in ("grad", "requires_grad")


def dict_of(arguments: Arguments) -> Mapping_:
    """Return the dict that ``dict(...)`` makes of its arguments."""
    items = {name: a.value for name, a in arguments.keywords.items()}
    first = arguments.value(0) if arguments.positional else None
    held = UNKNOWN if first is None else paired(first)
    if isinstance(held, Mapping_):
        return replace(held, items=tuple({**dict(held.items), **items}.items()), info=None)
    whole = first is None and not arguments.open
    return Mapping_(STR, UNKNOWN, tuple(items.items()), made=whole)


def made_object(name: str, arguments: Arguments, ctx: Context) -> Value | None:
    """Return the dict, namespace or iterable that a library's class makes; None for others."""
    match object_kind(name):
        case "attributes":
            return dict_of(arguments)
        case "namespace":
            return Instance(
                name, held=fields_of({k: a.value for k, a in arguments.keywords.items()})
            )
        case "tensors":
            return _tensors(arguments)
        case "loader":
            return Instance(DATA_LOADER)
        case "progress":
            given = arguments.get(0, "iterable")
            return UNKNOWN if given is None else iterable(given.node, given.value, ctx)
    return None


def _tensors(arguments: Arguments) -> Mapping_:
    """Return the dict of a ``TensorDict(source, batch_size, device)``, whose tensors it moves."""
    held = paired(arguments.value(0, "source"))
    found = held if isinstance(held, Mapping_) else Mapping_(STR, UNKNOWN)
    device = device_of(arguments.value(2, "device"))
    return found if device is None else _placed(found, device)


def _placed(held: Mapping_, device: str) -> Mapping_:
    items = tuple((name, _at(value, device)) for name, value in held.items)
    return replace(held, items=items, element=_at(held.element, device))


def _at(value: Value, device: str) -> Value:
    if isinstance(value, Mapping_):
        return _placed(value, device)
    if not isinstance(value, Tensor) or value.device == device:
        return value
    return replace(value, device=device, origin="", memory="")


def call_library(name: str, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return the result of a function of collections, itertools or functools."""
    short = name.rpartition(".")[2]
    match short:
        case "defaultdict":
            return Mapping_(UNKNOWN, _default(arguments, ctx), made=True)
        case "OrderedDict" | "Counter":
            first = paired(arguments.value(0))
            empty = Mapping_(UNKNOWN, NUMBER if short == "Counter" else UNKNOWN, made=True)
            return first if isinstance(first, Mapping_) else empty
        case "deque":
            return Sequence("list", element_of(arguments.value(0)))
        case "chain":
            elements = [element_of(a.value) for a in arguments.positional]
            result = elements[0] if elements else UNKNOWN
            for element in elements[1:]:
                result = join(result, element)
            return Sequence("iterator", result)
        case "from_iterable":
            return Sequence("iterator", element_of(element_of(arguments.value(0))))
        case "islice" | "cycle" | "takewhile" | "dropwhile":
            at = 1 if short.endswith("while") else 0
            source = arguments.get(at)
            if source is None:
                return UNKNOWN
            unpack_reads(source.value, "iter", source.node, ctx)
            return Sequence("iterator", element_of(iterable(source.node, source.value, ctx)))
        case "product" | "zip_longest":
            row = tuple(element_of(a.value) for a in arguments.positional)
            return Sequence("iterator", Sequence("tuple", UNKNOWN, row)) if row else UNKNOWN
        case "combinations" | "permutations" | "pairwise" | "batched":
            source = arguments.get(0)
            if source is None:
                return UNKNOWN
            unpack_reads(source.value, "iter", source.node, ctx)
            return Sequence("iterator", Sequence("tuple", element_of(source.value)))
        case "accumulate":
            element = element_of(arguments.value(0))
            alone = len(arguments.positional) == 1 or tensor_of(element) is not None
            return Sequence("iterator", element if alone else UNKNOWN)
        case "partial" if arguments.positional:
            keywords = tuple((name, a.value) for name, a in arguments.keywords.items())
            rest = tuple(a.value for a in arguments.positional[1:])
            return Partial(arguments.value(0), rest, keywords, arguments.open)
    return UNKNOWN


def _default(arguments: Arguments, ctx: Context) -> Value:
    """Return the value that a defaultdict's factory makes."""
    factory = arguments.value(0)
    match factory:
        case External(name="builtins.list"):
            return Sequence("list", UNKNOWN, ())
        case External(name="builtins.dict"):
            return Mapping_(UNKNOWN, UNKNOWN)
        case External(name="builtins.int" | "builtins.float" as name):
            kind = name.removeprefix("builtins.")
            return Scalar(kind, 0, known=True)
    return UNKNOWN
