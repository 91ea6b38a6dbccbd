"""docs/architecture.md and CONTRIBUTING.md name files and functions; each of them exists."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest
from documents import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "flake8_torchperf"
_FILE = re.compile(r"`([\w./-]+(?:\.(?:py|toml|json|md)|/))(?: --\w+)?`")
_ROW = re.compile(r"^\| (`\w+\(\)`(?:, `\w+\(\)`)*) \| `([\w/]+\.py)` \|", re.MULTILINE)
FILES = sorted(set(_FILE.findall(PAGE)))
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_FOLDER = re.compile(r"`((?:flake8_torchperf|rules|tests)/[\w./-]*)`")
GUIDED = sorted(set(_FOLDER.findall(GUIDE)))
# The rooms of the table, and of the contract that holds them to their order.
_ROOMS = re.compile(r"^\| ((?:`\w+(?:/|\.py)`(?:, )?)+) \|", re.MULTILINE)
_LAYER = re.compile(r"flake8_torchperf\.(\w+)")
# Modules of a few constants, which the page leaves out.
SMALL = {"digest", "reserved"}
# Test modules that a folder may hold, as AGENTS.md has it of the files of a room.
MOST = 16
STEPS = [(tuple(re.findall(r"\w+", names)), file) for names, file in _ROW.findall(PAGE)]


@pytest.mark.parametrize("name", FILES)
def test_the_files_it_names_exist(name: str) -> None:
    assert (ROOT / name).exists() or (PACKAGE / name).exists()


@pytest.mark.parametrize("name", GUIDED)
def test_the_files_that_the_guide_names_exist(name: str) -> None:
    assert (ROOT / name).exists()


def test_the_rooms_are_in_the_order_in_which_they_import() -> None:
    contract = (ROOT / ".importlinter").read_text(encoding="utf-8").partition("layers =\n")[2]
    layers = [set(_LAYER.findall(one)) for one in contract.partition("\n\n")[0].splitlines()]
    _, _, page = PAGE.partition("| room |")
    rooms = re.findall(r"`(\w+)", " ".join(_ROOMS.findall(page.partition("\n\n")[0])))
    assert set(rooms) == set().union(*layers) - SMALL
    ranks = [next(rank for rank, layer in enumerate(layers) if one in layer) for one in rooms]
    assert ranks == sorted(ranks)


def test_each_change_has_a_place_and_a_test() -> None:
    for page, heading in ((PAGE, "| change |"), (GUIDE, "| you want to |")):
        _, _, table = page.partition(heading)
        rows = [row.split(" | ") for row in table.partition("\n\n")[0].splitlines()[2:]]
        assert len(rows) > 5
        assert [row for row in rows if "`tests/" not in row[-1]] == []
        assert [row for row in rows if "`" not in row[1]] == []


@pytest.mark.parametrize(("names", "file"), STEPS, ids=[file for _, file in STEPS])
def test_the_functions_it_names_are_in_their_files(names: tuple[str, ...], file: str) -> None:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert set(names) <= defined


def test_each_room_of_the_package_is_named() -> None:
    rooms = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert rooms <= set(FILES)


def test_a_folder_of_tests_has_at_most_sixteen_modules() -> None:
    modules = [*(ROOT / "tests").rglob("*.py")]
    assert len(modules) > 250
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules)
    assert {folder: count for folder, count in counts.items() if count > MOST} == {}


def test_files_and_steps_are_found() -> None:
    assert len(FILES) > 40
    assert len(STEPS) > 20
    assert len(GUIDED) > 15
