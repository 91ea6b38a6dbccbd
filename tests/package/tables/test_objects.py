"""knowledge/objects.toml holds kinds that the package asks for, each class once."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_torchperf.knowledge.objects import DICTS, OBJECTS_PATH, object_kind
from flake8_torchperf.knowledge.toml_file import read_toml

ROWS = read_toml(OBJECTS_PATH)
PACKAGE = Path(OBJECTS_PATH).parent.parent


@pytest.mark.parametrize("kind", ROWS)
def test_code_asks_for_the_kind(kind: str) -> None:
    texts = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert kind in DICTS or any(f'"{kind}"' in text for text in texts)


@pytest.mark.parametrize("kind", ROWS)
def test_a_kind_says_what_its_classes_have_in_common(kind: str) -> None:
    assert ROWS[kind]["says"].endswith(".")
    assert {object_kind(name) for name in ROWS[kind]["classes"]} == {kind}


def test_each_class_has_one_kind() -> None:
    names = [name for row in ROWS.values() for name in row["classes"]]
    assert len(names) == len(set(names))


def test_another_class_has_none() -> None:
    assert object_kind("torch.nn.Module") == ""
