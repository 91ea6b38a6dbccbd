"""Places that people judged: which of them the linter reports, by verdict.

    python benchmarks/judged.py --repositories DIR [--packages DIR] [--file FILE ...] [--rows]

`--repositories` holds clones as OWNER/NAME or OWNER+NAME (bare ones too, or one folder deeper) with
history, `--packages` installed or unpacked packages. The judgements are the files of `judged/`; its
README says what a row holds. The Python files of a row's commit are written to a temporary folder,
and the judged files are linted there, in the default scope and in scope `all`. A place counts as
reported if its line has a finding. A place whose line has no finding of its code in scope `all` is
matched to the nearest one of that code and column, at most five lines away.

The last lines compare the rounds: samples of applications that the project had never named, with
the verdicts on what the linter reported when they were drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixes import extract, find_repository

FOLDER = Path(__file__).with_name("judged")
# The samples of applications that the project had never named, judged before it learned from them.
ROUNDS = ("first-sight", "round-")
VERDICTS = {"A": "worth telling", "B": "true, of little worth", "C": "wrong"}
SCOPES = {"default": "hot", "all": "all"}
NEAR = 5  # a reader who names another line of the same statement is rarely further away


@dataclass(frozen=True)
class Place:
    """A judged finding. ``version`` is the commit of a repository or the release of a package.

    ``column`` is 0 where the sample does not say it.
    """

    source: str
    version: str
    packaged: bool
    path: str
    line: int
    column: int
    code: str
    verdict: str
    why: str

    @property
    def name(self) -> str:
        """The place as the report names it."""
        return f"{self.source} {self.version[:10]} {self.path}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Finding:
    """The place at which flake8 printed a code."""

    line: int
    column: int
    code: str


@dataclass(frozen=True)
class Answer:
    """A judged place with its ``match`` (``exact``, ``near``, ``none``) and who reports it."""

    place: Place
    match: str
    line: int
    scopes: frozenset[str]


Found = Mapping[str, Mapping[str, Sequence[Finding]]]  # by scope, then by path


def as_place(row: Mapping[str, Any]) -> Place:
    """Return the place of a row; raises KeyError or ValueError if the row is malformed."""
    packaged = "package" in row
    source = row["package"] if packaged else row["repository"]
    version = row["version"] if packaged else row["commit"]
    if row["verdict"] not in VERDICTS:
        raise ValueError(f"verdict {row['verdict']} is none of {', '.join(VERDICTS)}")
    at = (row["path"], int(row["line"]), int(row.get("column", 0)), row["code"])
    return Place(source, version, packaged, *at, row["verdict"], row["why"])


def read_places(file: Path) -> list[Place]:
    """Return the places of a file; raises ValueError that names the line at fault."""
    places = []
    for number, row in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            places.append(as_place(json.loads(row)))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file}:{number}: {error!r}") from error
    return places


def package_root(folder: Path, package: str, version: str, paths: Iterable[str]) -> Path:
    """Return where paths of a package start; raises OSError if it is missing or another version."""
    pattern = f"{re.sub(r'[-_.]+', '_', package)}-*.dist-info"
    for root in (folder / package, folder):
        if all((root / path).is_file() for path in paths):
            others = [one.name for one in root.glob(pattern)]
            if not others or any(f"-{version}." in one or f"-{version}+" in one for one in others):
                return root
            raise OSError(f"{others[0]} in {root} is not version {version}")
    raise OSError(f"its judged files are not in {folder}")


def lint(folder: Path, paths: Iterable[str], scope: str) -> dict[str, list[Finding]]:
    """Return the findings in some files of a folder; raises RuntimeError if flake8 fails."""
    command = [sys.executable, "-m", "flake8", "--isolated", "--select=TPF", "-j1"]
    command += [f"--torchperf-scope={scope}", "--format=%(row)d %(col)d %(code)s %(path)s"]
    command += sorted(paths)
    # A package may hold a `logging.py`, which is not meant to be Python's (3.11 and newer).
    apart = {**os.environ, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=apart
    )
    # Python itself exits with 1 where flake8 is not installed, and prints no finding.
    if done.returncode != bool(done.stdout) or " TPF900 " in done.stdout:
        raise RuntimeError(f"flake8 failed in {folder}: {done.stderr.strip()}{done.stdout[:300]}")
    found: dict[str, list[Finding]] = defaultdict(list)
    for row in done.stdout.splitlines():
        line, column, code, path = row.split(" ", 3)
        found[path].append(Finding(int(line), int(column), code))
    return found


def recognise(place: Place, found: Sequence[Finding], taken: frozenset[int]) -> tuple[str, int]:
    """Return how and at which line a judged place is recognised in the findings of scope `all`.

    ``taken`` are lines that other judgements of the file are about.
    """
    same = [one for one in found if one.code == place.code]
    if any(one.line == place.line for one in same):
        return "exact", place.line
    near = [one.line for one in same if one.column == place.column and one.line not in taken]
    line = min(near, key=lambda line: abs(line - place.line), default=None)
    if line is None or abs(line - place.line) > NEAR:
        return "none", place.line
    return "near", line


def answer(place: Place, found: Found, places: Sequence[Place]) -> Answer:
    """Return the scopes that report a place of one source."""
    taken = frozenset(one.line for one in places if one.path == place.path)
    match, line = recognise(place, found["all"].get(place.path, ()), taken)
    scopes = [
        name
        for name, by_path in found.items()
        if any(one.line == line for one in by_path.get(place.path, ()))
    ]
    return Answer(place, match, line, frozenset(scopes))


def answers(places: Sequence[Place], arguments: argparse.Namespace) -> list[Answer]:
    """Return the answers for the places of one source and version; raises OSError and others."""
    one, paths = places[0], {place.path for place in places}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if one.packaged:
            if arguments.packages is None:
                raise OSError("no --packages")
            folder = package_root(arguments.packages, one.source, one.version, paths)
        else:
            repository = find_repository(arguments.repositories, one.source)
            if repository is None:
                raise OSError(f"it is not in {arguments.repositories}")
            extract(repository, one.version, ".", folder)
            (folder / ".git").mkdir()  # so that the linter recognises the project
            if missing := [path for path in paths if not (folder / path).is_file()]:
                raise OSError(f"{sorted(missing)[0]} is not in its commit")
        found = {way: lint(folder, paths, scope) for way, scope in SCOPES.items()}
    return [answer(place, found, places) for place in places]


def share(part: int, whole: int) -> str:
    """Return a share in per cent, with its two numbers."""
    return f"{part / whole:.1%} ({part} of {whole})" if whole else "none reported"


def print_table(told: Sequence[Answer]) -> None:
    """Print the number of places by verdict, and how many of them each scope reports."""
    by_scope = {way: Counter(a.place.verdict for a in told if way in a.scopes) for way in SCOPES}
    known = Counter(one.place.verdict for one in told)
    print(f"{'verdict':26} places  default      all")
    for verdict, meaning in VERDICTS.items():
        counts = [by_scope[way][verdict] for way in SCOPES]
        print(f"{verdict} {meaning:24} {known[verdict]:6}" + "".join(f"{n:9}" for n in counts))
    for way, counter in by_scope.items():
        print(f"precision, {way}: {share(counter['A'], counter.total())} worth telling")
    matches = Counter(one.match for one in told)
    print(
        f"{len(told)} places: {matches['exact']} at their line, {matches['near']} matched to a "
        f"line near by, {matches['none']} without a finding in scope all"
    )


def print_rows(told: Iterable[Answer]) -> None:
    """Print each place with its verdict, the scopes that report it, and the judge's reason."""
    for one in told:
        reported = next((way for way in SCOPES if way in one.scopes), "silent")
        moved = f" (line {one.line})" if one.match == "near" else ""
        place = one.place
        print(f"{place.verdict} {reported:8} {place.name} {place.code}{moved}: {place.why}")


def print_rounds(files: Iterable[Path]) -> None:
    """Print the first figures of each round, side by side."""
    for file in files:
        if not any(name in file.name for name in ROUNDS):
            continue
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        counts = Counter((row["by_default"], row["verdict"]) for row in rows)
        told, hidden = ([counts[shown, verdict] for verdict in VERDICTS] for shown in (True, False))
        precision = share(told[0], sum(told))
        print(f"{file.stem}: by default {told} A, B, C, {precision}; hidden {hidden}")


def parse() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description="Score the linter on places that people judged.")
    parser.add_argument("--repositories", type=Path, required=True, metavar="DIR")
    parser.add_argument("--packages", type=Path, metavar="DIR")
    parser.add_argument("--file", type=Path, action="append", help="default: all in judged/")
    parser.add_argument("--rows", action="store_true", help="name each place")
    return parser.parse_args()


def by_source(files: Iterable[Path]) -> list[list[Place]]:
    """Return the places of some files, those of one source and version together."""
    groups: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for file in files:
        for place in read_places(file):
            groups[place.source, place.version].append(place)
    return [places for _, places in sorted(groups.items())]


def main() -> int:
    """Lint, print; returns the exit status."""
    arguments = parse()
    told: list[Answer] = []
    try:
        for places in by_source(arguments.file or sorted(FOLDER.glob("*.jsonl"))):
            try:
                told += answers(places, arguments)
            except (subprocess.CalledProcessError, OSError) as error:
                name = f"{places[0].source} {places[0].version[:10]}"
                print(f"left out: {name}, {len(places)} places: {error}")
    except (OSError, RuntimeError, ValueError) as error:
        print(f"judged: {error}", file=sys.stderr)
        return 1
    if arguments.rows:
        print_rows(told)
    print_table(told)
    print_rounds(arguments.file or sorted(FOLDER.glob("*.jsonl")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
