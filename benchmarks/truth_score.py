"""Compares labels with flake8's output: statements found, missed, and wrongly flagged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truth_labels import Labels, Place

from flake8_torchperf.syntax.statement_lines import Statements

NEUTRAL = ("host", "extra", "iter", "fill")
_LINE = re.compile(r"^(?P<path>.+?):(?P<row>\d+):(?P<column>\d+): (?P<code>[A-Z]+\d+)\b")


@dataclass(frozen=True)
class Flags:
    """Flagged statements and their codes. ``maybe`` are those flagged only in a part that running
    the statement need not evaluate."""

    codes: Mapping[Place, frozenset[str]]
    maybe: frozenset[Place]


@dataclass(frozen=True)
class Score:
    """Sets of statements; ``positive`` maps each that synchronised to its kinds."""

    positive: Mapping[Place, frozenset[str]]
    hits: frozenset[Place]
    false: frozenset[Place]
    neutral: int
    flags: Flags

    @property
    def misses(self) -> frozenset[Place]:
        """Statements that synchronised and carry no finding."""
        return frozenset(self.positive) - self.hits

    @property
    def recall(self) -> float:
        """Hits by statements that synchronised; 0 where none did."""
        return len(self.hits) / len(self.positive) if self.positive else 0.0

    @property
    def precision(self) -> float:
        """Hits by flagged statements that decide; 0 where there are none."""
        flagged = len(self.hits) + len(self.false)
        return len(self.hits) / flagged if flagged else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Return (found, all) of the statements that synchronised in each way."""
        kinds = {kind for kinds in self.positive.values() for kind in kinds}
        places = {kind: {p for p, own in self.positive.items() if kind in own} for kind in kinds}
        return {kind: (len(own & self.hits), len(own)) for kind, own in places.items()}

    def by_rule(self) -> dict[str, tuple[int, int, int]]:
        """Return by code: hits, flagged statements that decide, and hits that no other rule has."""
        decided = self.hits | self.false
        codes = {code for place in decided for code in self.flags.codes[place]}
        rows = {}
        for code in codes:
            own = {place for place in decided if code in self.flags.codes[place]}
            alone = {p for p in own & self.hits if len(self.flags.codes[p]) == 1}
            rows[code] = (len(own & self.hits), len(own), len(alone))
        return rows

    def describe(self, place: Place) -> str:
        """Return a statement with its kinds or its codes."""
        said = self.positive.get(place) or self.flags.codes.get(place, frozenset())
        return f"{place[0]}:{place[1]} [{','.join(sorted(said))}]"

    def as_data(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {
            "sync": len(self.positive),
            "hits": len(self.hits),
            "false": len(self.false),
            "neutral": self.neutral,
            "recall": self.recall,
            "precision": self.precision,
            "f1": self.f1,
            "by_kind": self.by_kind(),
            "by_rule": self.by_rule(),
        }


def read_flags(report: Iterable[str], folder: Path, codes: Sequence[str]) -> Flags:
    """Return the flagged statements of the files below a folder."""
    root = folder.resolve()
    statements: dict[str, Statements] = {}
    found: dict[Place, set[str]] = {}
    certain: set[Place] = set()
    for line in report:
        match = _LINE.match(line)
        path = Path(match["path"]).resolve() if match else root
        if match is None or not match["code"].startswith(tuple(codes)):
            continue
        if not path.is_relative_to(root):
            continue
        name = path.relative_to(root).as_posix()
        if name not in statements:
            statements[name] = Statements(path.read_text(encoding="utf-8"))
        row, column = int(match["row"]), int(match["column"]) - 1
        place = (name, *statements[name].span(row))
        found.setdefault(place, set()).add(match["code"])
        if not statements[name].conditional(row, column):
            certain.add(place)
    frozen = {place: frozenset(own) for place, own in found.items()}
    return Flags(frozen, frozenset(frozen) - certain)


def score(labels: Labels, flags: Flags) -> Score:
    """Compare labels and flags; the docstring of the module `truth` defines the scores."""
    positive = labels.places("sync")
    neutral = {place for name in NEUTRAL for place in labels.places(name)}
    neutral = (neutral | flags.maybe) - set(positive)
    flagged = set(flags.codes) & labels.executed_places()
    hits = flagged & set(positive)
    false = flagged - hits - neutral
    return Score(positive, frozenset(hits), frozenset(false), len(flagged & neutral), flags)


def single_line(folder: Path, place: Place) -> str:
    """Return a statement's source on one line, shortened."""
    path, first, last = place
    lines = (folder / path).read_text(encoding="utf-8").splitlines()[first - 1 : last]
    return " ".join(line.strip() for line in lines)[:140]
