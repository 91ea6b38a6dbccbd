"""`benchmarks/conventions.py` on a small made-up tree, with judgements."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hangs import HANG

ROOT = Path(__file__).resolve().parents[3]
LIB = """\
import torch
from torch import Tensor, nn


def plot_losses(x: Tensor):
    return x.max().item()


def measure(x: Tensor):
    if x.dim() > 9:
        raise ValueError(x.max().item())
    if torch.isnan(x):
        return None
    return x.min().item()


class Net(nn.Module):
    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.limit = float(weights.max())

    def forward(self, x: Tensor, step: int):
        if step % 100 == 0:
            print(x.max().item())
        return x


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]):
    first = torch.stack(batches).max().item()
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
    return first


LIMIT = torch.zeros(3).cuda().max().item()
"""
PLOTS = """\
from torch import Tensor


def plot_one(x: Tensor):
    return x.max().item()


def plot_two(x: Tensor):
    return x.max().item()


def plot_three(x: Tensor):
    return x.max().item()


def plot_four(x: Tensor):
    return x.max().item()
"""
# Line of curves.py and verdict: of four judged places of one row, one is worth telling.
VERDICTS = {5: "A", 9: "B", 13: "C", 17: "B"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "owner+name"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "step.py").write_text(LIB, encoding="utf-8")
    (folder / "lib" / "curves.py").write_text(PLOTS, encoding="utf-8")
    (folder / "broken.py").write_text("def torch(:\n", encoding="utf-8")
    return folder


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    common = {"column": 12, "code": "TPF101", "by_default": False, "why": "a reason"}
    rows = [
        {
            "repository": "owner/name",
            "commit": "0" * 40,
            "path": "lib/curves.py",
            "line": line,
            "verdict": verdict,
            **common,
        }
        for line, verdict in VERDICTS.items()
    ]
    file = tmp_path / "judged.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def conventions(*arguments: str | Path, status: int = 0) -> str:
    command = [sys.executable, str(ROOT / "benchmarks" / "conventions.py"), "--jobs=1"]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + (done.stderr if status else "")


def lines_that_come(tree: Path, name: str) -> list[int]:
    """The lines of step.py that are reported with a row or cause switched off."""
    text = conventions(tree, "--off", name)
    return [int(line) for line in re.findall(r"(?m)^\+ TPF\d+ owner/name/lib/step.py:(\d+)", text)]


def test_the_table(tree: Path, judged: Path) -> None:
    rows = [line.split() for line in conventions(tree, "--judged", judged).splitlines()]
    by_name = {row[0]: row[1:] for row in rows if row}
    # Places, files, A, B, C, share of A, marks.
    assert by_name["log-writers"] == ["5", "2", "1", "2", "1", "25%", "hides", "A"]
    few = ["fewer", "than", "5"]
    for cause in ("ERROR", "SET_UP_ROOT", "SOME_STEPS", "OUTSIDE_STEPS"):
        assert by_name[cause] == ["1", "1", "0", "0", "0", "-", *few], cause
    assert by_name["collators"] == ["0", "0", "0", "0", "0", "-", *few]
    assert rows[0] == ["2", "places", "reported", "by", "default,", "11", "hidden"]


def test_a_package_is_matched_by_its_name(tree: Path, judged: Path) -> None:
    package = tree.rename(tree.with_name("thing"))
    row = json.loads(judged.read_text(encoding="utf-8").splitlines()[0])
    row = {**row, "package": "thing", "version": "1.0", "path": "thing/lib/curves.py"}
    judged.write_text(json.dumps(row), encoding="utf-8")
    text = conventions(package, "--judged", judged)
    assert re.search(r"(?m)^log-writers +5 +2 +1 +0 +0 +100%$", text)


def test_a_row_that_is_switched_off(tree: Path, judged: Path) -> None:
    text = conventions(tree, "--judged", judged, "--off", "log-writers")
    first, *rows = text.splitlines()
    assert first == "without log-writers: 5 come, TPF101 5"
    assert rows[0] == "+ TPF101 owner/name/lib/curves.py:5:12 A: a reason"
    assert rows[-1] == "+ TPF101 owner/name/lib/step.py:6:12"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("ERROR", [11]),
        ("SET_UP_ROOT", [20]),
        ("SOME_STEPS", [24]),
        ("OUTSIDE_STEPS", [29]),
        ("CONVENTION", [6]),
    ],
)
@pytest.mark.slow
def test_a_cause_that_is_switched_off(tree: Path, name: str, lines: list[int]) -> None:
    assert lines_that_come(tree, name) == lines


@pytest.mark.slow
def test_judged_commits_of_clones(tree: Path, judged: Path, tmp_path: Path) -> None:
    clones = tmp_path / "clones"
    clones.mkdir()
    clone = tree.rename(clones / tree.name)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        names = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        subprocess.run(["git", *names, *words], cwd=clone, check=True)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True
    )
    text = judged.read_text(encoding="utf-8").replace("0" * 40, done.stdout.strip())
    judged.write_text(text, encoding="utf-8")
    table = conventions("--judged", judged, "--repositories", clones)
    assert re.search(r"(?m)^log-writers +5 +2 +1 +2 +1 +25%  hides A$", table)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--off", "nonsense", "."], "--off: nonsense is no row, nor one of AT_ONCE, "),
        (["nowhere"], "there is no folder nowhere"),
        ([], "name a tree, or --judged and --repositories"),
        ([".", "--judged", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_a_mistake_ends_it(arguments: list[str], problem: str) -> None:
    status = 1 if "--judged" in arguments else 2
    assert problem in conventions(*arguments, status=status)
