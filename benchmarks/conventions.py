"""Count what each row of the table of conventions, and each other cause, hides by default.

    python benchmarks/conventions.py TREE ... [--judged FILE ...] [--repositories DIR] [--jobs N]
    python benchmarks/conventions.py TREE ... --off ROW_OR_CAUSE

A TREE is a checkout named OWNER+NAME, or the folder of a package. Its Python files are linted in
the scopes hot and all, with this checkout's linter. For each row and cause, the table shows how
many places it hides and in how many files, and how readers judged the places that they saw: A is
worth reporting, B of little worth, C wrong. It marks rows that hide fewer than five places, and
rows of which a quarter or more of at least four judged places are A.

`--judged` takes files as in `judged/`. With `--repositories`, a folder of clones as for
`judged.py`, the judged commits are linted as well. `--off` prints the findings that the default
scope gains and loses if one row or cause (`log-writers`, `ERROR`) is switched off.

Places are counted by the row or cause that hides them first; without it, another may hide them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tokenize
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fixes import extract, find_repository
from judged import Place as Judged
from judged import read_places

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.findings.match import rule_for
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.knowledge import conventions
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.values.cause import Cause

FEW = 5  # a row that hides less does not pay for the line it takes
LEAST_JUDGED = 4
TOO_MANY_A = 0.25
# Hidden by no heat: the rule wants hotter code, or calls elsewhere in the package are set-up.
RULE, PACKAGE = "the rule itself", "calls elsewhere"
# Effects for which a heat holds the cause but not the row.
UNNAMED = ("hot", "on-host", "host-tensors", "warning")
# Causes that hide nothing, or that the user chose; module level is not a function to judge.
NEVER_OFF = frozenset((
    Cause.NAMED_HOT, Cause.NAMED_COLD, Cause.ELEMENTS, Cause.LOOP, Cause.TRAINING_STEP,
    Cause.CALLED, Cause.CALLED_IN_LOOP, Cause.STEP_ROOT, Cause.GIVEN_TENSORS, Cause.MODULE_LEVEL,
))  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A Python file, by its tree and its path from there."""

    tree: str
    root: Path
    path: str


@dataclass(frozen=True)
class Place:
    """A finding of scope all; ``hidden_by`` is a row or a cause, "" where it is reported."""

    source: Source
    line: int
    column: int
    code: str
    hidden_by: str = ""


@dataclass(frozen=True)
class Linted:
    """The findings of a file, or what went wrong in linting it."""

    places: tuple[Place, ...] = ()
    error: str = ""


@dataclass
class Count:
    """The places that one row or cause hides."""

    places: int = 0
    files: set[Source] = field(default_factory=set)
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def share_of_a(self) -> float:
        """The share of the judged places that are worth reporting."""
        judged = self.verdicts.total()
        return self.verdicts["A"] / judged if judged else 0.0

    @property
    def marks(self) -> str:
        """The objections to the row or cause, as text."""
        few = f"fewer than {FEW}" if self.places < FEW else ""
        wrong = self.verdicts.total() >= LEAST_JUDGED and self.share_of_a >= TOO_MANY_A
        return ", ".join(filter(None, (few, "hides A" if wrong else "")))


def sources(root: Path) -> list[Source]:
    """Return the Python files of a tree, in a fixed order."""
    tree = root.resolve().name.replace("+", "/", 1)
    found = sorted(root.rglob("*.py"))
    return [Source(tree, root, one.relative_to(root).as_posix()) for one in found]


def told(source: Source, scope: Level, off: str = "") -> list[Finding]:
    """Return the findings in a file, without the row or cause ``off``.

    Raises SyntaxError and other errors if it is not valid Python.
    """
    file = source.root / source.path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tokenize.open(file) as text:
            return lint(text.read(), str(file), Options(scope=scope, without=(off,), min_worth=0.0))


def lint_file(look: Callable[[Source], list[Place]], source: Source) -> Linted:
    """Return the result of ``look`` for a file; empty if it is not valid Python."""
    try:
        return Linted(tuple(look(source)))
    except (SyntaxError, ValueError, OSError):
        return Linted()
    except Exception as error:
        return Linted(error=f"{source.tree}/{source.path}: {type(error).__name__}: {error}")


def reported(source: Source, off: str = "") -> list[Place]:
    """Return the findings of the default scope, each wait of a row by itself."""
    found = told(source, Level.HOT, off)
    return [Place(source, one.line, one.column + 1, one.code) for one in found]


def everything(source: Source) -> list[Place]:
    """Return the findings of scope all, with the row or cause that hides each by default."""
    default = reported(source)
    known = {(one.line, one.column, one.code) for one in default}
    known |= {(one.line, 0, one.code) for one in default if not one.column}
    places = []
    for one in told(source, Level.COLD):
        keys = {(one.line, one.column + 1, one.code), (one.line, 0, one.code)}
        name = "" if keys & known else hidden_by(one)
        places.append(Place(source, one.line, one.column + 1, one.code, name))
    return places


def hidden_by(finding: Finding) -> str:
    """Return the row or the cause that leaves a finding out by default."""
    heat = finding.site.heat
    if heat.level is Level.COLD:
        return heat.name if heat.hidden_by is Cause.CONVENTION else heat.hidden_by.name
    return RULE if rule_for(finding.site, load_catalogue(), Level.HOT) is None else PACKAGE


def lint_all(
    found: Iterable[Source], look: Callable[[Source], list[Place]], jobs: int
) -> list[Linted]:
    """Lint files in separate processes."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(partial(lint_file, look), found, chunksize=8))


def counted(places: Iterable[Place], judged: Sequence[Judged]) -> dict[str, Count]:
    """Return what each row and cause hides, with every row of the table that heats name."""
    rows = conventions.load_conventions().rows
    counts = {row.id: Count() for row in rows if row.effect not in UNNAMED}
    by_line: dict[tuple[str, str, int], list[Place]] = defaultdict(list)
    for one in places:
        for path in names(one.source):
            by_line[one.source.tree, path, one.line].append(one)
        if one.hidden_by:
            count = counts.setdefault(one.hidden_by, Count())
            count.places += 1
            count.files.add(one.source)
    for row in judged:
        there = by_line.get((row.source, row.path, row.line), [])
        same = [one for one in there if one.code == row.code] or there
        if same and all(one.hidden_by for one in same):
            counts[same[0].hidden_by].verdicts[row.verdict] += 1
    return counts


def names(source: Source) -> tuple[str, str]:
    """Return a file's path as a judgement may give it: from the tree, or as in site-packages."""
    return source.path, f"{source.tree}/{source.path}"


def print_table(places: Sequence[Place], judged: Sequence[Judged]) -> None:
    """Print how much each row or cause hides, the most first."""
    hidden = sum(bool(one.hidden_by) for one in places)
    print(f"{len(places) - hidden} places reported by default, {hidden} hidden")
    print(f"{'row or cause':26} places  files    A    B    C  share of A")
    counts = counted(places, judged)
    for name, count in sorted(counts.items(), key=lambda pair: (-pair[1].places, pair[0])):
        verdicts = "".join(f"{count.verdicts[one]:5}" for one in "ABC")
        share = f"{count.share_of_a:.0%}" if count.verdicts else "-"
        row = f"{name:26} {count.places:6} {len(count.files):6}{verdicts} {share:>11}"
        print(f"{row}  {count.marks}".rstrip())
    unnamed = [row.id for row in conventions.load_conventions().rows if row.effect in UNNAMED]
    print(f"not counted by row, ask with --off: {', '.join(unnamed)}")


def print_difference(
    before: Sequence[Linted], after: Sequence[Linted], judged: Sequence[Judged], name: str
) -> None:
    """Print the places that come, and those that go, where a row or cause is off, by code."""
    verdicts = {(one.source, one.path, one.line, one.code): one for one in judged}
    was, now = ({place for one in side for place in one.places} for side in (before, after))
    for sign, title, found in (("+", "come", now - was), ("-", "go", was - now)):
        codes = Counter(one.code for one in found)
        if found or sign == "+":
            by_code = "".join(f", {code} {count}" for code, count in sorted(codes.items()))
            print(f"without {name}: {len(found)} {title}{by_code}")
        for one in sorted(found, key=lambda p: (p.code, p.source.tree, p.source.path, p.line)):
            keys = [(one.source.tree, path, one.line, one.code) for path in names(one.source)]
            verdict = next((verdicts[key] for key in keys if key in verdicts), None)
            said = f" {verdict.verdict}: {verdict.why}" if verdict else ""
            place = f"{one.source.tree}/{one.source.path}:{one.line}:{one.column}"
            print(f"{sign} {one.code} {place}{said}")


def to_ask(places: Iterable[Place], found: Sequence[Source], name: str) -> list[Source]:
    """Return the files in which a row or cause hides something; all if no heat names the row."""
    rows = {row.id: row for row in conventions.load_conventions().rows}
    if name == Cause.CONVENTION.name or (name in rows and rows[name].effect in UNNAMED):
        return list(found)
    holding = {one.source for one in places if one.hidden_by in (name, PACKAGE)}
    return [one for one in found if one in holding]


def judged_trees(judged: Iterable[Judged], clones: Path, folder: Path) -> list[Path]:
    """Return the judged commits of repositories, each in a folder of its own."""
    commits: Mapping[tuple[str, str], None] = dict.fromkeys(
        (one.source, one.version) for one in judged if not one.packaged
    )
    trees = []
    for source, commit in commits:
        repository = find_repository(clones, source)
        tree = folder / commit / source.replace("/", "+")
        try:
            if repository is None:
                raise OSError(f"it is not in {clones}")
            tree.mkdir(parents=True)
            extract(repository, commit, ".", tree)
            (tree / ".git").mkdir()  # so that the linter recognises the project
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"left out: {source} {commit[:10]}: {error}", file=sys.stderr)
            continue
        trees.append(tree)
    return trees


def parse() -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    parser.add_argument("--judged", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--repositories", type=Path, metavar="DIR", help="clones of judged ones")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--off", default="", metavar="NAME", help="a row's id, or a cause")
    arguments = parser.parse_args()
    rows = {row.id for row in conventions.load_conventions().rows}
    causes = {cause.name for cause in Cause if cause not in NEVER_OFF}
    if arguments.off and arguments.off not in rows | causes:
        parser.error(f"--off: {arguments.off} is no row, nor one of {', '.join(sorted(causes))}")
    if missing := [tree for tree in arguments.trees if not tree.is_dir()]:
        parser.error(f"there is no folder {missing[0]}")
    if not arguments.trees and not arguments.repositories:
        parser.error("name a tree, or --judged and --repositories")
    return arguments


def ablate(trees: Iterable[Path], judged: Sequence[Judged], arguments: argparse.Namespace) -> int:
    """Lint and print; return the number of files that the linter failed in."""
    found = [source for tree in trees for source in sources(tree)]
    linted = lint_all(found, everything, arguments.jobs)
    places = [place for one in linted for place in one.places]
    if arguments.off:
        asked = to_ask(places, found, arguments.off)
        before = lint_all(asked, reported, arguments.jobs)
        after = lint_all(asked, partial(reported, off=arguments.off), arguments.jobs)
        print_difference(before, after, judged, arguments.off)
        linted += after
    else:
        print_table(places, judged)
    errors = [one.error for one in linted if one.error]
    for error in errors:
        print(f"conventions: {error}", file=sys.stderr)
    return len(errors)


def main() -> int:
    """Read, lint, print; returns the exit status."""
    arguments = parse()
    try:
        judged = [place for file in arguments.judged for place in read_places(file)]
    except (OSError, ValueError) as error:
        print(f"conventions: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        trees = list(arguments.trees)
        if arguments.repositories:
            trees += judged_trees(judged, arguments.repositories, Path(name))
        return 1 if ablate(trees, judged, arguments) else 0


if __name__ == "__main__":
    sys.exit(main())
