"""`benchmarks/judged.py` on a small repository, and the form of the judgements that are kept."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hangs import HANG

from flake8_torchperf.findings.catalogue import load_catalogue

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = sorted((ROOT / "benchmarks" / "judged").glob("*.jsonl"))
STEP = """\
import torch
from torch import Tensor, nn


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]):
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        print(loss.item())


class Net(nn.Module):
    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.limit = float(weights.max())
"""
COMMON = {"path": "lib/step.py", "code": "TPF101", "by_default": True, "why": "a reason"}
ROWS: list[dict[str, Any]] = [
    {"line": 10, "column": 15, "verdict": "A"},
    {"line": 18, "column": 22, "verdict": "B"},  # two lines below the finding
    {"line": 3, "column": 1, "verdict": "C"},  # no finding near by in this column
]


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    command = ["git", *names, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def judged(folder: Path, *arguments: str | Path, status: int = 0) -> str:
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "judged.py"),
        "--repositories",
        str(folder),
    ]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def sample(file: Path, source: dict[str, str], rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps({**source, **COMMON, **row}) + "\n" for row in rows))
    return file


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one clone, whose judged file is changed after the judged commit."""
    folder = tmp_path_factory.mktemp("clones")
    clone = folder / "owner+name"
    (clone / "lib").mkdir(parents=True)
    (clone / "lib" / "step.py").write_text(STEP)
    git(clone, "init", "--quiet")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "one")
    commit = git(clone, "rev-parse", "HEAD").strip()
    (clone / "lib" / "step.py").write_text("import torch\n")
    git(clone, "commit", "--quiet", "--all", "--message", "two")
    sample(folder / "judged.jsonl", {"repository": "owner/name", "commit": commit}, ROWS)
    return folder


def test_places_are_counted_by_verdict_and_scope(clones: Path) -> None:
    rows = judged(clones, "--file", clones / "judged.jsonl").splitlines()
    table = {row[0]: row.split()[-3:] for row in rows[1:4]}
    assert table == {"A": ["1", "1", "1"], "B": ["1", "0", "1"], "C": ["1", "0", "0"]}
    assert rows[4:] == [
        "precision, default: 100.0% (1 of 1) worth telling",
        "precision, all: 50.0% (1 of 2) worth telling",
        "3 places: 1 at their line, 1 matched to a line near by, 1 without a finding in scope all",
    ]


def test_each_place_is_named_on_request(clones: Path) -> None:
    rows = judged(clones, "--file", clones / "judged.jsonl", "--rows").splitlines()
    assert [row.split()[:2] for row in rows[:3]] == [
        ["A", "default"],
        ["B", "all"],
        ["C", "silent"],
    ]
    assert rows[1].endswith(" lib/step.py:18:22 TPF101 (line 16): a reason")


def test_places_of_packages_are_looked_up_in_a_folder(clones: Path, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "step.py").write_text(STEP)
    (tmp_path / "lib-1.2.dist-info").mkdir()
    file = sample(tmp_path / "lib.jsonl", {"package": "lib", "version": "1.2"}, ROWS[:1])
    options = ("--packages", tmp_path, "--file", file)
    assert "precision, default: 100.0% (1 of 1)" in judged(clones, *options)
    sample(file, {"package": "lib", "version": "1.3"}, ROWS[:1])
    told = judged(clones, *options)
    assert told.startswith("left out: lib 1.3, 1 places: lib-1.2.dist-info in ")
    assert "precision, default: none reported" in told


def test_what_is_not_there_is_left_out(clones: Path, tmp_path: Path) -> None:
    source = {"repository": "owner/other", "commit": "0" * 40}
    told = judged(clones, "--file", sample(tmp_path / "other.jsonl", source, ROWS))
    assert told.startswith(f"left out: owner/other 0000000000, 3 places: it is not in {clones}\n")


def test_a_row_that_is_no_judgement_is_named(clones: Path, tmp_path: Path) -> None:
    source = {"repository": "owner/name", "commit": "0" * 40}
    file = sample(tmp_path / "wrong.jsonl", source, [*ROWS, {**ROWS[0], "verdict": "D"}])
    told = judged(clones, "--file", file, status=1)
    assert told == f"judged: {file}:4: ValueError('verdict D is none of A, B, C')\n"


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_every_row_is_a_judgement(file: Path) -> None:
    codes = {rule.code for rule in load_catalogue().rules}
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert rows
    for number, row in enumerate(rows, 1):
        source = {"package", "version"} if "package" in row else {"repository", "commit"}
        place = {"path", "line", "column", "code", "by_default", "verdict", "why"}
        assert set(row) == source | place, f"line {number}"
        assert row["verdict"] in ("A", "B", "C"), f"line {number}"
        assert row["code"] in codes, f"line {number}"
        assert row["line"] > 0 < row["column"], f"line {number}"
        assert isinstance(row["by_default"], bool), f"line {number}"
        assert row["path"].endswith(".py"), f"line {number}"
        assert row["why"], f"line {number}"
        assert "commit" not in row or re.fullmatch(r"[0-9a-f]{40}", row["commit"])


def test_samples_are_kept() -> None:
    assert SAMPLES


def test_rounds_are_compared_by_their_first_figures(clones: Path) -> None:
    commit = {"repository": "owner/name", "commit": "0" * 40}
    rows = [*ROWS, {"line": 4, "column": 1, "verdict": "A", "by_default": False}]
    file = sample(clones / "2026-01-01-round-1.jsonl", commit, rows)
    last = judged(clones, "--file", file).splitlines()[-1]
    assert last == (
        "2026-01-01-round-1: by default [1, 1, 1] A, B, C, 33.3% (1 of 3); hidden [1, 0, 0]"
    )


def test_a_sample_is_drawn_and_joined_with_its_verdicts(tmp_path: Path) -> None:
    clone = tmp_path / "owner+name"
    clone.mkdir()
    (clone / "step.py").write_text(STEP)
    git(clone, "init", "--quiet")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "one")
    key, questions, verdicts = (tmp_path / name for name in ("key", "questions", "verdicts"))
    tool = [sys.executable, str(ROOT / "benchmarks" / "draw.py")]
    drawing = [*tool, "draw", str(clone), "--key", str(key), "--questions", str(questions)]
    subprocess.run(drawing, check=True, timeout=HANG)
    asked = questions.read_text().splitlines()
    assert sorted(one.split()[1] for one in asked) == [
        "owner+name/step.py:10:15",
        "owner+name/step.py:16:22",
    ]
    assert not any("per " in one for one in asked)
    joining = [*tool, "join", "--key", str(key), "--verdicts", str(verdicts)]
    joining += ["--to", str(tmp_path / "judged.jsonl")]
    verdicts.write_text('{"n": 1, "verdict": "A", "why": "a reason"}\n')
    done = subprocess.run(joining, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 1
    assert done.stderr == f"draw: {verdicts}: not one verdict for each of 2 places\n"
    verdicts.write_text(
        "".join(f'{{"n": {n}, "verdict": "B", "why": "a reason"}}\n' for n in (2, 1))
    )
    told = subprocess.run(joining, capture_output=True, text=True, check=True, timeout=HANG).stdout
    assert told == "default: 0 A, 1 B, 0 C\nhidden: 0 A, 1 B, 0 C\n"
    rows = [json.loads(line) for line in (tmp_path / "judged.jsonl").read_text().splitlines()]
    assert [(row["line"], row["by_default"]) for row in rows] == [(10, True), (16, False)]
