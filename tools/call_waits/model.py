"""Conditions on arguments, and the facts that are found of functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

ON, OFF, GIVEN, NONE, TENSOR = "on", "off", "given", "none", "tensor"
# Ways to wait that are kept of one function, and of one condition on the way to it.
MAX_WAYS = 4


@dataclass(frozen=True, order=True)
class Atom:
    """A condition on one argument.

    It `asks` for `on` or `off` (true or false as a bool), `given` (not None), `none`, or `tensor`.
    `none` says if None counts as `on` or `off`; `own` that it is an argument of the object's
    constructor, not of the method.
    """

    parameter: str
    asks: str
    none: bool = False
    own: bool = False

    def holds_for(self, literal: object) -> bool:
        """True if the condition holds where the argument is this literal."""
        if literal is None:
            return self.asks == NONE or (self.asks in (ON, OFF) and self.none)
        if self.asks in (ON, OFF):
            return bool(literal) is (self.asks == ON)
        return self.asks == GIVEN

    def owned(self) -> Atom:
        """Return the same, asked of the object's constructor."""
        return replace(self, own=True)


# Atoms that hold together, and the ways in which a condition can be met. A condition is sufficient:
# what cannot be expressed is no way.
Atoms: TypeAlias = frozenset[Atom]
Condition: TypeAlias = tuple[Atoms, ...]
ALWAYS: Condition = (frozenset(),)
NEVER: Condition = ()


def both(a: Condition, b: Condition) -> Condition:
    """Return the condition that is met where both are."""
    return simplified(x | y for x, y in product(a, b))


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that is met where all of them are."""
    met = ALWAYS
    for condition in conditions:
        if not met:
            break
        met = both(met, condition)
    return met


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that is met where one of them is."""
    return simplified(atoms for condition in conditions for atoms in condition)


def simplified(ways: Iterable[Atoms]) -> Condition:
    """Return the ways without those that contradict themselves or include another way."""
    possible = sorted({w for w in ways if not _contradicts(w)}, key=lambda w: (len(w), sorted(w)))
    kept: list[Atoms] = []
    for way in possible:
        if not any(other <= way for other in kept):
            kept.append(way)
    return tuple(kept[:MAX_WAYS])


# Pairs that no argument meets at once.
_AGAINST = {(ON, OFF), (GIVEN, NONE), (NONE, TENSOR)}


def _contradicts(atoms: Atoms) -> bool:
    return any(
        a.parameter == b.parameter and a.own is b.own and (a.asks, b.asks) in _AGAINST
        for a, b in product(atoms, atoms)
    )


@dataclass(frozen=True, order=True)
class Place:
    """Where torch waits: the file under torch's folder, the line, and what happens there."""

    file: str
    line: int
    operation: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operation}"


# The ways in which a function waits, each with the first place at which it does.
Facts: TypeAlias = dict[Atoms, Place]


def add(facts: Facts, condition: Condition, place: Place) -> None:
    """Note that a function waits under a condition; the first place in the sources counts."""
    for atoms in condition:
        if atoms not in facts or place < facts[atoms]:
            facts[atoms] = place


def minimal(facts: Facts) -> Facts:
    """Return the facts of the ways that include no other way."""
    return {atoms: facts[atoms] for atoms in simplified(facts)}
