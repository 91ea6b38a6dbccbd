"""Conditions on arguments, and the facts that are found of functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

ON, OFF, GIVEN, NONE, TENSOR = "on", "off", "given", "none", "tensor"
# The most ways to wait that are stored for one function, or for one condition on the way to it.
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
        """Return the same condition on the object's constructor."""
        return replace(self, own=True)


# Atoms that hold together, and a condition: the sets of atoms that each meet it. A condition is
# sufficient but not necessary: tests that can't be expressed are left out.
Atoms: TypeAlias = frozenset[Atom]
Condition: TypeAlias = tuple[Atoms, ...]
ALWAYS: Condition = (frozenset(),)
NEVER: Condition = ()


def both(a: Condition, b: Condition) -> Condition:
    """Return the condition that holds if both hold."""
    return simplified(x | y for x, y in product(a, b))


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that holds if all of them hold."""
    met = ALWAYS
    for condition in conditions:
        if not met:
            break
        met = both(met, condition)
    return met


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that holds if at least one of them holds."""
    return simplified(atoms for condition in conditions for atoms in condition)


def simplified(ways: Iterable[Atoms]) -> Condition:
    """Return the ways without those that contradict themselves or include another way."""
    possible = sorted({w for w in ways if not _contradicts(w)}, key=lambda w: (len(w), sorted(w)))
    kept: list[Atoms] = []
    for way in possible:
        if not any(other <= way for other in kept):
            kept.append(way)
    return tuple(kept[:MAX_WAYS])


# Pairs of conditions that no argument can meet together.
_AGAINST = {(ON, OFF), (GIVEN, NONE), (NONE, TENSOR)}


def _contradicts(atoms: Atoms) -> bool:
    return any(
        a.parameter == b.parameter and a.own is b.own and (a.asks, b.asks) in _AGAINST
        for a, b in product(atoms, atoms)
    )


@dataclass(frozen=True, order=True)
class Place:
    """A wait in torch: the file under torch's folder, the line, and the kind of wait."""

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
