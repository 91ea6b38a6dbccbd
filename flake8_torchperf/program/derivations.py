"""Sets that are found from one another in a bounded number of steps, each as seldom as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

One = TypeVar("One")


class _Kept(NamedTuple, Generic[One]):
    """A set, and the steps that finding it took, or those that were left for it."""

    found: set[One]
    steps: int


class Derivations(Generic[One]):
    """The sets of one kind, by key; finding one may ask for others, with fewer steps left.

    One that was found without running out of steps, and without coming back to a key that was being
    looked up, depends on nothing around it: it stays. The others count within one question.
    """

    def __init__(self, itself: One) -> None:
        """Let ``itself`` stand for a key in what is found for it."""
        self._itself = itself
        self._whole: dict[Hashable, _Kept[One]] = {}
        self._of_question: dict[Hashable, _Kept[One]] = {}
        self._running: set[Hashable] = set()
        # Counts each use of something that holds for the question alone.
        self._borrowed = 0
        # The fewest steps that were left since the last key was looked up.
        self._fewest = 0

    def begin(self) -> None:
        """Begin a question: drop what counted within the last one."""
        self._of_question.clear()

    def are_spent(self, steps: int) -> bool:
        """True if no steps are left; what is being found depends on how many there were."""
        if steps < self._fewest:
            self._fewest = steps
        return steps <= 0

    def of(self, key: Hashable, steps: int, find: Callable[[], set[One]]) -> set[One]:
        """Return what is found for a key with so many steps left; ``find`` finds it."""
        whole = self._whole.get(key)
        if whole is not None and steps > whole.steps:
            self.are_spent(steps - whole.steps)
            return whole.found
        before = self._of_question.get(key)
        if before is not None and before.steps >= steps:
            self._borrowed += 1
            return before.found
        if key in self._running:
            self._borrowed += 1
            return {self._itself}
        return self._found(key, steps, find)

    def _found(self, key: Hashable, steps: int, find: Callable[[], set[One]]) -> set[One]:
        around, self._fewest = self._fewest, steps
        borrowed = self._borrowed
        self._running.add(key)
        try:
            found = find()
        finally:
            self._running.discard(key)
        if self._borrowed == borrowed and self._fewest > 0:
            self._whole[key] = _Kept(found, steps - self._fewest)
        else:
            self._of_question[key] = _Kept(found, steps)
        self._fewest = min(around, self._fewest)
        return found

    def apart(self, find: Callable[[], set[One]]) -> set[One]:
        """Return what is found with steps of its own, whatever is left of those around it."""
        around = self._fewest
        try:
            return find()
        finally:
            self._fewest = around
