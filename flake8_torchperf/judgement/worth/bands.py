"""Three bands of worth, by which code quality reports and editors show a severity."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.worth.features import OUTRIGHT
from flake8_torchperf.judgement.worth.fitted import weights

if TYPE_CHECKING:
    from collections.abc import Collection


class Band(IntEnum):
    """A band of worth, the lowest first."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


# The least worth in each band but the lowest: most such findings were worth telling, or many.
HIGH, MEDIUM = 0.6, 0.3
_OF_COST = {
    "cost:per-element": Band.HIGH,
    "cost:per-step": Band.MEDIUM,
    "cost:per-request": Band.MEDIUM,
}


def band_of(evidence: Collection[str]) -> Band:
    """Return the band of a finding with these features.

    What the user, a contract or a profile decided is at least as severe as its cost.
    """
    worth = weights().worth(evidence)
    band = Band.HIGH if worth >= HIGH else Band.MEDIUM if worth >= MEDIUM else Band.LOW
    if OUTRIGHT.isdisjoint(evidence):
        return band
    return max(band, *(_OF_COST.get(one, Band.LOW) for one in evidence))
