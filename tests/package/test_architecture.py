"""docs/architecture.md names files and functions; each of them exists."""

from __future__ import annotations

import ast
import re

import pytest
from documents import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "flake8_torchperf"
_FILE = re.compile(r"`([\w./-]+(?:\.(?:py|toml|json|md)|/))(?: --\w+)?`")
_ROW = re.compile(r"^\| (`\w+\(\)`(?:, `\w+\(\)`)*) \| `([\w/]+\.py)` \|", re.MULTILINE)
FILES = sorted(set(_FILE.findall(PAGE)))
STEPS = [(tuple(re.findall(r"\w+", names)), file) for names, file in _ROW.findall(PAGE)]


@pytest.mark.parametrize("name", FILES)
def test_the_files_it_names_exist(name: str) -> None:
    assert (ROOT / name).exists() or (PACKAGE / name).exists()


@pytest.mark.parametrize(("names", "file"), STEPS, ids=[file for _, file in STEPS])
def test_the_functions_it_names_are_in_their_files(names: tuple[str, ...], file: str) -> None:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert set(names) <= defined


def test_each_room_of_the_package_is_named() -> None:
    rooms = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert rooms <= set(FILES)


def test_files_and_steps_are_found() -> None:
    assert len(FILES) > 40
    assert len(STEPS) > 20
