"""``torchperf check --fix``; what the help of `check` and `fix` lists."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from check_run import check, torchperf

from flake8_torchperf.cli import check_options
from flake8_torchperf.cli.check_options import CHECK, Face, parse
from flake8_torchperf.cli.fix.run import FIX

BEFORE = """\
import torch


def step(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x + torch.zeros(4).to(x.device)
        print(x.sum().item())
    return x
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(BEFORE)
    return path


def test_a_diff_shows_what_check_fix_changes(model: Path) -> None:
    run = torchperf("fix", "--isolated", "--diff", "model.py", cwd=model.parent)
    assert run.status == 1
    assert "+        x = x + torch.zeros(4, device=x.device)\n" in run.output
    assert "TPF101" not in run.output
    assert model.read_text() == BEFORE
    fixed = check("--fix", "model.py", cwd=model.parent)
    assert (fixed.status, fixed.output.count("TPF501 fixed"), fixed.codes[-1]) == (1, 1, "TPF101")
    assert "device=x.device" in model.read_text()


def test_a_file_that_does_not_parse_is_said_once(model: Path) -> None:
    (model.parent / "broken.py").write_text("import torch\nx = (\n")
    run = check("--fix", ".", cwd=model.parent)
    assert (run.status, run.errors.count("broken.py")) == (2, 1)


@pytest.mark.parametrize("face", [CHECK, FIX], ids=["check", "fix"])
def test_help_lists_every_option_that_is_taken(
    face: Face, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[argparse.ArgumentParser] = []
    manager_of = check_options._manager

    def kept(*arguments: object) -> object:
        manager = manager_of(*arguments)  # type: ignore[arg-type]
        made.append(manager.parser)
        return manager

    monkeypatch.setattr(check_options, "_manager", kept)
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        parse(["--help"], face)
    assert end.value.code == 0
    listed = capsys.readouterr().out.replace(",", " ").split()
    taken = {option for action in made[-1]._actions for option in action.option_strings}
    assert taken - set(listed) == set()
    assert {"--fix", "--scope", "-j", "--select"} - taken == ({"--fix"} if face is FIX else set())
    assert all(
        action.help and action.help != argparse.SUPPRESS
        for action in made[-1]._actions
        if action.option_strings
    )
