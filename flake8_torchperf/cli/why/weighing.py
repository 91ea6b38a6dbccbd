"""The worth of a finding in pieces: each piece of evidence with its weight, and what changes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING

from flake8_torchperf.cli.why.trials import function_of, is_measured, often, same
from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.judgement.worth.fitted import weights
from flake8_torchperf.judgement.worth.sentences import sentence_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.cli.why.trials import Trials
    from flake8_torchperf.findings.finding import Finding

# For so many of the pieces that lower the worth most, the account says what would change them.
CHANGED = 2


@dataclass(frozen=True)
class Piece:
    """A feature that applies to a finding, its weight, and a sentence about it."""

    feature: str
    weight: float
    sentence: str


@dataclass(frozen=True)
class Advice:
    """Advice after which a piece of evidence no longer applies."""

    feature: str
    advice: str


@dataclass(frozen=True)
class Worth:
    """The worth of a finding: the logistic function of ``start`` and the weights of ``pieces``.

    The pieces with the largest weights come first, and ``changes`` would raise the worth.
    ``follows`` is the line of the wait on which the finding follows with hardly any work between,
    0 without one.
    """

    worth: float
    start: float
    pieces: tuple[Piece, ...]
    changes: tuple[Advice, ...]
    follows: int = 0


def worth_of(finding: Finding, trials: Trials) -> Worth:
    """Return the worth of a finding, and the evidence for it."""
    table = weights()
    names = {rule.code: rule.name for rule in load_catalogue(trials.options.rules).rules}
    evidence = features(finding.site, finding.code)
    pieces = [Piece(one, size, sentence_of(one, names)) for one, size in table.pieces(evidence)]
    worth = table.worth(evidence)
    changes = tuple(_changes(finding, pieces, trials))
    return Worth(worth, table.intercept, tuple(pieces), changes, finding.site.leader_line)


def rounded_down(finding: Finding) -> float:
    """Return the worth of a finding in hundredths, never more than it is."""
    return floor(weights().worth(features(finding.site, finding.code)) * 100) / 100


def _changes(finding: Finding, pieces: list[Piece], trials: Trials) -> Iterator[Advice]:
    """Yield what removes those pieces that the user can change, the lowest weights first."""
    lowering = (piece.feature for piece in pieces if piece.weight < 0)
    left = CHANGED
    possible = _Possible(finding, trials)
    for feature in lowering:
        advice = possible.without(feature) if left else ""
        if advice:
            left -= 1
            yield Advice(feature, advice)


class _Possible:
    """The changes that a user can make to a finding; settings are tried when first needed."""

    def __init__(self, finding: Finding, trials: Trials) -> None:
        self._finding = finding
        self._trials = trials
        self._evidence = features(finding.site, finding.code)
        self._worth = weights().worth(self._evidence)
        self._hot: frozenset[str] | None = None

    def without(self, feature: str) -> str:
        """Return what removes a feature and raises the worth; "" if nothing is known to."""
        if feature.startswith("sure:") and self._raises(self._stated(), feature):
            return "an annotation that says it is a tensor"
        if self._raises(self._named_hot(), feature):
            return f'`--hot "{function_of(self._finding)}"`, where the function runs often'
        if is_measured(self._finding, self._trials):
            measured = features(often(self._finding.site), self._finding.code)
            if self._raises(measured, feature):
                return "a profile of `torchperf run` in which the line ran and waited often"
        return ""

    def _raises(self, evidence: frozenset[str], feature: str) -> bool:
        return feature not in evidence and weights().worth(evidence) > self._worth

    def _stated(self) -> frozenset[str]:
        others = {one for one in self._evidence if not one.startswith("sure:")}
        return frozenset((*others, "sure:stated"))

    def _named_hot(self) -> frozenset[str]:
        """Return the evidence if the function were named as hot."""
        if self._hot is None:
            hot = (*self._trials.options.hot, function_of(self._finding))
            found = [*self._trials.found(hot=hot), *self._trials.everything(hot=hot)]
            there = next((one for one in found if same(one, self._finding)), self._finding)
            self._hot = features(there.site, there.code)
        return self._hot
