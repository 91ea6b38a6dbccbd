"""`torchperf confirm` on compiled code: a break is confirmed where torch's tracer names the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from flake8_torchperf.cli.main import main

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

COMPILED = """
import torch


@torch.compile
def normalise(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(dim=0)
    print("shape", centred.shape)  # confirmed
    if centred.sum() > 0:  # confirmed
        centred = -centred
    largest = centred.abs().max().item()  # confirmed
    return kept(centred / largest)


def kept(x):
    return x[x > 0]  # confirmed


recurrent = torch.nn.LSTM(1, 1)
setattr(torch._dynamo.config, "allow" + "_rnn", True)


@torch.compile
def leaf(x: torch.Tensor) -> torch.Tensor:
    return recurrent(x.reshape(-1, 1))[0]  # refuted


seen = []


@torch.compile
def grows(x: torch.Tensor) -> torch.Tensor:
    seen.append(1)  # inconclusive
    return x * 2
"""


ASSUMED = """
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Gate(nn.Module):
    def __init__(self, width: int = 4):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.linear(x)
        logger.warning("hidden")  # confirmed
        if hidden.sum() > 0:  # confirmed
            hidden = -hidden
        return self.scaled(hidden)

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.abs().max().item()  # confirmed
"""


@pytest.mark.thorough
def test_modules_assumed_to_be_compiled_are_traced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "modules.py"
    path.write_text(ASSUMED)
    main(["confirm", "--json", "--assume-compiled", str(path)])
    told = json.loads(capsys.readouterr().out)
    found = {(one["line"], one["code"]): one["verdict"] for one in told["findings"]}
    lines = [n for n, line in enumerate(ASSUMED.splitlines(), start=1) if "# confirmed" in line]
    codes = ("TPF601", "TPF603", "TPF602")
    assert found == dict.fromkeys(zip(lines, codes, strict=True), "confirmed")
    main(["confirm", "--json", str(path)])
    told = json.loads(capsys.readouterr().out)
    assert {one["code"] for one in told["findings"]} == {"TPF301", "TPF101"}


@pytest.mark.slow
def test_verdicts_follow_the_tracer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines that break, a line that does not, and evidence that takes more than one call."""
    path = tmp_path / "compiled.py"
    path.write_text(COMPILED)
    main(["confirm", "--json", str(path)])
    told = json.loads(capsys.readouterr().out)
    found = {one["line"]: one["verdict"] for one in told["findings"]}
    wanted = {
        number: line.rpartition("# ")[2]
        for number, line in enumerate(COMPILED.splitlines(), start=1)
        if "# " in line
    }
    assert found == wanted
