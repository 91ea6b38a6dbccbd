"""The table of torch: the returns and costs of its public functions, methods and classes.

Reads the generated `torch_table.json` (see `tools/generate_torch_table.py`); never imports torch.
Loading decodes the JSON only; overloads are parsed when they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from flake8_torchperf.knowledge.overloads import (
    Overload,
    Param,
    best_fitting,
    parse_overload,
    resolve,
)
from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    HostReturn,
    InstanceReturn,
    ListReturn,
    Return,
    ScalarReturn,
    TensorReturn,
    TupleReturn,
    UnknownReturn,
    parse_return,
)

__all__ = [
    "UNKNOWN",
    "HostReturn",
    "InstanceReturn",
    "ListReturn",
    "Op",
    "Overload",
    "Param",
    "Return",
    "ScalarReturn",
    "TensorReturn",
    "TorchClass",
    "TorchTable",
    "TupleReturn",
    "UnknownReturn",
    "load",
]

TABLE_PATH: Final = Path(__file__).with_name("torch_table.json")
MASK: Final = "<mask>"
_CONDITIONAL: Final = frozenset("dhsy")
_WAITS: Final = frozenset("hsy")
_NUMBERS: Final = ("i", "n", "f")
_TENSOR_PREFIX: Final = "torch.Tensor."
# Ways to call one operation that are remembered.
MAX_RESOLVED: Final = 500


@dataclass(frozen=True)
class Op:
    """A function or method: its overloads and flags.

    `own_flags` hold for all overloads; `flags_for` adds those of the overload that a call selects
    and applies the conditions. `source` names the document or measurement that shows the wait.
    """

    name: str
    texts: tuple[str, ...]
    own_flags: frozenset[str]
    unless: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()
    documented: str = ""
    measured_on: str = ""

    @cached_property
    def overloads(self) -> tuple[Overload, ...]:
        """Its overloads, in torch's order."""
        return tuple(map(parse_overload, self.texts))

    def resolve(
        self, positional: Sequence[str], keywords: Collection[str] | Mapping[str, str] = ()
    ) -> Return:
        """Return what the call returns, by the kinds of its arguments (kinds: see `overloads.py`).

        `keywords` are names, or a mapping of names to kinds.
        """
        named = keywords.items() if isinstance(keywords, Mapping) else keywords
        key = (tuple(positional), tuple(named))
        found = self._resolved.get(key)
        if found is None:
            found = resolve(self.overloads, positional, keywords)
            if len(self._resolved) < MAX_RESOLVED:
                self._resolved[key] = found
        return found

    @cached_property
    def _resolved(self) -> dict[tuple[object, ...], Return]:
        """The resolved returns, by the kinds of the arguments: the same few for each file."""
        return {}

    def flags_for(
        self,
        positional: Sequence[str],
        keywords: Collection[str] | Mapping[str, str] = (),
        *,
        mask: bool = False,
    ) -> frozenset[str]:
        """Return the flags that hold for a call with these kinds of arguments.

        They are those of the best matching overloads. The letters d, h, s and y are left out if a
        parameter in `unless` is given, or if no parameter in `only_with` is given other than as
        False. `repeat_interleave` with `output_size` has no `y`, for example. `mask` says that a
        boolean tensor is among the arguments, which matters for `__getitem__`.
        """
        best = best_fitting(self.overloads, positional, keywords)
        flags = self.own_flags.union(*(overload.flags for overload in best or self.overloads))
        given = {name for overload in best for name in overload.given(positional, keywords)}
        if mask:
            given.add(MASK)
        spared = any(name in given for name in self.unless)
        kinds = keywords if isinstance(keywords, Mapping) else {}
        asked = {name for name in given if kinds.get(name) != "0"}
        if spared or (self.only_with and not any(name in asked for name in self.only_with)):
            return flags - _CONDITIONAL
        return flags

    @cached_property
    def flags(self) -> frozenset[str]:
        """All flags that hold for at least one way to call it."""
        return self.own_flags.union(*(overload.flags for overload in self.overloads))

    @cached_property
    def read_instead_of_numbers(self) -> frozenset[str]:
        """Parameters that make the call wait if a tensor is given, but not if a number is."""
        waiting: set[tuple[str, str]] = set()
        others: set[tuple[str, str]] = set()
        for overload in self.overloads:
            found = waiting if overload.flags & _WAITS else others
            found.update((param.name, param.type) for param in overload.params)
        return frozenset(
            name
            for name, type_ in waiting - others
            if type_ == "T" and any((name, number) in others for number in _NUMBERS)
        )

    @property
    def always_waits(self) -> bool:
        """True if it waits with any arguments."""
        return not (self.unless or self.only_with or self.own_flags.isdisjoint(_WAITS))

    @property
    def source(self) -> str:
        """The document or measurement that shows that it waits; "" if it is not known to wait."""
        if self.documented or not self.measured_on or "s" not in self.flags:
            return self.documented
        return f"measured: {self.measured_on}"

    @property
    def pointwise(self) -> bool:
        """torch.Tag.pointwise."""
        return "p" in self.flags

    @property
    def reduction(self) -> bool:
        """torch.Tag.reduction."""
        return "r" in self.flags

    @property
    def view(self) -> bool:
        """The result can share memory with the input."""
        return "v" in self.flags

    @property
    def factory(self) -> bool:
        """It creates a tensor from no tensor, on the device named by `device=`."""
        return "c" in self.flags

    @property
    def like(self) -> bool:
        """It creates a tensor on the device of its input (`zeros_like`, `new_zeros`)."""
        return "n" in self.flags

    @property
    def in_place(self) -> bool:
        """It changes its first tensor."""
        return "m" in self.flags


@dataclass(frozen=True)
class TorchClass:
    """A public class of torch. `kind` is module, optimizer, scheduler, distribution, loader,
    dataset, tensor, event, stream, generator, context or object; `bases` are its public torch
    bases, nearest first.
    """

    qualified: str
    kind: str
    bases: tuple[str, ...]
    own_methods: Mapping[str, Any]
    own_attributes: Mapping[str, str]
    table: TorchTable

    def method(self, name: str) -> Op | None:
        """Return the method of that name, its own or inherited from a public base."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    @cached_property
    def _found(self) -> dict[str, Op | None]:
        """Its methods by name, filled as they are looked up."""
        return {}

    def _find(self, name: str) -> Op | None:
        for owner in self._lineage():
            if name in owner.own_methods:
                op = _op(f"{owner.qualified}.{name}", owner.own_methods[name])
                texts = tuple(text.replace("@Self", f"@{self.qualified}") for text in op.texts)
                return op if texts == op.texts else replace(op, texts=texts)
        return None

    def attribute(self, name: str) -> Return | None:
        """Return the type of the attribute or property of that name, its own or inherited."""
        for owner in self._lineage():
            if name in owner.own_attributes:
                return parse_return(owner.own_attributes[name])
        return None

    def _lineage(self) -> Iterator[TorchClass]:
        yield self
        for base in self.bases:
            found = self.table.klass(base)
            if found is not None:
                yield found


class TorchTable:
    """Lookups by public qualified name; unknown names give None."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.torch_version: str = data["torch"]
        self.measured_on: str = data["measured"]
        self._functions: Mapping[str, Any] = data["functions"]
        self._methods: Mapping[str, Any] = data["methods"]
        self._attributes: Mapping[str, str] = data["attributes"]
        self._classes: Mapping[str, Any] = data["classes"]
        self._aliases: Mapping[str, str] = data["aliases"]
        self._ops: dict[str, Op | None] = {}
        self._made: dict[str, TorchClass | None] = {}

    def canonical(self, qualified: str) -> str:
        """Return the name under which the table describes a function or class.

        `torch.nn.modules.Linear` is `torch.nn.Linear`.
        """
        return self._aliases.get(qualified, qualified)

    def aliases(self) -> Mapping[str, str]:
        """Return the name that `canonical` gives for each other one."""
        return self._aliases

    def function(self, qualified: str) -> Op | None:
        """Return the function of that qualified name.

        `torch.Tensor.max` is the method with the tensor as first argument.
        """
        if qualified not in self._ops:
            self._ops[qualified] = self._find_function(self.canonical(qualified))
        return self._ops[qualified]

    def _find_function(self, name: str) -> Op | None:
        entry = self._functions.get(name)
        if entry is not None:
            return _op(name, entry, self.measured_on)
        if name.startswith(_TENSOR_PREFIX):
            method = self.method(name.removeprefix(_TENSOR_PREFIX))
            if method is not None:
                texts = tuple(
                    f"self:T{'' if text.startswith('->') else ','}{text}" for text in method.texts
                )
                return replace(method, name=name, texts=texts)
        return None

    def method(self, name: str) -> Op | None:
        """Return the Tensor method of that name, `__and__` and the like included.

        `self` is not among its parameters.
        """
        key = "." + name
        if key not in self._ops:
            entry = self._methods.get(name)
            full = f"{_TENSOR_PREFIX}{name}"
            self._ops[key] = None if entry is None else _op(full, entry, self.measured_on)
        return self._ops[key]

    def attribute(self, name: str) -> Return | None:
        """Return the type of the Tensor attribute of that name."""
        text = self._attributes.get(name)
        return None if text is None else parse_return(text)

    def klass(self, qualified: str) -> TorchClass | None:
        """Return the class of that qualified name."""
        name = self.canonical(qualified)
        if name not in self._made:
            entry = self._classes.get(name)
            self._made[name] = entry and TorchClass(
                name,
                entry["kind"],
                tuple(entry.get("b", ())),
                entry.get("m", {}),
                entry.get("a", {}),
                self,
            )
        return self._made[name]

    def function_names(self) -> Collection[str]:
        """Return the qualified names of all functions in the table, aliases left out."""
        return self._functions.keys()

    def method_names(self) -> Collection[str]:
        """Return the names of all Tensor methods."""
        return self._methods.keys()

    def attribute_names(self) -> Collection[str]:
        """Return the names of all Tensor attributes."""
        return self._attributes.keys()

    def class_names(self) -> Collection[str]:
        """Return the qualified names of all classes, aliases left out."""
        return self._classes.keys()


def _op(name: str, entry: str | list[str] | dict[str, Any], measured_on: str = "") -> Op:
    """Return the operation of an entry; one that waits and names no source was measured."""
    if not isinstance(entry, dict):
        texts = (entry,) if isinstance(entry, str) else tuple(entry)
        return Op(name, texts, frozenset(), measured_on=measured_on)
    return Op(
        name,
        tuple(entry["r"]),
        frozenset(entry.get("f", "")),
        tuple(entry.get("u", ())),
        tuple(entry.get("w", ())),
        entry.get("why", ""),
        measured_on,
    )


@lru_cache(maxsize=1)
def load() -> TorchTable:
    """Return the committed table, read once."""
    return TorchTable(json.loads(TABLE_PATH.read_bytes()))
