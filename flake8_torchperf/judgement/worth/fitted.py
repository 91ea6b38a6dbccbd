"""The worth of a finding: the share of such findings that engineers found worth telling.

It is the logistic function of a sum of weights, one for each feature that applies. The weights are
fitted by ``tools/fit_worth.py`` on places that people judged; nobody edits them.
"""

from __future__ import annotations

import sys
from functools import cache
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

TABLE = Path(__file__).parents[1] / "worth.toml"


class Weights(NamedTuple):
    """The weight of each feature that has one, and a limit for `--min-worth`.

    Nine in ten findings that are worth telling, in applications left out, are of that worth.
    """

    intercept: float
    threshold: float
    of: Mapping[str, float]

    def worth(self, features: Collection[str]) -> float:
        """Return the worth of a finding with these features, from 0 to 1."""
        total = self.intercept + sum(weight for _, weight in self.pieces(features))
        return 1 / (1 + exp(-total))

    def pieces(self, features: Collection[str]) -> list[tuple[str, float]]:
        """Return the features that have a weight, those of the largest weight first."""
        found = [(name, self.of[name]) for name in sorted(features) if name in self.of]
        return sorted(found, key=lambda pair: -abs(pair[1]))


@cache
def weights() -> Weights:
    """Return the table of the package."""
    table = _read(TABLE)
    return Weights(table["intercept"], table["threshold"], table["weights"])


def _read(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return table
