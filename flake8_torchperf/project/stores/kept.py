"""Stores of results made from texts, each bounded by the bytes of text that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")

# The size of an entry beside its text, so that empty files are bounded as well.
ENTRY = 1_000  # bytes

# Calls that take dropped entries apart which refer to themselves, with their bytes of text.
_DROPPED: list[tuple[Callable[[], object], int]] = []
# The bytes of text of those that wait for the garbage collector.
_GARBAGE = [0]
# How often dropped entries were taken apart: what was asked for before then is used no more.
_ROUND = [0]
# Above this, it is time to collect. A tree takes 27 times its text.
MOST_GARBAGE = 500_000
# The stores whose entries refer to themselves, and by identity the entries that are left to the
# garbage collector.
_IN_CIRCLES: list[Kept[Any, Any]] = []
_SHARED: set[int] = set()


def share() -> None:
    """Leave all that is kept now to the garbage collector.

    Something that lives from file to file holds parts of it.
    """
    _SHARED.clear()
    for kept in _IN_CIRCLES:
        _SHARED.update(kept.identities())
    _leave_dropped()


def take_dropped_apart() -> None:
    """Free the dropped entries that refer to themselves, between two files that are analysed.

    Nothing that was learned about the files so far may be used afterwards, but findings.
    """
    for take_apart, _ in _DROPPED:
        take_apart()
    _DROPPED.clear()
    _ROUND[0] += 1


def _leave_dropped() -> None:
    """Leave the dropped entries to the garbage collector."""
    _GARBAGE[0] += sum(weight for _, weight in _DROPPED)
    _DROPPED.clear()


def is_time_to_collect() -> bool:
    """True if much waits for the garbage collector, which the caller is to run at once."""
    _leave_dropped()
    is_time = _GARBAGE[0] > MOST_GARBAGE
    if is_time:
        _GARBAGE[0] = 0
    return is_time


class Kept(Generic[Key, Made]):
    """Results by key; the least recently used go first.

    A result takes memory in proportion to its text, and modules differ in size by a factor
    of a thousand: a number of entries bounds nothing. ``most`` are the bytes of text that all
    entries together stand for. The newest entry stays however large its text is. ``take_apart``
    cuts the references of an entry to itself, without which only the garbage collector frees it.
    """

    def __init__(self, most: int, take_apart: Callable[[Made], object] | None = None) -> None:
        self.most = most
        self._take_apart = take_apart
        if take_apart is not None:
            _IN_CIRCLES.append(self)
        self.total = 0
        # Each entry with its bytes of text, and the round in which it was asked for last.
        self._held: dict[Key, tuple[Made, int, int]] = {}

    def made(self, key: Key, size: int, make: Callable[[], Made]) -> Made:
        """Return what is kept under a key, or else what is made now of a text of ``size`` bytes."""
        held = self._held.get(key)
        if held is None:
            return self.put(key, make(), size)
        self.get(key)  # it was asked for last
        return held[0]

    def get(self, key: Key) -> Made | None:
        """Return what is kept under a key, or None."""
        found = self._held.pop(key, None)
        if found is None:
            return None
        self._held[key] = (found[0], found[1], _ROUND[0])
        return found[0]

    def put(self, key: Key, made: Made, size: int) -> Made:
        """Keep what was made of a text of ``size`` bytes, and return it."""
        before = self._held.pop(key, None)
        weight = size + ENTRY
        self.total += weight - (0 if before is None else before[1])
        self._held[key] = (made, weight, _ROUND[0])
        while self.total > self.most and len(self._held) > 1:
            dropped, weight, asked = self._held.pop(next(iter(self._held)))
            self.total -= weight
            self._free(dropped, weight, asked)
        return made

    def _free(self, dropped: Made, weight: int, asked: int) -> None:
        """Take a dropped entry apart: at once if nothing that is analysed now may use it."""
        if self._take_apart is None:
            return
        if id(dropped) in _SHARED:
            _SHARED.discard(id(dropped))  # what is made next may have its identity
            _GARBAGE[0] += weight
        elif asked < _ROUND[0]:
            self._take_apart(dropped)
        else:
            _DROPPED.append((partial(self._take_apart, dropped), weight))

    def weigh(self, key: Key, size: int) -> None:
        """Note that what is kept under a key stands for ``size`` bytes of text by now."""
        held = self._held.get(key)
        if held is not None:
            self.total += size + ENTRY - held[1]
            self._held[key] = (held[0], size + ENTRY, held[2])

    def identities(self) -> list[int]:
        """Return the identities of all entries."""
        return [id(made) for made, _, _ in self._held.values()]

    def clear(self) -> None:
        """Drop all entries."""
        self._held.clear()
        self.total = 0

    def __len__(self) -> int:
        return len(self._held)
