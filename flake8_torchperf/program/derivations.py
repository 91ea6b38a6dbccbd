"""Sets that are found from one another in a bounded number of steps, each as seldom as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class _Found(Generic[One]):
    """A set that was found, from the keys ``met`` on the way.

    ``taken`` is the number of steps that it took, with those for which none were left. ``back`` are
    the keys being looked up that it came back to.
    """

    found: set[One]
    taken: int
    met: frozenset[Hashable]
    back: frozenset[Hashable]


_ByContext: TypeAlias = "dict[frozenset[Hashable], dict[frozenset[Hashable], _Found[One]]]"


class Derivations(Generic[One]):
    """The sets of one kind, by key; finding one may ask for others, with fewer steps left.

    A set depends on the steps that were left if these ran out, and on the keys that are being
    looked up if it came back to one of them. It is used again where it would be found alike.
    """

    def __init__(self, itself: One) -> None:
        """Let ``itself`` stand for a key in what is found for it."""
        self._itself = itself
        # Those that depend on nothing around them.
        self._whole: dict[Hashable, _Found[One]] = {}
        # By key and steps, those for which the steps ran out, or that came back to other keys; then
        # by the keys that were met, and by those that they came back to. Keys that lead to each
        # other are found from each of them, so there is one for each way to get there.
        self._partial: dict[tuple[Hashable, int], _ByContext[One]] = {}
        # The keys that are being looked up.
        self._running: set[Hashable] = set()
        # Of the innermost of these: the fewest steps that were left, the keys that were met, and
        # those that it came back to.
        self._fewest = 0
        self._met: set[Hashable] = set()
        self._back: set[Hashable] = set()

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
            self._met |= before.met
            self._back |= before.back
            return before.found
        if key in self._running:
            self._met.add(key)
            self._back.add(key)
            return {self._itself}
        return self._find(key, steps, find)

    def _before(self, key: Hashable, steps: int) -> _Found[One] | None:
        """Return what was found before where it would be found again."""
        whole = self._whole.get(key)
        if whole is not None and steps > whole.taken and self._is_alike(whole):
            return whole
        for met, by_back in self._partial.get((key, steps), {}).items():
            found = by_back.get(met & self._running)
            if found is not None:
                return found
        return None

    def _is_alike(self, before: _Found[One]) -> bool:
        """True if a set would come back to the same keys now."""
        return self._running & before.met == before.back

    def _find(self, key: Hashable, steps: int, find: Callable[[], set[One]]) -> set[One]:
        fewest, met, back = self._fewest, self._met, self._back
        self._fewest, self._met, self._back = steps, {key}, set()
        self._running.add(key)
        try:
            found = find()
            met_here, back_here = frozenset(self._met), frozenset(self._back - {key})
            own = _Found(found, steps - self._fewest, met_here, back_here)
        finally:
            self._running.discard(key)
            self._fewest = min(fewest, self._fewest)
            met |= self._met
            back |= self._back - {key}
            self._met, self._back = met, back
        if own.taken < steps and not own.back:
            self._whole[key] = own
        else:
            self._partial.setdefault((key, steps), {}).setdefault(own.met, {})[own.back] = own
        return found

    def apart(self, find: Callable[[], set[One]]) -> set[One]:
        """Return what is found with steps of its own, whatever is left of those around it."""
        around = self._fewest
        try:
            return find()
        finally:
            self._fewest = around
