"""The text that `fit` prints: how well the worth orders places, and what each threshold tells."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from worth_table.evaluation import (
    KEPT,
    UNWEIGHED,
    VERDICTS,
    Experiment,
    Judged,
    Pairs,
    area,
    by_default,
    family_of,
    threshold,
    told,
)
from worth_table.regression import Model

# The number of rounds that are the newest samples.
NEWEST = 3
_ROUND = re.compile(r"[\d-]+-round-(?P<number>\d+)")
SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)
TENTHS = tuple(number / 10 for number in range(10, 0, -1))


def order(pairs: Pairs, judged: Sequence[Judged], strength: float) -> Iterator[str]:
    """Yield how well the worth orders all places, those told by default, and the newest ones."""
    samples = _newest({place.sample for _, place in pairs})
    newest = {application for application, place in pairs if place.sample in samples}
    unseen = [
        one for one in Experiment(pairs).unseen(newest, strength) if one.place.sample in samples
    ]
    places = {
        "all places": judged,
        "told by default": by_default(judged),
        "the newest samples": unseen,
        "the newest samples, told by default": by_default(unseen),
    }
    yield "area under the curve, A against the rest, of applications left out:"
    for name, some in places.items():
        yield f"  {name:38} {area(some):.3f}, {len(some)} places, {_counts(told(some))}"


def _newest(samples: Collection[str]) -> list[str]:
    """Return the names of the last rounds among some samples."""
    rounds = [found for found in map(_ROUND.fullmatch, samples) if found is not None]
    rounds.sort(key=lambda one: int(one["number"]))
    return [one.string for one in rounds[-NEWEST:]]


def thresholds(judged: Sequence[Judged], shares: Sequence[float]) -> Iterator[str]:
    """Yield what is told at the thresholds that keep some shares of A."""
    for share in shares:
        least = threshold(judged, share)
        yield f"  {share:4.0%} of A kept, worth >= {least:.3f}: {_counts(told(judged, least))}"


def applications(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield what is told of each application by default, and with the threshold."""
    shown = by_default(judged)
    least = threshold(shown, KEPT)
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in shown:
        groups[one.application].append(one)
    for name, some in sorted(groups.items()):
        before, after = _counts(told(some)), _counts(told(some, least))
        yield f"  {name:50} {area(some):5.2f}  {before} -> {after}"


def families(pairs: Pairs, judged: Sequence[Judged], strength: float) -> Iterator[str]:
    """Yield the area under the curve without each family of features, or with one that has none."""
    whole, default = area(judged), area(by_default(judged))
    names = {family_of(name) for _, place in pairs for name in place.features}
    for family in sorted(names):
        beside = family in UNWEIGHED
        trial = Experiment(pairs, beside=family) if beside else Experiment(pairs, family)
        other = trial.left_out(strength)
        parts = [area(other), area(by_default(other))]
        gains = [parts[0] - whole, parts[1] - default]
        if not beside:
            gains = [-gain for gain in gains]
        yield (
            f"  {family:10} all {parts[0]:.3f} ({gains[0]:+.3f}), "
            f"by default {parts[1]:.3f} ({gains[1]:+.3f}){', has no weight' if beside else ''}"
        )


def weights(pairs: Pairs, model: Model) -> Iterator[str]:
    """Yield the weights, the largest first, with the verdicts of the places of each feature."""
    counts = {name: Counter[str]() for name in model.weights}
    for _, place in pairs:
        for name in place.features:
            if name in counts:
                counts[name][place.verdict] += 1
    for name, weight in sorted(model.weights.items(), key=lambda pair: (-abs(pair[1]), pair[0])):
        some = counts[name]
        yield f"  {weight:+.2f} {name:32} {_counts((some['A'], some['B'], some['C']))}"


def _counts(counts: tuple[int, int, int]) -> str:
    share = f"{counts[0] / sum(counts):.0%}" if sum(counts) else "none"
    listed = ", ".join(f"{n} {verdict}" for n, verdict in zip(counts, VERDICTS, strict=True))
    return f"{listed} ({share} A)"
