"""In the child: searches for the candidates that make the flagged lines run.

Changes one dimension (a parameter and its candidates) at a time. Assignments are scored by (flagged
lines reached, call came to its end, loops that ran more than once, different lines executed): how
far a call got before it raised shows whether a change was an improvement.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec

Assignment: TypeAlias = "tuple[int, ...]"
Score: TypeAlias = "tuple[int, bool, int, int]"

MAX_ATTEMPTS = 400
NULL_SPEC: InputSpec = {"kind": "value", "value": None}


@dataclass(frozen=True)
class Dimension:
    """One choice: a parameter's spec, or how the function is called."""

    name: str
    candidates: Sequence[InputSpec]
    start: int = 0


@dataclass
class AssignmentSearch:
    """``evaluate`` runs an assignment and scores it; ``enough`` is true of the best score."""

    dimensions: Sequence[Dimension]
    evaluate: Callable[[Assignment], Score]
    enough: Callable[[Score], bool]
    seconds: float
    attempts: int = MAX_ATTEMPTS
    seen: dict[Assignment, Score] = field(default_factory=dict)
    starts: Sequence[Assignment] = ()
    _allowed: int = 0

    def run(self) -> Assignment:
        """Return the best assignment found within the attempts and seconds allowed."""
        end = time.monotonic() + self.seconds
        best = tuple(one.start for one in self.dimensions)
        self._try(best)
        self._allowed = self.attempts
        for start in self.starts:
            if self._over(end) or self.enough(self.seen[best]):
                return best
            if self._try(start) > self.seen[best]:
                best = start
        # The first climb leaves attempts for improvements that need several changes.
        self._allowed = (len(self.seen) + self.attempts) // 2
        for step in (self._climb, self._alike, self._climb, self._at_random):
            best = step(best, end)
            self._allowed = self.attempts
            if self.enough(self.seen[best]):
                break
        return best

    def _try(self, assignment: Assignment) -> Score:
        if assignment not in self.seen:
            self.seen[assignment] = self.evaluate(assignment)
        return self.seen[assignment]

    def _over(self, end: float) -> bool:
        return len(self.seen) >= self._allowed or time.monotonic() > end

    def _climb(self, best: Assignment, end: float) -> Assignment:
        improved = True
        while improved:
            improved = False
            for position, dimension in enumerate(self.dimensions):
                for choice in range(len(dimension.candidates)):
                    if self._over(end) or self.enough(self.seen[best]):
                        return best
                    changed = (*best[:position], choice, *best[position + 1 :])
                    if self._try(changed) > self.seen[best]:
                        best, improved = changed, True
        return best

    def _alike(self, best: Assignment, end: float) -> Assignment:
        """Leave out all arguments that may be None, then give every tensor the same shape.

        Guards often object to two options at once, and operations on several tensors need shapes
        that agree: no single change shows an improvement there.
        """
        best = self._move(best, end, lambda spec: spec == NULL_SPEC, _given)
        for shape in _shapes(self.dimensions):
            if self._over(end) or self.enough(self.seen[best]):
                return best
            best = self._move(best, end, partial(_has_shape, shape), _is_tensor)
        return best

    def _move(
        self,
        best: Assignment,
        end: float,
        wanted: Callable[[InputSpec], bool],
        movable: Callable[[InputSpec], bool],
    ) -> Assignment:
        """Give every movable parameter its first wanted candidate, if that is an improvement."""
        if self._over(end) or self.enough(self.seen[best]):
            return best
        changed = tuple(
            chosen
            if not movable(d.candidates[chosen])
            else next((i for i, r in enumerate(d.candidates) if wanted(r)), chosen)
            for d, chosen in zip(self.dimensions, best, strict=True)
        )
        return changed if self._try(changed) > self.seen[best] else best

    def _at_random(self, best: Assignment, end: float) -> Assignment:
        """Change two or three dimensions at once, where no single change shows an improvement."""
        chance = random.Random(len(self.dimensions))
        movable = [i for i, d in enumerate(self.dimensions) if len(d.candidates) > 1]
        rounds = 0
        while movable and not self._over(end) and not self.enough(self.seen[best]):
            rounds += 1
            if rounds > 4 * self.attempts:  # a small space is exhausted before the attempts are
                break
            changed = list(best)
            for position in chance.sample(movable, min(len(movable), chance.choice((2, 2, 3)))):
                changed[position] = chance.randrange(len(self.dimensions[position].candidates))
            if self._try(tuple(changed)) > self.seen[best]:
                best = tuple(changed)
        return best


def chosen(dimensions: Sequence[Dimension], assignment: Assignment) -> Mapping[str, InputSpec]:
    """Return the specs that an assignment picks, by dimension name."""
    return {
        dimension.name: dimension.candidates[choice]
        for dimension, choice in zip(dimensions, assignment, strict=True)
    }


def _shape(spec: InputSpec) -> tuple[object, ...] | None:
    if spec["kind"] == "tensor" and spec["dtype"] in ("float", "bool"):
        return tuple(spec["shape"])
    if spec["kind"] == "list":
        return _shape(spec["item"])
    return None


def _given(spec: InputSpec) -> bool:
    return bool(spec["kind"] != "default")


def _is_tensor(spec: InputSpec) -> bool:
    return _shape(spec) is not None


def _has_shape(shape: tuple[object, ...], spec: InputSpec) -> bool:
    return _shape(spec) == shape


def _shapes(dimensions: Sequence[Dimension]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for dimension in dimensions:
        for spec in dimension.candidates:
            shape = _shape(spec)
            if shape is not None and shape not in found:
                found.append(shape)
    return found
