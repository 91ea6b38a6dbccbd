"""Folds the hand-written, cited supplement, and docstrings' notes on waits, into the entries."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flake8_torchperf.knowledge.returns import UNKNOWN, Return, TensorReturn, parse_return
from torch_table.model import Entry, Parameter, Signature

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUPPLEMENT = (
    Path(__file__).resolve().parents[2] / "flake8_torchperf" / "knowledge" / "supplement.toml"
)
_KEYS = {
    "names", "flags", "unless", "only_with", "always", "overload", "takes", "returns", "source",
}  # fmt: skip
_METHOD = "torch.Tensor."
_ANYTHING = (
    Parameter("args", ("x",), True, "variadic"),
    Parameter("kwargs", ("x",), True, "keywords"),
)

# "When inputs are on a CUDA device, this function synchronizes that device with the CPU", and its
# variants.
_SYNC = re.compile(
    r"(When|For)\b[^.]*\bCUDA\b[^.]*"
    r"(synchronizes (that|its) device|synchronizes only|host-device synchronization)[^.]*"
)
_CONDITION = re.compile(
    r"(?:only when|\bif|When) :attr:`(\w+)`(?:\\? `= True`|\\ `= True`| is one| is a CUDA)"
)


def documented_sync(function: object) -> tuple[str, str] | None:
    """Return the sentence of a docstring that says that a call synchronises.

    With it comes the parameter that this depends on, if any.
    """
    text = re.sub(r"\s+", " ", getattr(function, "__doc__", None) or "")
    match = _SYNC.search(text)
    if match is None or "gradient" in match.group():
        return None
    condition = _CONDITION.search(match.group())
    return match.group().strip(), condition.group(1) if condition else ""


def fold_documented(qualified: str, function: object, entry: Entry) -> None:
    """Adds flag s where the documentation says so."""
    found = documented_sync(function)
    if found is None:
        return
    entry.flags.add("s")
    entry.why = f"docstring of {qualified}"
    if found[1]:
        entry.only_with.add(found[1])


def fold(
    functions: dict[str, Entry],
    methods: dict[str, Entry],
    classes: Mapping[str, Any],
    aliases: Mapping[str, str],
) -> None:
    """Adds every entry of the supplement; raises LookupError for an unknown name."""
    with SUPPLEMENT.open("rb") as file:
        operations = tomllib.load(file)["operation"]
    for operation in operations:
        unknown = set(operation) - _KEYS
        if unknown or not operation.get("source"):
            raise ValueError(
                f"supplement: {operation.get('names')}: no source, or unknown keys {unknown}"
            )
        for name in operation["names"]:
            _fold_one(name, operation, functions, methods, classes, aliases)


def _fold_one(
    name: str,
    operation: Mapping[str, Any],
    functions: dict[str, Entry],
    methods: dict[str, Entry],
    classes: Mapping[str, Any],
    aliases: Mapping[str, str],
) -> None:
    owner, _, member = name.rpartition(".")
    owner = aliases.get(owner, owner)
    if name.startswith(_METHOD):
        entry = methods.get(member)
    elif owner in classes:
        entry = _class_entry(classes[owner].setdefault("m", {}).get(member))
    else:
        entry = functions.setdefault(aliases.get(name, name), Entry([Signature(_ANYTHING)]))
    if entry is None:
        raise LookupError(f"supplement: torch has no {name}")
    _apply(operation, entry)
    if owner in classes and not name.startswith(_METHOD):
        classes[owner]["m"][member] = entry.data()


def _class_entry(data: Any) -> Entry:
    """Return the entry of a method's texts.

    Its parameters are unknown if the class has no such method.
    """
    if data is None:
        return Entry([Signature(_ANYTHING)])
    entry = Entry()
    entry.raw = [data] if isinstance(data, str) else list(data)
    return entry


def _apply(operation: Mapping[str, Any], entry: Entry) -> None:
    flags = set(operation.get("flags", ""))
    overload = operation.get("overload")
    if overload is None:
        entry.flags |= flags
    else:
        entry.signatures = [
            replace(s, costs=s.costs | flags)
            if any(p.name == overload for p in s.parameters)
            else s
            for s in entry.signatures
        ]
    entry.unless |= set(operation.get("unless", ()))
    entry.only_with |= set(operation.get("only_with", ()))
    entry.only_with -= set(operation.get("always", ()))
    if flags:
        entry.why = operation["source"]
    if "takes" in operation:
        takes = tuple(Parameter(name, (kind,)) for name, kind in operation["takes"].items())
        entry.signatures = [
            replace(s, parameters=takes + _ANYTHING) if s.parameters == _ANYTHING else s
            for s in entry.signatures
        ]
    if "returns" in operation:
        returns = parse_return(operation["returns"])
        entry.signatures = [
            replace(s, returns=_better(s.returns, returns)) for s in entry.signatures
        ]


def _better(known: Return, given: Return) -> Return:
    return given if known in (UNKNOWN, TensorReturn()) else known
