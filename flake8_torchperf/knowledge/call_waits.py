"""The calls of torch's own functions that wait in torch's own code, and for which arguments.

Reads the generated `call_waits.json` (see `tools/generate_call_waits.py`); never imports torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

TABLE_PATH: Final = Path(__file__).with_name("call_waits.json")
_OF_OBJECT: Final = "self."


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter by its name, and its position; -1 where it can only be named. One that is
    `required` has no default.
    """

    name: str
    position: int
    required: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The condition on one argument under which a call waits.

    `asks` is "on" or "off" (true or false), "given" (not None), "none" or "tensor". `absent` and
    `none` say whether it holds if the argument is left out, or None. `own` means an argument of the
    object's constructor.
    """

    parameter: Parameter
    asks: str
    absent: bool
    none: bool
    own: bool

    def holds_for(self, literal: object) -> bool:
        """True if the condition holds for this literal."""
        if literal is None:
            return self.none
        if self.asks in ("on", "off"):
            return bool(literal) is (self.asks == "on")
        return self.asks == "given"


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a call waits, for these tensors and under these conditions.

    ``where`` names the file below torch's folder, and the line; ``operation`` waits there.
    """

    where: str
    operation: str
    holding: tuple[Parameter, ...]
    asked: tuple[Asked, ...]


class CallWaits:
    """Lookups by the public qualified names that `TorchTable.canonical` gives."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.torch_version: str = data["torch"]
        self._functions: Mapping[str, list[list[str]]] = data["functions"]
        self._classes: Mapping[str, Mapping[str, list[list[str]]]] = data["classes"]
        # Last names of calls that wait, without names of methods of tensors or Python containers.
        self.names: frozenset[str] = frozenset(data["names"])

    def function(self, qualified: str) -> tuple[Way, ...]:
        """Return the ways in which a call of this function waits."""
        return _ways(self._functions.get(qualified, ()))

    def method(self, lineage: Iterable[str], name: str) -> tuple[Way, ...]:
        """Return the ways in which a method waits; ``lineage`` are the class and its bases."""
        for owner in lineage:
            methods = self._classes.get(owner)
            if methods is not None and name in methods:
                return _ways(methods[name])
        return ()

    def options(self, lineage: Iterable[str]) -> frozenset[Parameter]:
        """Return the arguments of a constructor that decide whether methods of the object wait."""
        found = [o for owner in lineage for o in self._options.get(owner, ())]
        return frozenset(found)

    @cached_property
    def _options(self) -> dict[str, frozenset[Parameter]]:
        """The parameters of each class's constructor on which waits of its methods depend."""
        return {
            owner: frozenset(
                asked.parameter
                for entries in methods.values()
                for way in _ways(entries)
                for asked in way.asked
                if asked.own
            )
            for owner, methods in self._classes.items()
        }


def _ways(entries: Iterable[list[str]]) -> tuple[Way, ...]:
    return tuple(_way(tuple(entry)) for entry in entries)


@cache
def _way(entry: tuple[str, ...]) -> Way:
    where, _, operation = entry[0].partition(" ")
    holding = tuple(_parameter(text) for text in entry[1:] if ":" not in text)
    asked = tuple(_asked(text) for text in entry[1:] if ":" in text)
    return Way(where, operation, holding, asked)


def _asked(text: str) -> Asked:
    """Parse a condition such as ``self.validate_args@2:on?~``.

    It names a parameter and its position, then the condition; ``?`` adds "or left out", ``~`` "or
    None".
    """
    name, _, asks = text.partition(":")
    own = name.startswith(_OF_OBJECT)
    parameter = _parameter(name.removeprefix(_OF_OBJECT))
    return Asked(parameter, asks.rstrip("?~"), "?" in asks, "~" in asks, own)


def _parameter(text: str) -> Parameter:
    name, _, position = text.partition("@")
    required = text.endswith("!")
    name, position = name.rstrip("!"), position.rstrip("!")
    return Parameter(name, int(position) if position else -1, required)


@lru_cache(maxsize=1)
def load() -> CallWaits:
    """Return the committed table, read once."""
    return CallWaits(json.loads(TABLE_PATH.read_bytes()))
