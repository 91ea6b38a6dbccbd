"""Modules that never say torch, and that modules of their project give tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.linter import lint
from flake8_torchperf.prefilter import concerns
from flake8_torchperf.project.texts import text_search

METER = """\
class AverageMeter:
    def __init__(self):
        self.values = []

    def push(self, value):
        self.values.append(float(value))
"""
TRAIN = """\
import torch
from torch import nn
from pkg.meter import AverageMeter


def train(model: nn.Module, loader, optimizer):
    meter = AverageMeter()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        meter.push({given})
"""


def written(folder: Path, train: str, meter: str = METER, marker: str = ".git") -> Path:
    text_search.forget()
    if marker:
        (folder / marker).mkdir(exist_ok=True)
    (folder / "pkg").mkdir(exist_ok=True)
    (folder / "pkg" / "__init__.py").touch()
    (folder / "train.py").write_text(train)
    path = folder / "pkg" / "meter.py"
    path.write_text(meter)
    return path


def test_a_meter_that_a_step_gives_its_loss(tmp_path: Path) -> None:
    path = written(tmp_path, TRAIN.format(given="loss"))
    assert [(one.line, one.code) for one in lint(METER, str(path), HOT)] == [(6, "TPF101")]


def test_a_meter_in_a_package_of_a_project_without_a_marker(tmp_path: Path) -> None:
    """The project is the folder in which imports start, and not the meter's own folder."""
    path = written(tmp_path, TRAIN.format(given="loss"), marker="")
    assert [(one.line, one.code) for one in lint(METER, str(path), HOT)] == [(6, "TPF101")]
    assert concerns([METER], str(path))


def test_a_meter_that_a_step_gives_a_number(tmp_path: Path) -> None:
    path = written(tmp_path, TRAIN.format(given="len(x)"))
    assert lint(METER, str(path), HOT) == []


NOT_ANALYSED = {
    "nothing in the project says torch": (METER, TRAIN.replace("torch", "scipy")),
    "nothing that says torch names what it defines": (METER, "import torch\n"),
    "nothing is read": (METER.replace("float(value)", "value"), TRAIN),
    "it imports another tensor library": (f"import paddle\n{METER}", TRAIN),
}


@pytest.mark.parametrize(("meter", "train"), NOT_ANALYSED.values(), ids=list(NOT_ANALYSED))
def test_files_that_need_no_analysis(meter: str, train: str, tmp_path: Path) -> None:
    path = written(tmp_path, train, meter)
    assert not concerns([meter], str(path))
    assert concerns([METER], str(written(tmp_path, TRAIN)))


def test_a_text_that_is_read_again_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project without torch is read once for all of its files."""
    path = written(tmp_path, TRAIN.replace("torch", "scipy"))
    assert not concerns([METER], str(path))
    monkeypatch.setattr(text_search, "read_bytes", None)
    monkeypatch.setattr(text_search, "TRUSTED", 0.0)
    assert not concerns([METER], str(path))
