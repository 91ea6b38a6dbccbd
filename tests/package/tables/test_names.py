"""knowledge/names.toml holds classes of names that the package asks for, and no others."""

from __future__ import annotations

import re

import pytest
from documents import ROOT

from flake8_torchperf.knowledge.names import NAMES_PATH, names_of
from flake8_torchperf.knowledge.toml_file import read_toml

ROWS = read_toml(NAMES_PATH)
_ASKED = re.compile(r"\bnames_of\(\s*[\"']([\w-]+)[\"']")


def test_the_package_asks_for_each_class_and_for_no_other() -> None:
    files = (ROOT / "flake8_torchperf").rglob("*.py")
    asked = {one for file in files for one in _ASKED.findall(file.read_text(encoding="utf-8"))}
    assert asked == set(ROWS)


@pytest.mark.parametrize("kind", ROWS)
def test_a_class_says_what_its_names_have_in_common(kind: str) -> None:
    row = ROWS[kind]
    assert set(row) == {"says", "names"}
    assert row["says"].endswith(".")
    assert len(row["names"]) == len(set(row["names"]))
    assert names_of(kind) == set(row["names"])


def test_two_classes_hold_different_names() -> None:
    held: dict[frozenset[str], str] = {}
    for kind in ROWS:
        assert held.setdefault(names_of(kind), kind) == kind


def test_an_unknown_class_is_an_error() -> None:
    with pytest.raises(KeyError):
        names_of("no-such-class")
