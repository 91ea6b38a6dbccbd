"""Findings that have to be told, whatever the names of functions, classes and files.

The weights are fitted to them as to places that readers found worth telling, but they are no sample
of what programs hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from worth_table.demanded_programs import IMPORTS, METHOD, SCALING, TRAINING
from worth_table.measuring import linter_digest
from worth_table.places import Measured, Source

DEMANDED = "demanded"
# Each counts as much as so many places: with none, the index in the method is not told.
TIMES = 5
_CODES = re.compile(r"# (TPF\d+(?:, TPF\d+)*)$")
PROGRAMS = {
    f"{name}.py": IMPORTS + text.format(name=name)
    for name, text in (("method", METHOD), ("scaling", SCALING), ("training", TRAINING))
}


def measure() -> tuple[Source, list[Measured]]:
    """Return the findings with their evidence. Raises ValueError if one is missing."""
    found = [place for name in sorted(PROGRAMS) for place in _measured(name)]
    return Source(DEMANDED, "", linter_digest()), found


def _measured(name: str) -> Iterator[Measured]:
    text = PROGRAMS[name]
    told = lint(text, name, Options(min_worth=0.0))
    for number, line in enumerate(text.splitlines(), 1):
        codes = _CODES.search(line)
        for code in codes[1].split(", ") if codes else ():
            yield _place(name, number, code, told)


def _place(name: str, line: int, code: str, told: Iterable[Finding]) -> Measured:
    for one in told:
        if (one.line, one.code) == (line, code):
            evidence = tuple(sorted(features(one.site, code)))
            place = (DEMANDED, name, line, one.column + 1, code, "A")
            return Measured(*place, by_default=True, match="exact", features=evidence)
    raise ValueError(f"{name}:{line}: {code} is not found")


def as_many(pairs: Iterable[tuple[str, Measured]]) -> list[tuple[str, Measured]]:
    """Return the places, each of these as often as it counts."""
    return [pair for pair in pairs for _ in range(TIMES if pair[0] == DEMANDED else 1)]
