"""The worth of findings in the reports of `torchperf check`, and in its summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from weighing import weighed

from flake8_torchperf.cli.main import main
from flake8_torchperf.cli.report.summary import summary
from flake8_torchperf.history.finding_record import FindingRecord

SOURCE = """\
import torch


def read(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]


def clip(values: list[torch.Tensor]) -> list[torch.Tensor]:
    found = []
    for value in values:
        if value > 0:
            found.append(value.nonzero())
    return found
"""
TABLE = {"rule:TPF101": 1.0, "rule:TPF301": -0.5, "rule:TPF401": -2.0}
WORTH = {"TPF101": 0.73, "TPF301": 0.38, "TPF401": 0.12}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> str:
    with weighed(TABLE):
        main(["check", "--isolated", "--no-cache", "--jobs=1", f"--format={name}", *words])
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], name: str) -> Any:
    return json.loads(report(capsys, name))


def test_json_has_two_digits(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "json")["findings"]
    assert {one["code"]: one["worth"] for one in found} == WORTH


def test_json_names_the_line_of_the_leader(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "    for row in x:\n        print(row.min().item())\n        if row.max() > 0:\n            print()\n"
    (project / "a.py").write_text(f"import torch\n\n\ndef show(x: torch.Tensor):\n{body}")
    found = data(capsys, "json")["findings"]
    assert {one["code"]: one["follows"] for one in found}["TPF301"] == 6


def test_sarif_ranks_from_0_to_100(capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = data(capsys, "sarif")["runs"]
    ranks = {one["ruleId"]: one["rank"] for one in run["results"]}
    assert ranks == {"TPF101": 73.1, "TPF301": 37.8, "TPF401": 11.9}


def test_gitlab_has_a_severity_for_each_band(capsys: pytest.CaptureFixture[str]) -> None:
    found = {one["check_name"]: one["severity"] for one in data(capsys, "gitlab")}
    assert found == {"TPF101": "major", "TPF301": "minor", "TPF401": "info"}


def test_gitlab_shows_a_mistake_as_major(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "a.py").write_text("import torch\n\n# torchperf: sync-fre\ndef f():\n    pass\n")
    (one,) = data(capsys, "gitlab")
    assert (one["check_name"], one["severity"]) == ("TPF901", "major")


def test_functions_are_sorted_by_the_sum_of_worth(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = "    return [value.item() for value in values]\n"
    twice = f"{loop.replace('return', 'first =')}{loop.replace('return', 'return first +')}"
    read = SOURCE[: SOURCE.index("def clip")].replace(loop, twice)
    (project / "b.py").write_text(read)
    head, *rows = report(capsys, "functions").splitlines()
    assert head == "worth  findings  best finding"
    starts = [
        " 1.46         2  b.py:5:14: read: TPF101 `value.item()` waits per step",
        " 0.73         1  a.py:5:13: read: TPF101 `value.item()` waits per step",
        " 0.50         2  a.py:11:12: clip: TPF301 `value > 0` waits to decide",
    ]
    assert [row[: len(start)] for row, start in zip(rows, starts, strict=True)] == starts


def test_grouped_begins_with_the_file_of_the_best(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "0.py").write_text(
        SOURCE[: SOURCE.index("def read")] + SOURCE[SOURCE.index("def clip") :]
    )
    plain = [line for line in report(capsys, "grouped").splitlines() if line.endswith(".py")]
    best = report(capsys, "grouped", "--sort=worth").splitlines()
    assert plain == ["0.py", "a.py"]
    assert [line for line in best if line.endswith(".py")] == ["a.py", "0.py"]


def record(line: int, code: str) -> FindingRecord:
    return FindingRecord(line, 3, f"{code} text", evidence=f"rule:{code}")


def test_a_summary_of_many_begins_with_the_best_three() -> None:
    found = {
        "a.py": [record(line, "TPF301") for line in range(1, 9)],
        "b.py": [record(7, "TPF101"), record(8, "TPF401"), record(9, "TPF101")],
    }
    with weighed(TABLE):
        assert summary(found).splitlines() == [
            "the 3 best findings, with their worth:",
            "  0.73 b.py:7:4: TPF101 text",
            "  0.73 b.py:9:4: TPF101 text",
            "  0.38 a.py:1:4: TPF301 text",
            "11 findings in 2 files (8 TPF301, 2 TPF101, 1 TPF401)",
        ]
        few = {**found, "a.py": found["a.py"][:7]}
        assert summary(few) == "10 findings in 2 files (7 TPF301, 2 TPF101, 1 TPF401)"
        assert summary(few, 4).endswith("; 4 findings of less worth left out")
