"""Logistic regression with an L2 penalty, in which the sign of some weights is given."""

from __future__ import annotations

from collections import Counter
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
MOST_ROUNDS = 100
# The gradient at which the fit ends, for each place; weights are then exact to six decimals.
FLAT = 1e-9

RAISING = frozenset((
    "callers:reached", "cost:per-element", "rate:around-step", "rate:own-loop", "sure:stated",
    "value:device",
))  # fmt: skip
LOWERING = frozenset((
    "callers:none", "place:branch", "place:seldom", "queue:empty", "queue:little", "sure:assumed",
    "value:beside-host", "value:host",
))  # fmt: skip
_LOWERING_ROWS = frozenset(f"row:{row.id}" for row in ROWS if row.effect != HOT)


def sign(feature: str) -> int:
    """Return 1 if a feature may not lower the worth, -1 if it may not raise it, else 0."""
    if feature in RAISING:
        return 1
    if feature in LOWERING or feature in _LOWERING_ROWS or feature.startswith("left-out:"):
        return -1
    return 0


@dataclass(frozen=True)
class Example:
    """The features of a place, whether it is worth telling, and its application."""

    application: str
    features: frozenset[str]
    is_worth: bool


@dataclass(frozen=True)
class Model:
    """The weights of an additive model; those of features without one are 0."""

    intercept: float
    weights: Mapping[str, float]

    def worth(self, features: Collection[str]) -> float:
        """Return the share of places with these features that are worth telling."""
        total = self.intercept + sum(self.weights.get(name, 0.0) for name in sorted(features))
        return float(1 / (1 + np.exp(-total)))


def fit(examples: Sequence[Example], strength: float) -> Model:
    """Return the model of some places; ``strength`` is that of the penalty on large weights."""
    counts = Counter(name for one in examples for name in one.features)
    names = sorted(name for name, count in counts.items() if count >= FEWEST_PLACES)
    while True:
        model = _fit(examples, names, strength)
        kept = [name for name in names if abs(model.weights[name]) >= SMALLEST_WEIGHT]
        if kept == names:
            return model
        names = kept


def _fit(examples: Sequence[Example], names: Sequence[str], strength: float) -> Model:
    applies = np.array([[1.0, *(name in one.features for name in names)] for one in examples])
    is_worth = np.array([float(one.is_worth) for one in examples])
    signs = np.array([0, *map(sign, names)])
    penalty = np.array([0.0, *(strength for _ in names)])
    found = _minimised(applies, is_worth, signs, penalty)
    return Model(float(found[0]), dict(zip(names, map(float, found[1:]), strict=True)))


def _minimised(applies: Floats, is_worth: Floats, signs: NDArray[np.int_], penalty: Floats) -> Floats:
    """Return the weights of the smallest loss by Newton's method, projected on the signs.

    Bertsekas, "Projected Newton methods for optimization problems with simple constraints" (1982).
    """
    weights = np.zeros(len(signs))
    for _ in range(MOST_ROUNDS):
        shares = 1 / (1 + np.exp(-applies @ weights))
        slope = applies.T @ (shares - is_worth) + penalty * weights
        free = ~((weights == 0) & (signs * slope > 0))
        if np.max(np.abs(slope[free])) < FLAT * len(is_worth):
            break
        part = applies[:, free]
        curve = (part.T * (shares * (1 - shares))) @ part + np.diag(penalty[free])
        step = np.zeros(len(signs))
        step[free] = -np.linalg.solve(curve, slope[free])
        weights = _moved(applies, is_worth, signs, penalty, weights, step)
    return weights


def _moved(
    applies: Floats,
    is_worth: Floats,
    signs: NDArray[np.int_],
    penalty: Floats,
    weights: Floats,
    step: Floats,
) -> Floats:
    """Return the weights behind the longest halved step that lowers the loss."""

    def loss(at: Floats) -> float:
        totals = applies @ at
        worth = np.logaddexp(0, totals) - is_worth * totals
        return float(worth.sum() + (penalty * at * at).sum() / 2)

    before = loss(weights)
    for halvings in range(40):
        at = weights + step / 2**halvings
        at[signs * at < 0] = 0
        if loss(at) < before:
            return at
    return weights
