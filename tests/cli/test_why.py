"""`torchperf why FILE:LINE` says what decided that a line is reported, or that it is not."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from flake8_torchperf.cli.main import main
from flake8_torchperf.cli.why.account import account_of
from flake8_torchperf.options import Options

PROGRAM = """\
import time

import torch
from torch import nn


def train(net: nn.Module, loader, optimizer, steps: int):
    total = 0.0
    for batch in loader:
        loss = net(batch).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if steps % 100 == 0:
            print(loss.item())
    return total


def save_image(image: torch.Tensor, path: str):
    image.cpu().numpy().tofile(path)


def timed(net: nn.Module, x: torch.Tensor):
    for _ in range(9):
        torch.cuda.synchronize()
        start = time.perf_counter()
        net(x)
    return start


def scale(x, factor):
    return x * factor


def table(n: int) -> torch.Tensor:
    weights = torch.arange(n)
    return weights / weights.sum().item()
"""
LINES = {text.strip(): number for number, text in enumerate(PROGRAM.splitlines(), start=1)}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def account(capsys: pytest.CaptureFixture[str], text: str, *options: str) -> dict[str, Any]:
    """Return what `why --format json` prints of the line that holds a text."""
    assert main(["why", f"model.py:{LINES[text]}", "--format", "json", *options]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_a_reported_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = account(capsys, "total += loss.item()")
    (found,) = [one for one in told["findings"] if one["reported"]]
    assert found["code"] == "TPF206"
    assert (found["row"], found["frequency"]) == ("loop", "per step, loop at line 9")
    assert found["sure"] == "inferred"
    assert found["tensor"] == "output of a module, asked for `.mean`, line 10"
    assert found["changes"][0].startswith("`# noqa: TPF206`")


@pytest.mark.parametrize(
    ("text", "row", "wanted", "change"),
    [
        ("print(loss.item())", "some-steps", False, '`--hot "train"`'),
        ("image.cpu().numpy().tofile(path)", "convention", False, '`--hot "save_image"`'),
        ("torch.cuda.synchronize()", "measuring", True, "`--scope all`"),
    ],
)
def test_a_line_that_is_left_out(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    row: str,
    wanted: bool,
    change: str,
) -> None:
    found = account(capsys, text)["findings"]
    assert found, "nothing is found there even with everything reported"
    assert {(one["reported"], one["row"], one["wanted"]) for one in found} == {(False, row, wanted)}
    assert any(one.startswith(change) for one in found[0]["changes"])


def test_the_settings_decide(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = account(capsys, "total += loss.item()", "--confidence", "stated")
    (found,) = [one for one in told["findings"] if one["code"] == "TPF206"]
    assert (found["reported"], found["row"]) == (False, "confidence")
    assert found["decided"] == "left out: that it is a tensor is only inferred"
    told = account(capsys, "total += loss.item()", "--cold", "train")
    (found,) = told["findings"]
    assert (found["reported"], found["row"]) == (False, "named-cold")


def test_values_of_a_line_without_a_finding(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = account(capsys, "weights = torch.arange(n)")
    assert told["findings"] == []
    values = {one["expression"]: one for one in told["values"]}
    made = values["torch.arange(n)"]
    assert (made["kind"], made["residence"]) == ("a tensor of int", "on the host")
    assert made["reason"].startswith("`torch.arange` returns it")
    assert values["n"]["kind"] == "int on the host"
    unknown = account(capsys, "return x * factor")["values"]
    assert {one["kind"] for one in unknown} == {"nothing is known of it"}


def test_in_words(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", f"model.py:{LINES['total += loss.item()']}"]) == 0
    told = capsys.readouterr().out
    assert "model.py:13: total += loss.item()\nin train, which runs " in told
    assert "\nreported: TPF206 " in told
    assert "  reported: it runs per step, loop at line 9 [loop]\n" in told
    assert "\nvalues\n" in told
    assert main(["why", f"model.py:{LINES['total = 0.0']}"]) == 0
    assert "no rule objects to what stands here" in capsys.readouterr().out


def test_a_method_is_told_by_its_callers(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(
        "import torch\n\n\ndef inner(x: torch.Tensor):\n    return x.sum().item()\n\n\n"
        "def train(loader):\n    for x in loader:\n        inner(x)\n",
        encoding="utf-8",
    )
    assert main(["why", "model.py:5", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["reported"]
    assert any("train" in one for one in found["calls"])


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("model.py", "model.py names no line: write model.py:12"),
        ("model.py:999", "model.py has 37 lines: there is no line 999"),
        ("gone.py:3", "there is no file or folder gone.py:3"),
        (".:3", ". is a folder, which has no line 3: name a file"),
        ("model.py:x", "'x' is not a line number: write model.py:12"),
        ("broken.py:1", "broken.py:1: '(' was never closed"),
    ],
)
def test_a_mistake_is_one_line(
    file: Path, capsys: pytest.CaptureFixture[str], place: str, problem: str
) -> None:
    file.with_name("broken.py").write_text("f(\n", encoding="utf-8")
    assert main(["why", place]) == 2
    assert capsys.readouterr().err == f"torchperf: why: {problem}\n"


def test_a_declared_integer_that_callers_give_a_tensor(tmp_path: Path) -> None:
    """The values of a line say what the finding in it says."""
    source = textwrap.dedent(
        """
        import torch


        class Scheduler:
            def __init__(self):
                self.alphas = torch.linspace(0.9, 0.99, 1000)

            def step(self, x: torch.Tensor, t: int):
                return x * self.alphas[t]


        @torch.no_grad()
        def sample(model: torch.nn.Module, x: torch.Tensor, device):
            scheduler = Scheduler()
            for t in torch.arange(1000).to(device):
                x = scheduler.step(model(x, t), t)
            return x
        """
    )
    file = tmp_path / "sample.py"
    file.write_text(source, encoding="utf-8")
    account = account_of(source, str(file), 10, Options())
    assert [one.code for one in account.findings if one.reported] == ["TPF107"]
    (value,) = [one for one in account.values if one.expression == "t"]
    assert value.kind.startswith("a tensor")
