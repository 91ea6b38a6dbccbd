"""The facts of everything public in torch, as the plain data that the linter reads."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch_table.classes import kind_of
from torch_table.namespaces import Catalogue, catalogue

from call_waits.model import Atom, Facts
from call_waits.sources import Callee, Sources
from call_waits.walk import Walk
from flake8_torchperf.values.values import (
    NoneValue,
    Sequence,
    Tensor,
    Union,
    Value,
)

# Classes whose methods the linter already knows: tensors, and classes that wait on purpose.
_KNOWN = ("tensor", "event", "stream")
# Modules whose tensors lie on the host, which their sources do not show: device_mesh.py makes the
# ranks there. `ON_HOST` in interpreter/models/torch_classes.py says so of the mesh.
_ON_HOST = ("device_mesh.py",)


def assemble() -> dict[str, Any]:
    """Return the content of `call_waits.json`: function or class and method -> ways to wait."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = catalogue()
        walk = Walk(Sources())
        functions = _functions(found, walk)
        classes = _classes(found, walk)
    version = torch.__version__.partition("+")[0]
    names = _names(functions, classes)
    return {"torch": version, "functions": functions, "classes": classes, "names": names}


def _names(functions: Iterable[str], classes: Mapping[str, Any]) -> list[str]:
    """Return the last names of calls that wait, by which the linter finds functions to look at.

    A name that tensors, modules or Python's containers have too would lead to most functions.
    """
    found = {name.rpartition(".")[2] for name in functions}
    for qualified, methods in classes.items():
        waiting = {method for method, ways in methods.items() if ways}
        found |= {m if m != "__init__" else qualified.rpartition(".")[2] for m in waiting}
    common = {*dir(torch.Tensor), *dir(torch.nn.Module), *dir(dict), *dir(list)}
    return sorted(found - common)


def _functions(public: Catalogue, walk: Walk) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for qualified, value in sorted(public.functions.items()):
        callee = walk.sources.function(value)
        facts = {} if callee is None else walk.facts(callee)
        found = [] if callee is None else _described(facts, callee, walk)
        if found:
            described[qualified] = found
    return described


def _classes(public: Catalogue, walk: Walk) -> dict[str, Any]:
    names = public.class_names()
    described: dict[str, dict[str, Any]] = {}
    # Bases first: a method that a class inherits unchanged is listed for its base only.
    for qualified, cls in sorted(public.classes.items(), key=lambda item: len(item[1].__mro__)):
        if kind_of(cls, public.classes) in _KNOWN or walk.sources.class_info(cls) is None:
            continue
        bases = [described.get(names.get(base, ""), {}) for base in cls.__mro__[1:]]
        methods: dict[str, Any] = {}
        for name in sorted(n for n in dir(cls) if not n.startswith("_") or n == "__init__"):
            callee = walk.sources.method(cls, name)
            facts = {} if callee is None else walk.facts(callee)
            own = [] if callee is None else _described(facts, callee, walk)
            if own != next((base[name] for base in bases if name in base), []):
                methods[name] = own
        if methods:
            described[qualified] = methods
    return dict(sorted(described.items()))


def _described(facts: Facts, callee: Callee, walk: Walk) -> list[list[str]]:
    """Return each way as a list: the place, the arguments that hold tensors, and the conditions.

    An ``!`` marks arguments without a default.
    """
    ways = sorted(facts.items(), key=lambda item: (len(item[0]), sorted(item[0])))
    held = [
        _named(name, callee) + ("!" if callee.parameters[name] is None else "")
        for name, value in callee.declared.items()
        if name in callee.parameters and _holds_tensors(value)
    ]
    found = []
    for atoms, place in ways:
        if place.file.endswith(_ON_HOST):
            continue
        asked = dict.fromkeys(_text(atom, callee, walk) for atom in sorted(atoms))
        found.append([str(place), *held, *asked])
    return found


def _holds_tensors(value: Value) -> bool:
    """True if the value is a tensor or a sequence of tensors; in a union, None may be an option."""
    match value:
        case Tensor():
            return True
        case Sequence(element=element):
            return isinstance(element, Tensor)
        case Union(options=options):
            return all(_holds_tensors(o) for o in options if not isinstance(o, NoneValue))
    return False


def _named(name: str, callee: Callee) -> str:
    """Return a parameter as text, with its position if it has one: ``error_if_nonfinite@3``."""
    positional = callee.positional
    return f"{name}@{positional.index(name)}" if name in positional else name


def _text(atom: Atom, callee: Callee, walk: Walk) -> str:
    """Return a condition as text: ``validate_args@2:on?~``. ``?``: or left out; ``~``: or None."""
    prefix, holder = "", callee
    if atom.own:
        made = None if callee.owner is None else walk.sources.method(callee.owner, "__init__")
        if made is None:
            raise ValueError(f"{callee.info.qualname} asks a constructor that has no source")
        prefix, holder = "self.", made
    default = holder.parameters.get(atom.parameter)
    absent = isinstance(default, ast.Constant) and atom.holds_for(default.value)
    flags = ("?" if absent else "") + ("~" if atom.holds_for(None) else "")
    return f"{prefix}{_named(atom.parameter, holder)}:{atom.asks}{flags}"
