"""Stores of results made from texts, each bounded by the bytes of text that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Key = TypeVar("Key")
Made = TypeVar("Made")

# The size of an entry beside its text, so that empty files are bounded as well.
ENTRY = 1_000  # bytes

# The bytes of text of dropped entries that wait for the garbage collector.
_GARBAGE = [0]
# Above this, it is time to collect. What was made of the texts takes ten times as much.
MOST_GARBAGE = 1_000_000


def is_time_to_collect() -> bool:
    """True if much waits for the garbage collector, which the caller is to run at once."""
    is_time = _GARBAGE[0] > MOST_GARBAGE
    if is_time:
        _GARBAGE[0] = 0
    return is_time


class Kept(Generic[Key, Made]):
    """Results by key; the least recently used go first.

    A result takes memory in proportion to its text, and modules differ in size by a factor
    of a thousand: a number of entries bounds nothing. ``most`` are the bytes of text that all
    entries together stand for. The newest entry stays however large its text is. ``in_circles``
    says if entries refer to themselves, so that only the garbage collector frees them.
    """

    def __init__(self, most: int, *, in_circles: bool = False) -> None:
        self.most = most
        self._in_circles = in_circles
        self.total = 0
        self._held: dict[Key, tuple[Made, int]] = {}

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
        self._held[key] = found
        return found[0]

    def put(self, key: Key, made: Made, size: int) -> Made:
        """Keep what was made of a text of ``size`` bytes, and return it."""
        before = self._held.pop(key, None)
        weight = size + ENTRY
        self.total += weight - (0 if before is None else before[1])
        self._held[key] = (made, weight)
        while self.total > self.most and len(self._held) > 1:
            oldest = next(iter(self._held))
            dropped = self._held.pop(oldest)[1]
            self.total -= dropped
            if self._in_circles:
                _GARBAGE[0] += dropped
        return made

    def clear(self) -> None:
        """Drop all entries."""
        self._held.clear()
        self.total = 0

    def __len__(self) -> int:
        return len(self._held)
