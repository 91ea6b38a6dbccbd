"""knowledge/methods.toml holds classes of methods that the package asks for, and no others."""

from __future__ import annotations

import ast
import sys
from typing import Any

import pytest
from documents import ROOT

from flake8_torchperf.knowledge import methods
from flake8_torchperf.knowledge.methods import METHODS_PATH, casts_to, kinds_of, methods_of
from flake8_torchperf.suspects import nominate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CLASSES: dict[str, dict[str, Any]] = tomllib.loads(METHODS_PATH.read_text(encoding="utf-8"))
ASKING = ("methods_of", "kinds_of")


@pytest.fixture(scope="module")
def asked() -> dict[str, str]:
    """Return the classes that the package asks for, each with a file that does."""
    found: dict[str, str] = {}
    for file in sorted((ROOT / "flake8_torchperf").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in ASKING) else ():
            match node:
                case ast.Call(func=ast.Name(id=name), args=args) if name in ASKING:
                    for arg in args:
                        if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                            found[arg.value] = str(file.relative_to(ROOT))
    return found


def test_each_class_that_is_asked_for_is_in_the_table(asked: dict[str, str]) -> None:
    assert {name: file for name, file in asked.items() if name not in CLASSES} == {}


def test_each_class_in_the_table_is_asked_for(asked: dict[str, str]) -> None:
    included = {name for row in CLASSES.values() for name in row.get("includes", ())}
    assert set(CLASSES) - set(asked) - included == set()


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_what_its_methods_have_in_common(name: str) -> None:
    row = CLASSES[name]
    assert set(row) <= {"says", "methods", "includes"}
    assert row["says"].endswith(".")
    own = list(row["methods"])
    assert len(own) == len(set(own))
    for other in row.get("includes", ()):
        assert not methods_of(other) & set(own), f"{name} repeats methods of {other}"


def test_two_classes_hold_different_methods() -> None:
    held: dict[frozenset[str], str] = {}
    for name in CLASSES:
        assert held.setdefault(methods_of(name), name) == name


def test_classes_join_and_include_others() -> None:
    assert methods_of("reads", "copies-to-host") == {"item", "tolist", "numpy", "cpu"}
    assert methods_of("concatenates") < methods_of("joins")
    assert kinds_of("casts")["long"] == "int"
    assert casts_to("bool") == {"bool"}


def test_an_unknown_class_is_an_error() -> None:
    with pytest.raises(KeyError):
        methods_of("no-such-class")


@pytest.mark.parametrize(
    ("kind", "nominating"),
    [
        ("reads", nominate.WAITING_CALLS),
        ("reads-a-number", nominate.WAITING_CALLS),
        ("copies-to-host", nominate.WAITING_CALLS),
        ("joins", nominate.JOINING_CALLS),
        ("runs-backward", nominate.TRAINING),
        ("moves", nominate.MOVE_CALLS | nominate.WAITING_CALLS),
    ],
)
def test_nomination_knows_the_methods(kind: str, nominating: set[str]) -> None:
    assert methods_of(kind) <= nominating


def test_the_table_is_read_once() -> None:
    methods_of("reads")
    assert methods._classes.cache_info().misses == 1
