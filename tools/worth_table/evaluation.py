"""The model on applications that it has not seen: its order, and what each threshold tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log

import numpy as np

from worth_table.places import Measured
from worth_table.regression import Example, fit

VERDICTS = "ABC"
STRENGTHS = (1.0, 3.0, 10.0, 30.0)
# The share of what is worth telling that the default scope keeps.
KEPT = 0.8


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


def as_examples(pairs: Pairs, without: str = "") -> list[Example]:
    """Return places as a model sees them, ``without`` the features of a family such as ``rule:``."""
    return [
        Example(
            application,
            frozenset(n for n in place.features if not without or not n.startswith(without)),
            place.verdict == "A",
        )
        for application, place in pairs
    ]


def left_out(pairs: Pairs, strength: float, without: str = "") -> list[Judged]:
    """Return each place with the worth by a model that has not seen its application."""
    applications = sorted({application for application, _ in pairs})
    worths = {}
    examples = as_examples(pairs, without)
    for application in applications:
        model = fit([one for one in examples if one.application != application], strength)
        for number, one in enumerate(examples):
            if one.application == application:
                worths[number] = model.worth(one.features)
    return [Judged(*pair, worths[number]) for number, pair in enumerate(pairs)]


def unseen(pairs: Pairs, applications: Collection[str], strength: float) -> list[Judged]:
    """Return the places of some applications with the worth by a model that saw none of them."""
    model = fit([one for one in as_examples(pairs) if one.application not in applications], strength)
    return [
        Judged(application, place, model.worth(place.features))
        for application, place in pairs
        if application in applications
    ]


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


def best_strength(pairs: Pairs) -> tuple[float, dict[float, float]]:
    """Return the strength of the smallest loss on applications left out, and the loss of each."""
    losses = {strength: log_loss(left_out(pairs, strength)) for strength in STRENGTHS}
    return min(losses, key=lambda strength: losses[strength]), losses
