"""Each row of the table of causes: what it means, and an example on either side of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT
from linting import ALL, HOT

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.findings.heat_text import row_of
from flake8_torchperf.history.profile import Profile, ProfileEntry, as_text, keyed, read
from flake8_torchperf.judgement.row import COLD, FATE, FREE, FREQUENCY, RESIDENCE, Row
from flake8_torchperf.judgement.row import HOT as MAKES_HOT
from flake8_torchperf.judgement.rows import ROWS
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.syntax.statement_lines import Statements
from flake8_torchperf.values.cause import Cause

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES: dict[str, dict[str, Any]] = tomllib.loads(
    (ROOT / "tests" / "data" / "row_examples.toml").read_text(encoding="utf-8")
)
PRELUDE = "import torch\nfrom torch import Tensor, nn\n\n"
HERE = "# here"


def test_each_cause_has_one_row_in_order() -> None:
    assert [row.cause for row in ROWS] == list(Cause)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_is_said_in_one_sentence(row: Row) -> None:
    assert row.question in (RESIDENCE, FREQUENCY, FATE)
    assert row.effect in (MAKES_HOT, COLD, FREE)
    assert row.sentence.endswith(".")
    assert ". " not in row.sentence
    assert len(row.words) <= 40


def test_each_row_has_examples() -> None:
    assert list(EXAMPLES) == [row.id for row in ROWS]


class Example:
    """A program, with a line that is marked, and the options that it is linted with."""

    def __init__(self, row: Row, side: str, folder: Path) -> None:
        self.source = PRELUDE + EXAMPLES[row.id][side].lstrip("\n")
        lines = self.source.splitlines()
        (self.line,) = [number for number, line in enumerate(lines, 1) if line.endswith(HERE)]
        self.file = folder / "model.py"
        self.file.write_text(self.source, encoding="utf-8")
        (folder / "requirements.txt").touch()
        self.options: dict[str, Any] = {
            name: tuple(EXAMPLES[row.id][name])
            for name in ("hot", "cold", "sync_free")
            if name in EXAMPLES[row.id]
        }

        ran = EXAMPLES[row.id].get(f"{side}_ran")
        if ran is not None:
            self.options["profile"] = self._profile(folder / "profile.json", ran)

    def _profile(self, path: Path, ran: dict[str, int]) -> Path:
        """Write a profile of one process in which the marked line ran and waited so often."""
        entries = [
            ProfileEntry(at.span[0], function, digest, nth, runs=1, text="", **ran)
            for at, (function, digest, nth) in keyed(Statements(self.source))
            if at.span[0] == self.line
        ]
        assert entries
        path.write_text(as_text(Profile({self.file.name: tuple(entries)})), encoding="utf-8")
        read.cache_clear()
        return path

    def found(self, options: Options) -> list[Finding]:
        """Return the findings in the marked line."""
        found = lint(self.source, str(self.file), replace(options, **self.options))
        return [one for one in found if one.line <= self.line <= one.end_line]


def rows_of(found: list[Finding]) -> set[str]:
    return {row_of(one.site.heat) for one in found}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_told(row: Row, tmp_path: Path) -> None:
    found = Example(row, "told", tmp_path).found(HOT)
    assert found
    if row.effect == MAKES_HOT:
        assert row.id in rows_of(found)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_silent(row: Row, tmp_path: Path) -> None:
    example = Example(row, "silent", tmp_path)
    assert example.found(HOT) == []
    if row.effect != MAKES_HOT:
        assert row.id in rows_of(example.found(replace(ALL, review=True)))
