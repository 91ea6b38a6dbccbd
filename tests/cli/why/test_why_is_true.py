"""The parts of what `torchperf why` says of a finding agree, and what it advises works."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import exp
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT
from weighing import weighed

from flake8_torchperf.cli.why import account as why
from flake8_torchperf.cli.why import decisions
from flake8_torchperf.cli.why.account import Account, account_of
from flake8_torchperf.cli.why.decisions import ARGUMENTS, CONFIDENCE, RULE, WORTH, Decision
from flake8_torchperf.cli.why.trials import Trials, in_line
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.row import COLD, FREE, FREQUENCY, HOT
from flake8_torchperf.judgement.rows import ROWS
from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.judgement.worth.fitted import weights
from flake8_torchperf.linter import LineValues, values_in
from flake8_torchperf.options import Options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRELUDE = "import torch\nfrom torch import Tensor, nn\n\n"
ROW_OF = {row.id: row for row in ROWS}
FILES = ("fixtures/**/*.py", "docs/*_project/*.py")
COSTS = ("per element", "per step", "per call")
# Sentences that say of a place that it is not repeated, which no place in a loop or a step is.
NOT_REPEATED = re.compile(
    r"no step repeats|runs? once|runs? seldom|beside the loop|before the steps"
)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True)
class Program:
    """A module that is linted among the files it lies with, or in a folder of its own."""

    id: str
    source: str
    is_file: bool
    settings: dict[str, Any]

    def written(self, files: Path, factory: pytest.TempPathFactory) -> str:
        """Return the path of the module, which is below ``files`` if it is one of these."""
        if self.is_file:
            return str(files / self.id)
        folder = factory.mktemp("program")
        (folder / "requirements.txt").touch()
        file = folder / "model.py"
        file.write_text(self.source, encoding="utf-8")
        return str(file)


def programs() -> Iterator[Program]:
    rows = tomllib.loads((ROOT / "tests/data/row_examples.toml").read_text(encoding="utf-8"))
    for row, example in rows.items():
        named = {key: tuple(example[key]) for key in ("hot", "cold", "sync_free") if key in example}
        for side in ("silent", "told"):
            text = PRELUDE + example[side].lstrip("\n")
            yield Program(f"{row}-{side}", text, False, named)
    for pattern in FILES:
        for file in sorted(ROOT.glob(pattern)):
            name = file.relative_to(ROOT).as_posix()
            yield Program(name, file.read_text(encoding="utf-8"), True, {})
    for page in sorted(ROOT.glob("rules/TPF*.md")):
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for number, block in enumerate(blocks):
            yield Program(f"{page.stem[:6]}-{number}", block, False, {})


@cache
def every_program() -> tuple[Program, ...]:
    return tuple(programs())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of the files alone: each question of a module would look through the repository."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "requirements.txt").touch()
    for pattern in FILES:
        for file in ROOT.glob(pattern):
            copied = folder / file.relative_to(ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copied)
    return folder


@pytest.fixture(scope="module", params=every_program(), ids=lambda program: program.id)
def trials(
    request: pytest.FixtureRequest, files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Trials:
    """The trials of one program, which the tests of it share: pytest runs these in a row."""
    program: Program = request.param
    path = program.written(files, tmp_path_factory)
    return Trials(program.source, path, replace(Options(), **program.settings))


@pytest.fixture
def _no_weights() -> Iterator[None]:
    """Nothing weighs anything: to find what would raise a worth takes two lints for each finding.

    The tests of the worth look for that with a table of their own.
    """
    with weighed({}):
        yield


@pytest.fixture(scope="module", autouse=True)
def _lines_are_interpreted_once() -> Iterator[None]:
    """What is in a line is the same under all settings that only choose what is reported."""
    known = lru_cache(maxsize=64)(values_in)

    def values(source: str, path: str, line: int, options: Options) -> LineValues:
        same = {"scope": Level.HOT, "confidence": "inferred", "min_worth": None}
        return known(source, path, line, replace(options, **same))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(why, "values_in", values)
        yield


def accounts(trials: Trials) -> list[Account]:
    """Return an account of each line in which anything is found, however seldom it runs."""
    lines = sorted({one.line for one in [*trials.everything(), *trials.found()]})
    return [account_at(trials, line) for line in lines]


@pytest.fixture(scope="module")
def accounts_under(trials: Trials) -> Callable[[Options], list[Account]]:
    """Returns the accounts of one program under given settings; the tests of it share them, too.

    Only those under the program's own settings advise: each advice takes a lint.
    """

    def under(options: Options) -> list[Account]:
        with pytest.MonkeyPatch.context() as patch:
            if options != trials.options:
                patch.setattr(decisions, "_to_silence", lambda *_: ())
                patch.setattr(decisions, "_to_tell", lambda *_: ())
            return accounts(trials.under(options))

    return cache(under)


def account_at(trials: Trials, line: int) -> Account:
    return account_of(trials.source, trials.path, line, trials.options, trials)


def cost_of(text: str) -> str:
    return next((cost for cost in COSTS if text.startswith(cost)), "")


def contradictions(account: Account, one: Decision, scope: Level) -> Iterator[str]:
    """Yield each pair of parts that can't both be true."""
    if one.frequency not in account.frequency:
        yield f"header {account.frequency!r}, frequency {one.frequency!r}"
    told = [cost for cost in COSTS if f" {cost} (" in one.message]
    if told and told[0] != cost_of(one.frequency):
        yield f"message {told[0]!r}, frequency {one.frequency!r}"
    repeated = cost_of(one.frequency) != "per call"
    if one.row in ROW_OF:
        yield from _of_row(one, repeated=repeated, scope=scope)
    elif one.row == CONFIDENCE:
        if one.reported or f"only {one.sure}" not in one.decided:
            yield f"confidence decided, and {one.decided!r}"
    elif one.row == ARGUMENTS:
        if one.reported or one.wanted:
            yield f"arguments decided, and {one.decided!r}"
    elif one.row == WORTH:
        if one.reported or one.wanted:
            yield f"worth decided, and {one.decided!r}"
    elif one.row != RULE:
        yield f"there is no row {one.row}"


def _of_row(one: Decision, *, repeated: bool, scope: Level) -> Iterator[str]:
    row = ROW_OF[one.row]
    if one.row == "convention" and one.frequency.endswith("a step by name"):
        row = row._replace(effect=HOT)  # each convention says what it does
    if one.rule != row.sentence:
        yield f"row {one.row}, sentence {one.rule!r}"
    if row.question == FREQUENCY and row.effect == COLD and cost_of(one.frequency) == "per step":
        yield f"row {one.row}, frequency {one.frequency!r}"
    if repeated and NOT_REPEATED.search(one.rule) and cost_of(one.frequency) == "per step":
        yield f"sentence {one.rule!r}, frequency {one.frequency!r}"
    if one.reported and row.effect in (COLD, FREE) and scope is not Level.COLD:
        yield f"reported by the row {one.row}, which leaves out"
    if not one.reported and row.effect == HOT:
        yield f"left out by the row {one.row}, which reports"
    if one.wanted != (row.question != FREQUENCY):
        yield f"row {one.row}, wanted {one.wanted}"
    start = re.split(r"[{`]", row.words)[0].strip()
    if row.effect != HOT and start not in one.decided and one.row != "nothing":
        yield f"row {one.row}, in words {one.decided!r}"


def loops_at(source: str) -> set[int]:
    """Return the lines in which a loop begins."""
    nodes = [*ast.walk(ast.parse(source))]
    return {node.lineno for node in nodes if isinstance(node, (*LOOPS[:3], *COMPREHENSIONS))}


@pytest.mark.usefixtures("_no_weights")
@pytest.mark.parametrize("scope", [Level.HOT, Level.COLD], ids=("default", "all"))
def test_the_parts_agree(
    trials: Trials, accounts_under: Callable[[Options], list[Account]], scope: Level
) -> None:
    loops = loops_at(trials.source)
    found = []
    for account in accounts_under(replace(trials.options, scope=scope)):
        for one in account.findings:
            found += [
                f"{account.line} {one.code} {text}" for text in contradictions(account, one, scope)
            ]
            named = re.findall(r"loop at line (\d+)", one.frequency)
            found += [
                f"{account.line}: no loop at {line}" for line in named if int(line) not in loops
            ]
    assert found == []


OPTION = re.compile(r'--(hot|cold|scope|confidence|min-worth) "?([^"`]+)"?')


def changed(text: str, options: Options) -> Options:
    """Return the settings with the options that an advice names."""
    for name, value in OPTION.findall(text):
        if name in ("hot", "cold"):
            options = replace(options, **{name: (*getattr(options, name), value)})
        elif name == "scope":
            assert value == "all"
            options = replace(options, scope=Level.COLD)
        elif name == "min-worth":
            options = replace(options, min_worth=float(value))
        else:
            options = replace(options, confidence=value)
    return options


@pytest.mark.usefixtures("_no_weights")
def test_what_would_change_a_decision_changes_it(
    trials: Trials, accounts_under: Callable[[Options], list[Account]]
) -> None:
    options = trials.options
    for account in accounts_under(options):
        for one in account.findings:
            for change in one.changes:
                with_it = changed(change, options)
                if with_it == options:
                    continue
                told = trials.under(with_it).found()
                there = any(
                    (f.code, f.column + 1) == (one.code, one.column)
                    and f.line <= account.line <= max(f.line, f.end_line)
                    for f in told
                )
                assert there is not one.reported, f"{account.line} {one.code}: {change}"


# A table in which every kind of evidence has a weight, whatever the package's own table holds.
WEIGHED = {
    "callers:none": -0.7, "callers:open": -0.3, "callers:reached": 0.8, "cost:per-call": -0.9,
    "cost:per-element": 0.9, "cost:per-step": 0.4, "kind:HostRead": 0.1, "left-out:nothing": -0.6,
    "place:branch": -0.4, "place:seldom": -0.8, "queue:empty": -1.1, "queue:much": 0.3,
    "rate:called": 0.25, "rate:own-loop": 0.5, "row:nothing": -0.35, "row:outside-steps": -0.65,
    "rule:TPF101": 0.15, "runs:given-tensors": -0.45, "runs:loop": 0.55, "sure:assumed": -1.2,
    "sure:inferred": -0.2, "trait:to-device": -0.05, "value:device": 0.6, "value:host": -1.3,
    "value:unknown": -0.15,
}  # fmt: skip


# Of the programs, one in so many is weighed in each run of the tests; the thorough ones weigh all.
WEIGHED_SELDOM = 4
WEIGHED_PROGRAMS = [
    pytest.param(program, marks=[pytest.mark.thorough] if number % WEIGHED_SELDOM else [])
    for number, program in enumerate(every_program())
]


@pytest.fixture(scope="module", params=WEIGHED_PROGRAMS, ids=lambda program: program.id)
def weighing(
    request: pytest.FixtureRequest, files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trials]:
    """The trials of one program by that table, which the tests of it share as those of `trials` do."""
    program: Program = request.param
    path = program.written(files, tmp_path_factory)
    with weighed(WEIGHED, intercept=-0.25):
        yield Trials(program.source, path, replace(Options(), **program.settings))


def test_the_worth_is_that_of_the_evidence(weighing: Trials) -> None:
    """The pieces add up to the worth that a run computes; what would raise it raises it."""
    found = {
        (one.line, one.column + 1, one.code): features(one.site, one.code)
        for one in weighing.found()
    }
    for account in accounts(weighing):
        for one in account.findings:
            worth = one.worth
            total = worth.start + sum(piece.weight for piece in worth.pieces)
            assert worth.worth == pytest.approx(1 / (1 + exp(-total)))
            sizes = [abs(piece.weight) for piece in worth.pieces]
            assert sizes == sorted(sizes, reverse=True)
            evidence = found.get((account.line, one.column, one.code))
            if one.reported and evidence is not None:
                assert {piece.feature for piece in worth.pieces} == evidence & {*WEIGHED}
            assert not [*not_raised(account.line, one, weighing)]


def not_raised(line: int, one: Decision, trials: Trials) -> Iterator[str]:
    """Yield the advice that does not remove the evidence that it names, or raises no worth."""
    for change in one.worth.changes:
        with_it = changed(change.advice, trials.options)
        if with_it == trials.options:
            continue
        (evidence,) = evidences(line, one, trials.under(with_it))
        if weights().worth(evidence) <= one.worth.worth or change.feature in evidence:
            yield f"{line} {one.code}: {change}"


def evidences(line: int, one: Decision, trials: Trials) -> set[frozenset[str]]:
    """Return the evidence on a finding in a run that reports it, or else in one of everything.

    An account would look for further advice, which takes some lints more.
    """
    for found in (trials.found(), trials.everything()):
        here = [
            other
            for other in in_line(found, line)
            if (other.code, other.column + 1) == (one.code, one.column)
        ]
        if here:
            return {features(other.site, other.code) for other in here}
    return set()


def test_what_would_tell_a_finding_of_little_worth_tells_it(weighing: Trials) -> None:
    options = replace(weighing.options, min_worth=0.8)
    trials = weighing.under(options)
    for account in accounts(trials):
        for one in account.findings:
            assert not [*contradictions(account, one, options.scope)]
            for change in one.changes if one.row == WORTH else ():
                with_it = changed(change, options)
                if with_it != options:
                    told = trials.under(with_it).found()
                    assert (one.code, one.column) in {(f.code, f.column + 1) for f in told}
