"""Programs of a few files each: which bodies their steps run, and which values these see.

``program/*.md`` and ``flows/*.md`` hold the cases; ``program/README.md`` describes their format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from linting import ALL, HOT

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

FOLDERS = [Path(__file__).parent / name for name in ("program", "flows")]

_FILE_NAME = re.compile(r"`([\w./-]+)`:")
_FENCE = re.compile(r"```(python|yaml|toml|json|sh)?")
_NOT_YET = "Not yet: "
_MARK = re.compile(r"# (?:error: (TPF\d{3}(?:, TPF\d{3})*)(?: (per [a-z]+))?|no error)$")


@dataclass(slots=True)
class Case:
    """One program: its files by name, and why today's linter does not satisfy it, if so."""

    name: str
    files: dict[str, str] = field(default_factory=dict)
    not_yet: str = ""


def cases_in(page: Path) -> list[Case]:
    """Return the cases of a page; the files before its first case belong to each of them."""
    shared = Case(page.stem)
    cases: list[Case] = []
    name: str | None = None
    block: list[str] | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{page.name}:{number}"
        case = cases[-1] if cases else shared
        if block is not None:
            if line != "```":
                block.append(line)
                continue
            assert name is not None
            case.files[name] = "\n".join(block) + "\n"
            name = block = None
        elif line.startswith("```"):
            assert _FENCE.fullmatch(line), f"{where}: {line} is no block of a program"
            assert name, f"{where}: name the file above, as in `train.py`:"
            block = []
        elif match := _FILE_NAME.fullmatch(line):
            name = match[1]
        elif line.startswith("## "):
            cases.append(Case(f"{page.stem}: {line[3:]}", dict(shared.files)))
        elif line.startswith(_NOT_YET):
            case.not_yet = line.removeprefix(_NOT_YET)
    assert block is None, f"{page.name}: the last block has no end"
    return cases


def marked(text: str) -> dict[int, frozenset[str]]:
    """Return the codes that each marked line must carry by default: none for ``# no error``."""
    return {line: codes for line, (codes, _) in _marks(text).items()}


def rates(text: str) -> dict[int, str]:
    """Return how often marked lines run, as the messages must say, where that is stated."""
    return {line: rate for line, (_, rate) in _marks(text).items() if rate}


def _marks(text: str) -> dict[int, tuple[frozenset[str], str]]:
    found: dict[int, tuple[frozenset[str], str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _MARK.search(line):
            found[number] = frozenset((match[1] or "").split(", ")) - {""}, match[2] or ""
        elif "error" in line.partition("#")[2]:
            pytest.fail(f"{line}: no mark")
    return found


def findings_in(file: Path, options: Options) -> list[Finding]:
    """Return what the linter reports in a file."""
    return lint(file.read_text(encoding="utf-8"), str(file), options)


def codes_by_line(findings: Iterable[Finding]) -> dict[int, frozenset[str]]:
    """Return the codes of findings by their line."""
    found: dict[int, frozenset[str]] = {}
    for one in findings:
        found[one.line] = found.get(one.line, frozenset()) | {one.code}
    return found


CASES = [
    case
    for folder in FOLDERS
    for page in sorted(folder.glob("[!R]*.md"))
    for case in cases_in(page)
]


def _parametrized(case: Case) -> object:
    marks = (
        [
            pytest.mark.xfail(
                strict=True, raises=(AssertionError, pytest.fail.Exception), reason=case.not_yet
            )
        ]
        if case.not_yet
        else []
    )
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [_parametrized(case) for case in CASES])
def test_what_steps_run_is_told(case: Case, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name, text in case.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    rows = {name: marked(text) for name, text in case.files.items() if name.endswith(".py")}
    linted = {name: lines for name, lines in rows.items() if lines}
    if not linted:
        pytest.fail("the case marks no line")
    for name, lines in linted.items():
        # A line that never waits shows nothing, whether or not it is expected to be told.
        whole = codes_by_line(findings_in(tmp_path / name, ALL))
        for line, codes in lines.items():
            if not whole.get(line, frozenset()) >= codes or line not in whole:
                pytest.fail(f"{name}:{line} does not wait: scope `all` has {whole}")
    told = {name: findings_in(tmp_path / name, HOT) for name in linted}
    found = {name: codes_by_line(findings) for name, findings in told.items()}
    wanted = {
        name: {line: codes for line, codes in lines.items() if codes}
        for name, lines in linted.items()
    }
    assert found == wanted
    for name, findings in told.items():
        stated = rates(case.files[name])
        for one in findings:
            assert f" {stated.get(one.line, '')}" in one.message


def test_names_of_cases_differ() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
