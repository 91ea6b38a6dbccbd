"""Logistic regression with an L2 penalty, in which the sign of some weights is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flake8_torchperf.judgement.row import HOT
from flake8_torchperf.judgement.rows import ROWS

Floats = NDArray[np.float64]

# Features of fewer places, and smaller weights, are noise.
FEWEST_PLACES = 10
SMALLEST_WEIGHT = 0.05
MOST_ROUNDS, MOST_HALVINGS = 100, 40
# The gradient at which the fit ends, for each place; weights are then exact to six decimals.
FLAT = 1e-9

RAISING = frozenset((
    "callers:reached", "cost:per-element", "rate:around-step", "rate:own-loop", "steps:train",
    "sure:stated", "value:chosen", "value:device",
))  # fmt: skip
LOWERING = frozenset((
    "callers:elsewhere", "callers:none", "leader:call", "leader:caller", "leader:copy",
    "leader:kept", "place:branch", "place:off-by-default", "place:seldom", "queue:behind-once",
    "queue:copy-behind", "queue:empty", "queue:kept-behind", "queue:little", "queue:on-some-path",
    "steps:evaluate", "sure:assumed", "value:beside-host", "value:host", "value:unshown",
))  # fmt: skip
_LOWERING_ROWS = frozenset(f"row:{row.id}" for row in ROWS if row.effect != HOT)


def sign(feature: str) -> int:
    """Return 1 if a feature may not lower the worth, -1 if it may not raise it, else 0."""
    if feature in RAISING:
        return 1
    if feature in LOWERING or feature in _LOWERING_ROWS or feature.startswith("left-out:"):
        return -1
    return 0


class Evidence:
    """The features of some places as a matrix, and which of them are worth telling."""

    def __init__(self, features: Sequence[Collection[str]], is_worth: Sequence[bool]) -> None:
        self.names = sorted({name for some in features for name in some})
        numbers = {name: number for number, name in enumerate(self.names)}
        self.applies = np.zeros((len(features), len(self.names)))
        for row, some in enumerate(features):
            self.applies[row, [numbers[name] for name in some]] = 1
        self.is_worth = np.array(is_worth, dtype=float)
        self.signs = np.array([sign(name) for name in self.names])


@dataclass(frozen=True)
class Model:
    """The weights of an additive model; those of features without one are 0."""

    intercept: float
    weights: Mapping[str, float]

    def worth(self, features: Collection[str]) -> float:
        """Return the share of places with these features that are worth telling."""
        total = self.intercept + sum(self.weights.get(name, 0.0) for name in sorted(features))
        return float(1 / (1 + np.exp(-total)))


def fit(
    evidence: Evidence, rows: NDArray[np.bool_], strength: float, near: Model | None = None
) -> Model:
    """Return the model of some places; ``strength`` is that of the penalty on large weights.

    There is one smallest loss. It is found sooner from the weights of a model that is ``near``.
    """
    applies, is_worth = evidence.applies[rows], evidence.is_worth[rows]
    kept = np.flatnonzero(applies.sum(axis=0) >= FEWEST_PLACES)
    found = np.zeros(len(kept) + 1)
    if near is not None:
        named = (near.weights.get(evidence.names[number], 0.0) for number in kept)
        found = np.array([near.intercept, *named])
    while True:
        problem = _Problem(
            np.column_stack([np.ones(len(applies)), applies[:, kept]]),
            is_worth,
            np.array([0, *evidence.signs[kept]]),
            np.array([0.0, *(strength for _ in kept)]),
        )
        found = problem.solved(found)
        large = np.abs(found[1:]) >= SMALLEST_WEIGHT
        if large.all():
            names = [evidence.names[number] for number in kept]
            return Model(float(found[0]), dict(zip(names, map(float, found[1:]), strict=True)))
        kept, found = kept[large], found[np.array([True, *large])]


@dataclass(frozen=True)
class _Problem:
    """The loss of weights: that of the logistic function and of the penalty on their squares.

    The first weight is the intercept. A weight with a sign of 1 or -1 is not on the other side
    of 0.
    """

    applies: Floats
    is_worth: Floats
    signs: NDArray[np.int_]
    penalty: Floats

    def solved(self, weights: Floats) -> Floats:
        """Return the weights of the smallest loss by Newton's method, projected on the signs.

        Bertsekas, "Projected Newton methods for optimization problems with simple constraints"
        (1982).
        """
        for _ in range(MOST_ROUNDS):
            shares = 1 / (1 + np.exp(-self.applies @ weights))
            slope = self.applies.T @ (shares - self.is_worth) + self.penalty * weights
            free = ~((weights == 0) & (self.signs * slope > 0))
            if np.max(np.abs(slope[free])) < FLAT * len(self.is_worth):
                break
            # Of a matrix and its own transpose, whose product is symmetric, half is computed.
            part = self.applies[:, free]
            part *= np.sqrt(shares * (1 - shares))[:, None]
            curve = part.T @ part + np.diag(self.penalty[free])
            step = np.zeros(len(weights))
            step[free] = -np.linalg.solve(curve, slope[free])
            moved = self._moved(weights, step)
            if moved is weights:  # so would be each further round
                break
            weights = moved
        return weights

    def _moved(self, weights: Floats, step: Floats) -> Floats:
        """Return the weights behind the longest halved step that lowers the loss, or the same."""
        before = self._loss(weights)
        for halvings in range(MOST_HALVINGS):
            moved: Floats = weights + step / 2**halvings
            moved[self.signs * moved < 0] = 0
            if self._loss(moved) < before:
                return moved
        return weights

    def _loss(self, weights: Floats) -> float:
        totals = self.applies @ weights
        of_verdicts = np.logaddexp(0, totals) - self.is_worth * totals
        return float(of_verdicts.sum() + (self.penalty * weights * weights).sum() / 2)
