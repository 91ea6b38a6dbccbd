"""The measured places: judged findings with the evidence that the linter has about each.

They are kept in one file of JSON lines. The line of a source is followed by those of its places.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

NO_MATCH = "none"
# How the names of samples begin whose readers did not ask what waits before a wait, nor what runs
# the code. Their verdicts hold for what no default tells; the rest of these was judged again.
EARLIER = (
    "applications", "2026-11-23-", "2026-11-24-", "2026-11-26-", "2026-11-27-round-5",
    "2026-11-27-round-6",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A repository at a commit or a package at a version, and the digest of the linter."""

    source: str
    version: str
    linter: str


@dataclass(frozen=True)
class Measured:
    """A judged place with the features of its finding.

    ``sample`` is the file of the judgement, ``line`` and ``column`` are those of the finding, both
    from 1. ``by_default`` is True if the default scope tells the place, of whatever worth.
    ``match`` is ``exact``, ``near`` or ``none``: without a finding there are no features, and the
    place is that of the judgement.
    """

    sample: str
    path: str
    line: int
    column: int
    code: str
    verdict: str
    by_default: bool
    match: str
    features: tuple[str, ...]


Places = dict[Source, list[Measured]]


def read(file: Path) -> Places:
    """Return the measured places of a file; raises ValueError that names the line at fault."""
    found: Places = {}
    places: list[Measured] | None = None
    for number, row in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            values = json.loads(row)
            if "source" in values:
                places = found.setdefault(Source(**values), [])
            elif places is None:
                raise ValueError("a place without a source above it")
            else:
                places.append(Measured(**{**values, "features": tuple(values["features"])}))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file}:{number}: {error}") from error
    return found


def write(file: Path, found: Places) -> None:
    """Write measured places, sorted by source."""
    rows: list[str] = []
    for source in sorted(found, key=lambda one: (one.source, one.version)):
        rows.append(_compact(asdict(source)))
        rows += (_compact(asdict(place)) for place in found[source])
    file.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def with_evidence(found: Places) -> list[tuple[str, Measured]]:
    """Return the places that have a finding with features, each with its application.

    Of a place that was judged more than once, the newest verdict counts; of one that is told by
    default, only verdicts by the present definition of what is worth telling.
    """
    return [
        (source.source, place)
        for source, places in found.items()
        for place in _newest(places)
        if place.match != NO_MATCH and place.features and not _is_outdated(place)
    ]


def _is_outdated(place: Measured) -> bool:
    """True for a place told by default that was judged by an earlier definition."""
    return place.by_default and place.sample.startswith(EARLIER)


def _newest(places: Sequence[Measured]) -> list[Measured]:
    """Return one judgement of each place: that of the newest sample, by the names of the files."""
    newest: dict[tuple[str, int, int, str], Measured] = {}
    for place in sorted(places, key=lambda one: (one.sample[:1].isdigit(), one.sample)):
        newest[place.path, place.line, place.column, place.code] = place
    return [
        place
        for place in places
        if newest[place.path, place.line, place.column, place.code] is place
    ]


def _compact(value: dict[str, str | int | Sequence[str]]) -> str:
    return json.dumps(value, separators=(",", ":"))
