"""The model on applications that it has not seen: its order, and what each threshold tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log

import numpy as np

from worth_table.demanded import DEMANDED, as_many
from worth_table.places import Measured
from worth_table.regression import Evidence, Model, fit

VERDICTS = "ABC"
STRENGTHS = (1.0, 3.0, 10.0, 30.0)
# The share of what is worth telling that the default scope keeps.
KEPT = 0.9
# Families of features, and features, that have no weight: with them, places of applications that
# the model has not seen are ordered no better (see `report.families`). Others say the same: the
# cost, the rate and the place what the rows and callers do, and the rule what is read and where.
UNWEIGHED = frozenset((
    "callers:known", "callers:open", "callers:reached", "kind", "leader:wait", "row", "runs",
    "sure",
))  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """A measured place of an application, with the worth that a model gives it."""

    application: str
    place: Measured
    worth: float

    @property
    def is_worth(self) -> bool:
        """True if the reader found the place worth telling."""
        return self.place.verdict == "A"


Pairs = Sequence[tuple[str, Measured]]


def family_of(feature: str) -> str:
    """Return the family of a feature: ``rule`` of ``rule:TPF101``."""
    return feature.partition(":")[0]


class Experiment:
    """Judged places, ``without`` the features of one family such as ``rule``.

    Those of `UNWEIGHED` have no weight, but for the family ``beside``.
    """

    def __init__(self, pairs: Pairs, without: str = "", beside: str = "") -> None:
        pairs = self._pairs = as_many(pairs)
        left_out = UNWEIGHED - {beside} | {without}
        self._features = [
            [name for name in place.features if left_out.isdisjoint((name, family_of(name)))]
            for _, place in pairs
        ]
        self._applications = np.array([application for application, _ in pairs])
        self._evidence = Evidence(self._features, [place.verdict == "A" for _, place in pairs])
        self._models: dict[float, Model] = {}
        self._left_out: dict[float, list[Judged]] = {}

    def model(self, strength: float) -> Model:
        """Return the model of all places."""
        if strength not in self._models:
            every = np.ones(len(self._pairs), dtype=bool)
            self._models[strength] = fit(self._evidence, every, strength)
        return self._models[strength]

    def unseen(self, applications: Collection[str], strength: float) -> list[Judged]:
        """Return the places of some applications with their worth, fitted to the others."""
        theirs = np.isin(self._applications, sorted(applications))
        model = fit(self._evidence, ~theirs, strength, self.model(strength))
        return [
            Judged(application, place, model.worth(features))
            for (application, place), features in zip(self._pairs, self._features, strict=True)
            if application in applications
        ]

    def left_out(self, strength: float) -> list[Judged]:
        """Return each place with the worth by a model that has not seen its application."""
        if strength not in self._left_out:
            applications = sorted({application for application, _ in self._pairs} - {DEMANDED})
            self._left_out[strength] = [
                one for name in applications for one in self.unseen([name], strength)
            ]
        return self._left_out[strength]

    def best_strength(self) -> tuple[float, dict[float, float]]:
        """Return the strength of the smallest loss on applications left out, and each loss."""
        losses = {strength: log_loss(self.left_out(strength)) for strength in STRENGTHS}
        return min(losses, key=lambda strength: losses[strength]), losses


def log_loss(judged: Sequence[Judged]) -> float:
    """Return the mean of minus the logarithm of what the model gives to each verdict."""
    return -sum(log(one.worth if one.is_worth else 1 - one.worth) for one in judged) / len(judged)


def area(judged: Sequence[Judged]) -> float:
    """Return the share of pairs, one of A and one of the rest, that the worth orders rightly."""
    worth = np.array([one.worth for one in judged if one.is_worth])
    rest = np.array([one.worth for one in judged if not one.is_worth])
    if not len(worth) or not len(rest):
        return float("nan")
    above = worth[:, None] > rest
    same = worth[:, None] == rest
    return float((above + same / 2).mean())


def threshold(judged: Sequence[Judged], kept: float) -> float:
    """Return the largest worth, rounded down, from which that share of A is told."""
    worths = sorted((one.worth for one in judged if one.is_worth), reverse=True)
    return int(worths[max(ceil(kept * len(worths) - 1e-9), 1) - 1] * 1000) / 1000


def told(judged: Iterable[Judged], least: float = 0.0) -> tuple[int, int, int]:
    """Return how many A, B and C of some places have at least some worth."""
    counts = Counter(one.place.verdict for one in judged if one.worth >= least)
    return counts["A"], counts["B"], counts["C"]


def by_default(judged: Iterable[Judged]) -> list[Judged]:
    """Return the places that the default scope tells without a threshold of the worth."""
    return [one for one in judged if one.place.by_default]
