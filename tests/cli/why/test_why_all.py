"""`torchperf why` of places that their rules report with `--scope all` alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_torchperf.cli.main import main

EVALUATION = """\
import torch


def evaluate(model: torch.nn.Module, data):
    for x in torch.utils.data.DataLoader(data):
        print(model(x.cuda()).sum().item())
"""


def test_a_rule_leaves_a_place_to_scope_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(EVALUATION, encoding="utf-8")
    assert main(["why", "model.py:6"]) == 0
    said = capsys.readouterr().out
    assert "left out: TPF503 reports such a place with --scope all alone [rule]" in said
    assert "asks for code that runs more often" not in said
