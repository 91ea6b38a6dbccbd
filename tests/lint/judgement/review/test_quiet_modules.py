"""A module that imports no torch is interpreted before the calls that lead to it are followed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from flake8_torchperf.judgement.review.package_heats import PackageHeats
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

if TYPE_CHECKING:
    from pathlib import Path

    from flake8_torchperf.project.module_index import FunctionInfo

TRAIN = """
    import torch
    from .meters import Meter, total

    def fit(model, loader, optimizer):
        meter = Meter()
        for batch in loader:
            loss = model(batch).sum()
            loss.backward()
            optimizer.step()
            meter.update(loss)
            total([1, 2])
    """
METER = """
    class Meter:
        def __init__(self):
            self.sum = 0.0

        def update(self, value):
            self.sum += value.item()
    """
TOTAL = """
    def total(numbers):
        "Takes no Tensor."
        if not numbers:
            return 0
        return max(numbers)
    """


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions whose calls in the project were followed to learn how often they run."""
    found: list[str] = []
    warm = PackageHeats.warm

    def noted(self: PackageHeats, info: FunctionInfo) -> None:
        found.append(info.qualname)
        warm(self, info)

    monkeypatch.setattr(PackageHeats, "warm", noted)
    return found


def linted(text: str, folder: Path) -> list[str]:
    """The codes of the findings in a module that another module of its package uses."""
    source = textwrap.dedent(text)
    (folder / "pyproject.toml").touch()
    package = folder / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "meters.py").write_text(source)
    (package / "train.py").write_text(textwrap.dedent(TRAIN))
    return [one.code for one in lint(source, str(package / "meters.py"), Options())]


def test_calls_to_a_module_without_sites_are_not_followed(
    tmp_path: Path, followed: list[str]
) -> None:
    assert linted(TOTAL, tmp_path) == []
    assert followed == []


@pytest.mark.parametrize("text", [METER + TOTAL, "import torch\n" + textwrap.dedent(METER + TOTAL)])
def test_calls_to_a_module_with_sites_are_followed(
    text: str, tmp_path: Path, followed: list[str]
) -> None:
    assert linted(text, tmp_path) == ["TPF101"]
    assert "Meter.update" in followed
    assert "total" in followed
