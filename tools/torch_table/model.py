"""Signatures as the generator's parts exchange them, before they become overload strings."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace

from flake8_torchperf.knowledge.returns import UNKNOWN, Return, render_return

# Signatures with more combinations of union members than this say less than their number costs.
MOST_COMBINATIONS = 6


@dataclass(frozen=True)
class Parameter:
    """One parameter; `types` holds the alternatives of a union, best known first."""

    name: str
    types: tuple[str, ...]
    optional: bool = False
    form: str = "positional"  # positional | keyword | variadic | keywords


@dataclass(frozen=True)
class Signature:
    """One way to call something, and the return its annotation names, if any."""

    parameters: tuple[Parameter, ...]
    returns: Return = UNKNOWN
    costs: frozenset[str] = frozenset()  # h, y: needs elements to go on; `-`: seen to need none

    def without_first(self) -> Signature:
        """Return the signature as seen by the caller of a bound method."""
        return replace(self, parameters=self.parameters[1:])

    def expanded(self) -> list[Signature]:
        """Return one signature per combination of its unions' members; too many become `x`."""
        choices = [p.types for p in self.parameters]
        if math.prod(map(len, choices)) > MOST_COMBINATIONS:
            choices = [types if len(types) == 1 else ("x",) for types in choices]
        return [
            replace(
                self,
                parameters=tuple(
                    replace(p, types=(kind,))
                    for p, kind in zip(self.parameters, kinds, strict=True)
                ),
            )
            for kinds in itertools.product(*choices)
        ]

    def text(self) -> str:
        """Return the overload string, `PARAMS->RETURN`, that `parse_overload` reads."""
        parts: list[str] = []
        keyword_only = False
        for p in self.parameters:
            kind = p.types[0] if len(p.types) == 1 else "x"
            if p.form == "variadic":
                keyword_only = True
                parts.append(f"*{p.name}:{kind}")
            elif p.form == "keywords":
                parts.append(f"**{p.name}:{kind}")
            else:
                if p.form == "keyword" and not keyword_only:
                    keyword_only = True
                    parts.append("*")
                parts.append(f"{p.name}:{kind}{'=' if p.optional else ''}")
        costs = "".join(sorted(self.costs - {"-"}))
        costs = f"!{costs}" if costs else ""
        return f"{','.join(parts)}->{render_return(self.returns)}{costs}"


@dataclass
class Entry:
    """The table's entry for one function or method, before it is written."""

    signatures: list[Signature] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    unless: set[str] = field(default_factory=set)
    only_with: set[str] = field(default_factory=set)
    why: str = ""
    raw: list[str] = field(default_factory=list)  # overload strings that need no more work

    def data(self) -> str | list[str] | dict[str, object]:
        """Return the JSON form: always an object for torch's functions and methods."""
        texts = list(dict.fromkeys([*self.raw, *(sig.text() for sig in self.signatures)]))
        result: dict[str, object] = {"r": texts}
        if self.flags:
            result["f"] = "".join(sorted(self.flags))
        if self.unless:
            result["u"] = sorted(self.unless)
        if self.only_with:
            result["w"] = sorted(self.only_with)
        if self.why:
            result["why"] = self.why
        if len(result) == 1:
            return texts[0] if len(texts) == 1 else texts
        return result
