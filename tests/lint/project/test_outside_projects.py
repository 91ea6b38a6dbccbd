"""Files that no marker makes part of a project: linting ends, and they are judged as in a project."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hangs import limited_by_processor_time
from linting import ALL, HOT, LOOP

from flake8_torchperf.contracts.unmatched import _package_of
from flake8_torchperf.linter import lint
from flake8_torchperf.project.file_index import FileIndex, upwards
from flake8_torchperf.project.import_roots import MARKERS, start_of

ROOT = Path(__file__).parents[3]
# The trees of examples that the tests and the documents use.
TREES = ("fixtures", "docs/plain_project", "docs/training_project", "tests/must_report")
# Far more than any of them needs: for a search that never ends.
MEMORY = 4 << 30

NETS = """\
import torch


def measure(x: torch.Tensor):
    for _ in range(10):
        y = x.sum().item()
    return y


def build():
    return measure(torch.ones(3, device="cuda"))
"""
PARTS = """\
import torch
from app.model.utils import nets


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nets.build()
"""
# An epoch, whose steps another function takes.
EPOCHS = """\
import torch
import torch.nn.functional as F


def train_step(model, x, y, optimizer):
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    return loss.detach()


def train_epoch(model, loader, optimizer):
    total = torch.zeros((), device="cuda")
    for x, y in loader:
        total += train_step(model, x, y, optimizer)
    return total.item()


def fit(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        print(epoch, train_epoch(model, loader, optimizer))
"""
IN_EACH_STEP = EPOCHS.replace("optimizer)\n    return", "optimizer).item()\n    return")


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    limited_by_processor_time()


def linted(folder: Path) -> subprocess.CompletedProcess[str]:
    """Lint a folder in a process of its own, with limits of memory and processor time."""
    command = [sys.executable, "-m", "flake8", "--isolated", "-j1", "--select", "TPF", "."]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=limited
    )


def is_outside(folder: Path) -> bool:
    return not any((above / name).exists() for above in folder.parents for name in MARKERS)


def test_an_import_of_a_folder_without_a_file_for_packages(tmp_path: Path) -> None:
    """The search for where `import app` starts went up without end."""
    assert is_outside(tmp_path)
    utils = tmp_path / "app" / "model" / "utils"
    utils.mkdir(parents=True)
    (utils / "__init__.py").touch()
    (utils.parent / "__init__.py").touch()
    (utils / "nets.py").write_text(NETS)
    (utils.parent / "parts.py").write_text(PARTS)
    ended = linted(tmp_path)
    assert ended.stderr == ""
    assert "nets.py:6:13: TPF101" in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("tree", TREES)
def test_the_trees_of_examples_without_a_marker(tree: str, tmp_path: Path) -> None:
    assert is_outside(tmp_path)
    left_out = shutil.ignore_patterns(*MARKERS, "__pycache__")
    shutil.copytree(ROOT / tree, tmp_path / "tree", ignore=left_out)
    ended = linted(tmp_path / "tree")
    assert ended.stderr == ""
    assert ended.returncode in (0, 1)
    assert "TPF900" not in ended.stdout


def test_folders_above_end_at_the_root() -> None:
    assert list(upwards("/a/b")) == ["/a/b", "/a", "/"]
    assert list(upwards("a/b")) == ["a/b", "a"]
    assert list(upwards("")) == []


@pytest.mark.parametrize(("root", "project"), [("/a/b", ""), ("/a/b", "/a/bc"), ("/a/b", "/c")])
def test_a_root_that_is_not_below_the_project(root: str, project: str) -> None:
    assert start_of("nothing", root, project, FileIndex()) == ""


def test_a_package_all_the_way_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flake8_torchperf.contracts.unmatched.is_package", lambda _: True)
    assert _package_of("/a/b") == "/"


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(("text", "lines"), [(EPOCHS, []), (IN_EACH_STEP, [15])])
def test_a_file_is_judged_alike_with_a_marker_and_without(
    text: str, lines: list[int], marked: bool, tmp_path: Path
) -> None:
    assert is_outside(tmp_path)
    if marked:
        (tmp_path / ".git").mkdir()
    path = tmp_path / "fit.py"
    path.write_text(text)
    assert [one.line for one in lint(text, str(path), HOT)] == lines


@pytest.mark.parametrize(("text", "lines"), [(EPOCHS, []), (IN_EACH_STEP, [15])])
def test_a_text_without_a_file_is_judged_as_a_project(text: str, lines: list[int]) -> None:
    assert [one.line for one in lint(text, "pasted.py", HOT)] == lines


COPIES = """\
import torch


def train(model, optimizer, loader):
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader):
    kept = []
    for x in loader:
        kept.append(model(x.cuda()).cpu())
    return kept


def show(model, images: torch.Tensor):
    for image in images:
        print(image.cpu().numpy(), model(image).argmax().item())


def main(model, optimizer, loader):
    train(model, optimizer, loader)
    show(model, evaluate(model, loader)[0])
"""


@pytest.mark.parametrize("text", [EPOCHS, IN_EACH_STEP, COPIES, NETS])
def test_each_scope_holds_what_a_narrower_one_tells(text: str) -> None:
    loop, hot, every = (
        {(one.line, one.code) for one in lint(text, "pasted.py", options)}
        for options in (LOOP, HOT, ALL)
    )
    assert loop <= hot <= every


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").rglob("*.py")), ids=str)
def test_the_scope_loop_tells_nothing_that_hot_does_not(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    loop, hot = (
        {(one.line, one.column, one.code) for one in lint(text, str(path), options)}
        for options in (LOOP, HOT)
    )
    assert loop <= hot
