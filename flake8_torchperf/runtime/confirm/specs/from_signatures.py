"""In the child: candidate specs from facts that only the running program has.

Uses a live signature (annotations resolved, defaults as objects). Serves constructors, inherited
methods, and parameters that the interpreter does not know.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.specs import input_specs
from flake8_torchperf.runtime.confirm.specs.from_names import by_name, pool
from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec, listing, simple, tensor

LIST_TYPES = (list, collections.abc.Sequence, collections.abc.MutableSequence)
ITERABLES = (collections.abc.Iterable, collections.abc.Iterator, collections.abc.Generator)


class Choices(dict[str, list[InputSpec]]):
    """Candidates per parameter. ``guessed`` are required parameters of which nothing is known."""

    guessed: tuple[str, ...] = ()
    variadic: str = ""


def choices(function: Callable[..., Any], known: dict[str, list[InputSpec]]) -> Choices:
    """Return candidates for calling ``function``; ``known`` (the interpreter's) come first.

    Raises ValueError where the callable has no signature.
    """
    signature = inspect.signature(function)
    hints = _hints(function)
    found = Choices()
    guessed: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            found.variadic = name
        made = [simple("context")] if name == "ctx" else list(known.get(name, ()))
        annotated = of_annotation(hints.get(name, parameter.annotation))
        if parameter.default is not inspect.Parameter.empty and not made:
            made = [simple("default"), *_beside(parameter.default)]
        if not made and not annotated and not by_name(name):
            guessed.append(name)
        made += [*annotated, *by_name(name)]
        if len(made) < 2 or made[0]["kind"] == "stand-in":
            made += pool()
        found[name] = input_specs.unique(made)
    found.guessed = tuple(guessed)
    return found


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = vars(function).get("__init__", function) if isinstance(function, type) else function
    try:
        return typing.get_type_hints(inspect.unwrap(target))
    except Exception:
        # Annotations are code of the module's own and may raise anything, above all NameError for
        # names imported for type checkers only. The raw annotations are used instead.
        return {}


def _beside(default: object) -> list[InputSpec]:
    """Return other values that a parameter with this default may take."""
    match default:
        case bool():
            return input_specs.values((not default,))
        case int():
            return input_specs.values((default + 1, 1))
        case float():
            return input_specs.values((0.5,))
    return []


def of_annotation(hint: Any) -> list[InputSpec]:
    """Return specs for a resolved annotation; empty if it is too general."""
    if hint is inspect.Parameter.empty or hint is Any or isinstance(hint, (str, typing.TypeVar)):
        return []
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return input_specs.values(a for a in arguments if isinstance(a, (str, int, float, bool)))
    if origin in (typing.Union, types.UnionType):
        return [one for part in arguments for one in of_annotation(part)]
    if origin is typing.Annotated:
        return of_annotation(arguments[0])
    if origin in LIST_TYPES or origin in ITERABLES:
        inner = of_annotation(arguments[0]) if arguments else []
        return (
            [listing(one) for one in (inner or [tensor((4,)), input_specs.value(2)])[:4]]
            + [listing(one, 2) for one in inner[:3]]
            + ([input_specs.ASCENDING] if arguments and arguments[0] is int else [])
        )
    if origin is tuple:
        return _of_tuple(arguments)
    if origin is dict or origin is collections.abc.Mapping:
        inner = of_annotation(arguments[-1]) if arguments else []
        return [input_specs.mapping({"a": one, "b": one}) for one in inner[:3]] or [
            input_specs.mapping({})
        ]
    if origin is collections.abc.Callable or hint is collections.abc.Callable:
        return [simple("callable"), simple("module")]
    return _of_type(hint)


def _of_tuple(arguments: tuple[Any, ...]) -> list[InputSpec]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return [listing(one, 2, "tuple") for one in of_annotation(arguments[0])[:4]]
    parts = [of_annotation(one) for one in arguments]
    if not all(parts):
        return []
    return [input_specs.fixed(part[min(i, len(part) - 1)] for part in parts) for i in range(3)]


_PLAIN: dict[Any, list[InputSpec]] = {
    bool: input_specs.values((False, True)),
    int: input_specs.values((4, 2, 1, 0, 16)),
    float: input_specs.values((0.5, 2.0, 1.0)),
    str: input_specs.values(("mean", "sum", "none", "a")),
    type(None): input_specs.values((None,)),
    torch.Size: [simple("size")],
    torch.dtype: [simple("dtype")],
    torch.device: [simple("device")],
    torch.Generator: [simple("generator")],
    list: [listing(tensor((4,))), listing(input_specs.value(2), 2)],
    tuple: [listing(tensor((4,)), 2, "tuple"), listing(input_specs.value(2), 2, "tuple")],
    dict: [input_specs.mapping({})],
}


def _of_type(hint: Any) -> list[InputSpec]:
    if hint in _PLAIN:
        return list(_PLAIN[hint])
    if not isinstance(hint, type):
        return []
    if issubclass(hint, torch.nn.Parameter):
        return input_specs.tensors("float", parameter=True)
    if issubclass(hint, torch.Tensor):
        return input_specs.tensors()
    if hint is torch.nn.Module:
        return [simple("module")]
    if hint is torch.optim.Optimizer:
        return [simple("optimizer")]
    if hint.__module__ == "builtins":
        return []
    return [input_specs.instance(f"{hint.__module__}.{hint.__qualname__}")]
