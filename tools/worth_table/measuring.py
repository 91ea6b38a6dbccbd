"""Lints judged places and notes the evidence about each finding."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import fixes
import judged

import flake8_torchperf
from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.judgement.worth.fitted import TABLE
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from worth_table.places import NO_MATCH, Measured, Source

PROCESSES = 2
# The files that the linter looks at: programs, notebooks, documents, settings and how they start.
ENDINGS = (
    ".py", ".ipynb", ".json", ".yaml", ".yml", ".toml", ".cfg", ".txt", ".sh", ".md", ".rst",
)  # fmt: skip
SCOPES = (Options(min_worth=0.0), Options(min_worth=0.0, scope=Level.COLD, review=True))


@dataclass(frozen=True)
class Job:
    """The judged places of one source, each with the name of its sample."""

    source: Source
    places: tuple[tuple[str, judged.Place], ...]


@dataclass(frozen=True)
class Folders:
    """Where the sources lie: clones, and folders of installed packages."""

    repositories: Path
    packages: tuple[Path, ...]


def linter_digest() -> str:
    """Return a digest of the linter's sources and data; the fitted table does not count."""
    root = Path(flake8_torchperf.__file__).parent
    digest = hashlib.sha256()
    for file in sorted((*root.rglob("*.py"), *root.rglob("*.toml"), *root.rglob("*.json"))):
        if file != TABLE:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def jobs(samples: Sequence[Path]) -> list[Job]:
    """Return the judged places of some samples by source."""
    groups: dict[Source, list[tuple[str, judged.Place]]] = defaultdict(list)
    linter = linter_digest()
    for sample in samples:
        for place in judged.read_places(sample):
            groups[Source(place.source, place.version, linter)].append((sample.stem, place))
    return [Job(source, tuple(places)) for source, places in groups.items()]


def measure(wanted: Sequence[Job], folders: Folders) -> Iterator[tuple[Job, list[Measured] | str]]:
    """Yield the measured places of each job as it is done, or why its source is left out."""
    # The longest first, so that the processes end together.
    ordered = sorted(wanted, key=lambda job: -len(job.places))
    with ProcessPoolExecutor(PROCESSES) as pool:
        yield from zip(ordered, pool.map(partial(_measured, folders), ordered), strict=True)


def _measured(folders: Folders, job: Job) -> list[Measured] | str:
    first = job.places[0][1]
    paths = {place.path for _, place in job.places}
    try:
        if first.packaged:
            return _linted(_package(folders.packages, first, paths), job)
        repository = fixes.find_repository(folders.repositories, first.source)
        if repository is None:
            return f"it is not in {folders.repositories}"
        with tempfile.TemporaryDirectory() as name:
            fixes.extract(repository, first.version, ".", Path(name), ENDINGS)
            (Path(name) / ".git").mkdir()  # so that the linter recognises the project
            return _linted(Path(name), job)
    except (OSError, subprocess.CalledProcessError) as error:
        return str(error)


def _package(folders: Sequence[Path], place: judged.Place, paths: set[str]) -> Path:
    for folder in folders:
        for info in folder.glob(f"{place.source.replace('-', '_')}-*.dist-info"):
            version = info.name.removesuffix(".dist-info").partition("-")[2]
            if version.partition("+")[0] == place.version:
                return judged.package_root(folder, place.source, place.version, paths)
    raise OSError(f"version {place.version} is not in the folders of --packages")


def _linted(folder: Path, job: Job) -> list[Measured]:
    """Return the places of a source whose files lie in a folder."""
    found: list[Measured] = []
    by_path: dict[str, list[tuple[str, judged.Place]]] = defaultdict(list)
    for sample, place in job.places:
        by_path[place.path].append((sample, place))
    for path, places in sorted(by_path.items()):
        with tokenize.open(folder / path) as file:
            text = file.read()
        told, everything = (lint(text, str(folder / path), options) for options in SCOPES)
        taken = frozenset(place.line for _, place in places)
        for sample, place in sorted(places, key=lambda pair: (pair[1].line, pair[1].code, pair[0])):
            found.append(_place(sample, place, told, everything, taken))
    return found


def _place(
    sample: str,
    place: judged.Place,
    told: Sequence[Finding],
    everything: Sequence[Finding],
    taken: frozenset[int],
) -> Measured:
    printed = [judged.Finding(f.line, f.column + 1, f.code) for f in (*told, *everything)]
    match, line = judged.recognise(place, printed, taken)
    by_default = _nearest(place, line, told)
    finding = by_default or _nearest(place, line, everything)
    return Measured(
        sample,
        place.path,
        place.line if finding is None else finding.line,
        place.column if finding is None else finding.column + 1,
        place.code,
        place.verdict,
        by_default is not None,
        NO_MATCH if finding is None else match,
        () if finding is None else tuple(sorted(features(finding.site, finding.code))),
    )


def _nearest(place: judged.Place, line: int, findings: Sequence[Finding]) -> Finding | None:
    """Return the finding of the place's code in a line whose column is nearest."""
    same = [one for one in findings if one.line == line and one.code == place.code]
    return min(same, key=lambda one: abs(one.column + 1 - place.column), default=None)
