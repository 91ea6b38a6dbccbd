"""The server lints a saved text again only if an answer that its findings rest on has changed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from flake8_torchperf.cli.fix.work import Linted as LintedFile
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.server.linting import FolderAnalysis, read_configuration
from flake8_torchperf.server.messages import Lint, Note, Problem, TextFindings
from flake8_torchperf.server.saved import Saved

HELPER = """\
import torch


def shown(loss: torch.Tensor) -> float:
    return float(loss)


def unrelated() -> int:
    return 1
"""
STEP = """\
import torch
from helper import shown


def train(model: torch.nn.Module, loader, optimizer) -> None:
    for batch in loader:
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        note(loss)


def note(loss: torch.Tensor) -> None:
    print(loss.item(), shown(loss))
"""


class Folder:
    """A folder with two modules, and the texts that were linted in it."""

    def __init__(self, path: Path, asked: list[str]) -> None:
        self.path = path
        self.asked = asked
        self.write("helper.py", HELPER)
        self.write("step.py", STEP)

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def problems(self, name: str, text: str | None = None) -> tuple[Problem, ...]:
        """Return what a server that starts now shows of a text, by default of the saved one."""
        work, _ = read_configuration({})
        assert work is not None
        path = self.path / name
        shown = FolderAnalysis(work).answer(Lint(str(path), text or path.read_text(), moved=True))
        assert isinstance(shown, TextFindings)
        return shown.problems


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    asked: list[str] = []
    find = LintedFile.find

    def counted(self: LintedFile, text: str) -> object:
        asked.append(text)
        return find(self, text)

    monkeypatch.setattr(LintedFile, "find", counted)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHPERF_CACHE_DIR", str(tmp_path / "store"))
    before = TorchPerfPlugin.options()
    yield Folder(tmp_path, asked)
    TorchPerfPlugin.use(before)


def test_a_saved_text_is_linted_once(folder: Folder) -> None:
    first = folder.problems("step.py")
    assert first
    assert folder.problems("step.py") == first
    assert folder.asked == [STEP]


def test_a_text_that_is_typed_is_not_stored(folder: Folder) -> None:
    typed = STEP + "\n\nx = 1\n"
    assert folder.problems("step.py", typed) == folder.problems("step.py", typed)
    assert folder.asked == [typed, typed]


def test_a_change_elsewhere_counts_only_if_it_changes_an_answer(folder: Folder) -> None:
    first = folder.problems("step.py")
    folder.write("helper.py", HELPER.replace("return 1", "return 2"))
    assert folder.problems("step.py") == first
    assert len(folder.asked) == 1
    folder.write("helper.py", HELPER.replace("float(loss)", "0.0"))
    folder.problems("step.py")
    assert len(folder.asked) == 2


def test_a_text_is_linted_again_once_what_it_imports_says_torch(folder: Folder) -> None:
    meter = "from helper import shown\n\n\ndef note(loss):\n    return shown(loss)\n"
    folder.write("meter.py", meter)
    folder.write("helper.py", "def shown(loss):\n    return loss\n")
    folder.write("step.py", "")
    for _ in range(2):
        assert folder.problems("meter.py") == ()
    assert folder.asked == [meter]
    folder.write("helper.py", HELPER)
    folder.problems("meter.py")
    assert folder.asked == [meter, meter]


def test_problems_that_show_lines_of_another_module_are_not_stored(folder: Folder) -> None:
    work, _ = read_configuration({})
    assert work is not None
    saved = Saved(work.options, work.ours)
    text = (folder.path / "helper.py").read_text()
    for path, stored in (("helper.py", True), ("step.py", False)):
        note = Note("called by `note`", 14, str(folder.path / path))
        problem = Problem("TPF101", "read", "waits", "step", (0, 0, 0, 1), notes=(note,))
        saved.keep("helper.py", text, [problem], {})
        assert saved.recall("helper.py", text) == ((problem,) if stored else None)
        text += "x = 1\n"
        folder.write("helper.py", text)


def test_what_is_ignored_is_another_key(folder: Folder) -> None:
    assert folder.problems("step.py")
    folder.write(".flake8", "[flake8]\nper-file-ignores = step.py: TPF\n")
    assert folder.problems("step.py") == ()


def test_without_a_cache_nothing_is_stored(folder: Folder) -> None:
    folder.write("pyproject.toml", "[tool.torchperf]\ncache = false\n")
    assert folder.problems("step.py") == folder.problems("step.py")
    assert folder.asked == [STEP, STEP]
    assert not (folder.path / "store").exists()


def test_a_store_that_cannot_be_written_is_said_once(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write("store", "in the way")
    with caplog.at_level(logging.WARNING):
        assert folder.problems("step.py")
    assert [record.getMessage() for record in caplog.records] == [
        f"findings can't be stored: {folder.path / 'store' / 'entries'}: Not a directory"
    ]
