"""Sets that are found from one another in a bounded number of steps, each as seldom as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

One = TypeVar("One")

# The level of no key: above that of each that is being looked up.
_FREE = 1_000_000


class _Found(NamedTuple, Generic[One]):
    """A set that was found, from the keys ``met`` on the way.

    ``taken`` is the number of steps that it took: at least the ``steps`` that were left if these
    ran out. ``level`` is that of the first of the keys being looked up that it came back to.
    """

    found: set[One]
    steps: int
    taken: int
    met: set[Hashable]
    level: int = _FREE


class Derivations(Generic[One]):
    """The sets of one kind, by key; finding one may ask for others, with fewer steps left.

    A set depends on the steps that were left if these ran out, and on the keys that are being
    looked up if it came back to one of them. It is used again where it would be found alike.
    """

    def __init__(self, itself: One) -> None:
        """Let ``itself`` stand for a key in what is found for it."""
        self._itself = itself
        self._whole: dict[Hashable, _Found[One]] = {}
        # By key and steps, those for which the steps ran out.
        self._cut: dict[tuple[Hashable, int], _Found[One]] = {}
        # Those that came back to a key that is still being looked up, in the order of finding.
        self._borrowing: dict[Hashable, _Found[One]] = {}
        # The keys that are being looked up, with their levels.
        self._running: dict[Hashable, int] = {}
        # Of the innermost of these: the fewest steps that were left, the keys that were met, and
        # the level of the first one that it came back to.
        self._fewest = 0
        self._met: set[Hashable] = set()
        self._level = _FREE

    def are_spent(self, steps: int) -> bool:
        """True if no steps are left; what is being found depends on how many there were."""
        if steps < self._fewest:
            self._fewest = steps
        return steps <= 0

    def of(self, key: Hashable, steps: int, find: Callable[[], set[One]]) -> set[One]:
        """Return what is found for a key with so many steps left; ``find`` finds it."""
        before = self._before(key, steps)
        if before is not None:
            self._fewest = min(self._fewest, steps - before.taken)
            self._level = min(self._level, before.level)
            self._met |= before.met
            return before.found
        if key in self._running:
            self._level = min(self._level, self._running[key])
            return {self._itself}
        return self._find(key, steps, find)

    def _before(self, key: Hashable, steps: int) -> _Found[One] | None:
        """Return what was found before where it would be found again."""
        whole = self._whole.get(key)
        if whole is not None and steps > whole.taken and self._is_apart(whole):
            return whole
        cut = self._cut.get((key, steps))
        if cut is not None and self._is_apart(cut):
            return cut
        borrowing = self._borrowing.get(key)
        return borrowing if borrowing is not None and borrowing.steps >= steps else None

    def _is_apart(self, before: _Found[One]) -> bool:
        return self._running.keys().isdisjoint(before.met)

    def _find(self, key: Hashable, steps: int, find: Callable[[], set[One]]) -> set[One]:
        around = self._fewest, self._met, self._level
        self._fewest, self._met, self._level = steps, {key}, _FREE
        level, borrowed = len(self._running), len(self._borrowing)
        self._running[key] = level
        try:
            found = find()
        finally:
            del self._running[key]
            mine = _Found(set[One](), steps, steps - self._fewest, self._met, self._level)
            self._fewest = min(around[0], self._fewest)
            self._met = around[1]
            self._met |= mine.met
            self._level = around[2] if mine.level >= level else min(around[2], mine.level)
        if mine.level < level:
            self._borrowing[key] = mine._replace(found=found)
            return found
        while len(self._borrowing) > borrowed:  # they came back to this key, which is known now
            self._borrowing.popitem()
        own = mine._replace(found=found, level=_FREE)
        if own.taken < steps:
            self._whole[key] = own
        else:
            self._cut[key, steps] = own
        return found

    def apart(self, find: Callable[[], set[One]]) -> set[One]:
        """Return what is found with steps of its own, whatever is left of those around it."""
        around = self._fewest
        try:
            return find()
        finally:
            self._fewest = around
