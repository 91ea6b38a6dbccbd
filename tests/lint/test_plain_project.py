"""The plain project: every wait per step is told by default, and nothing that runs less often."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from linting import HOT

from flake8_torchperf.linter import lint

PROJECT = Path(__file__).resolve().parents[2] / "docs" / "plain_project"
TRUTH = json.loads((PROJECT / "truth.json").read_text())["mistakes"]
# A file, a line, a code.
Place = tuple[str, int, str]


def places(mistake: dict[str, Any]) -> set[Place]:
    return {(mistake["file"], mistake["line"], code) for code in mistake["codes"]}


def known(mistake: dict[str, Any]) -> Any:
    """A parameter for one place of the truth."""
    return pytest.param(mistake, id=f"{mistake['file']}:{mistake['line']}")


@pytest.fixture(scope="module")
def told() -> dict[Place, str]:
    """The findings in all modules by default, with their messages."""
    return {
        (path.name, one.line, one.code): one.message
        for path in sorted(PROJECT.glob("*.py"))
        for one in lint(path.read_text(), str(path), HOT)
    }


def test_truth_names_the_lines_that_there_are() -> None:
    for mistake in TRUTH:
        line = (PROJECT / mistake["file"]).read_text().splitlines()[mistake["line"] - 1]
        assert line.strip() == mistake["text"]
        assert not mistake["told"] or mistake["often"] in ("step", "word")
    assert sum(mistake["told"] for mistake in TRUTH) == 13


@pytest.mark.parametrize("mistake", [known(one) for one in TRUTH])
def test_a_place_is_told_by_default_if_each_step_meets_it(
    mistake: dict[str, Any], told: dict[Place, str]
) -> None:
    wanted = places(mistake) if mistake["told"] else set()
    assert places(mistake) & told.keys() == wanted


def test_nothing_else_is_told(told: dict[Place, str]) -> None:
    assert told.keys() <= {place for mistake in TRUTH for place in places(mistake)}
