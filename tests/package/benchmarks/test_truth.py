"""`benchmarks/truth.py`: labels recorded from a workload, and a linter's output held against them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hangs import HANG

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = """\
import torch


def positive(x):
    kept = x[x > 0]
    if kept.numel() == 0:
        return None
    if kept.sum() > 3:
        kept = kept / 2
    return kept


def host():
    limits = torch.linspace(0, 1, 5)
    return limits.tolist()


def plain(x):
    for row in x:
        row = row + 1
    return x.float()


def fills(x, number):
    x[x > 2] = 0
    x[:, x[0] > number] = number
    x[x > 1] = x.sum()
    x[x[:, 0] > 1, [0]] = number
"""
USE = """\
import torch
from library.core import fills, host, plain, positive

positive(torch.arange(4.0))
host()
plain(torch.ones(2, 2))
fills(torch.ones(2, 2), 0.5)
"""
# Modules of another library, and what uses each: all are recorded in one run.
CASES = {
    "traced": (
        "def f(x):\n    return x[x > 0]\n",
        "from library.traced import f\ntorch.jit.trace(f, torch.arange(4.0))\n",
    ),
    "filled": (
        "def f(x):\n    x[x > 0] = 1\n",
        "from library.filled import f\nwith torch.inference_mode():\n    f(torch.ones(3))\n",
    ),
    "array": (
        "import torch\n\ndef f(a):\n    return torch.from_numpy(a).sum().item()\n",
        "import numpy\nfrom library.array import f\nassert f(numpy.ones(3)) == 3\n",
    ),
    "devices": (
        """\
import torch

def to(x, device):
    return x.to(device)

def down(x):
    return x.to("cpu")

def classes(x):
    return torch.nn.functional.one_hot(x, 5)
""",
        """\
from library.devices import classes, down, to
to(torch.ones(2), "cpu"), down(torch.ones(2)), classes(torch.tensor(3))
""",
    ),
}


def started(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "benchmarks" / "truth.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(folder)))}
    return subprocess.run(
        [sys.executable, script, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip


def truth(folder: Path, *arguments: str) -> str:
    done = started(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    return record(tmp_path_factory.mktemp("truth"), {"core": PACKAGE}, USE)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The labels of all CASES."""
    files = {name: text for name, (text, _) in CASES.items()}
    use = "import torch\n" + "".join(text for _, text in CASES.values())
    return record(tmp_path_factory.mktemp("cases"), files, use)[1]


def record(folder: Path, files: dict[str, str], use: str) -> tuple[Path, dict[str, Any]]:
    (folder / "library").mkdir()
    for name, text in {"__init__": "", **files}.items():
        (folder / "library" / f"{name}.py").write_text(text)
    info = folder / "library-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: library\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("library\n")
    (folder / "use.py").write_text(use)
    truth(folder, "--record", "library", "labels.json", "--", "use.py")
    return folder, json.loads((folder / "labels.json").read_text())


def test_labels_hold_what_ran_and_how_it_waited(recorded):
    labels = recorded[1]
    assert (labels["package"], labels["version"]) == ("library", "1.0")
    assert labels["executed"] == {"core.py": [5, 6, 8, 9, 10, 14, 15, 19, 20, 21, 25, 26, 27, 28]}
    assert [(row["span"], row["kinds"]) for row in labels["sync"]["core.py"]] == [
        ([5, 5], {"mask-index": 1}),
        ([8, 8], {"bool": 1}),
        ([27, 27], {"mask-assign": 1}),
        ([28, 28], {"mask-assign": 1}),
    ]


def test_sizes_that_jit_trace_makes_tensors_are_recorded(cases):
    assert [row["span"] for row in cases["sync"]["traced.py"]] == [[2, 2]]


def test_a_number_filled_in_through_one_mask_is_neutral(recorded):
    """torch does it by masked_fill_, which needs no indices; a tensor, or more indices, need them."""
    rows = recorded[1]["fill"]["core.py"]
    assert [(row["span"], row["kinds"]) for row in rows] == [
        ([25, 25], {"mask-fill": 1}),
        ([26, 26], {"mask-fill": 1}),
    ]


def test_reading_the_number_that_fills_is_no_read_of_the_tensor(cases):
    """In inference mode the number, a tensor on the host by then, is read where it can be seen."""
    assert "filled.py" not in cases["sync"]
    assert [row["kinds"] for row in cases["fill"]["filled.py"]] == [{"mask-fill": 1}]


def test_tensors_made_on_the_host_and_iteration_are_neutral(recorded):
    labels = recorded[1]
    assert [row["span"] for row in labels["host"]["core.py"]] == [[15, 15]]
    assert [row["span"] for row in labels["iter"]["core.py"]] == [[19, 19]]


def test_an_array_as_a_tensor_lies_on_the_host(cases):
    assert "array.py" not in cases["sync"]
    assert [row["span"] for row in cases["host"]["array.py"]] == [[4, 4]]


def test_a_report_is_scored_by_statement(recorded):
    folder = recorded[0]
    lines = [
        "library/core.py:8:8: TPF301 a hit",
        "library/core.py:10:12: TPF101 a false alarm",
        "library/core.py:15:12: TPF101 neutral",
        "library/core.py:7:16: TPF101 never ran",
        "library/core.py:8:8: E501 another plugin's",
    ]
    (folder / "report.txt").write_text("\n".join(lines))
    result = json.loads(truth(folder, "labels.json", "library", "--report", "report.txt", "--json"))
    assert (result["hits"], result["false"], result["neutral"]) == (1, 1, 1)
    assert (result["recall"], result["precision"]) == (0.25, 0.5)
    assert result["by_kind"] == {"mask-index": [0, 1], "bool": [1, 1], "mask-assign": [0, 2]}
    assert result["by_rule"] == {"TPF101": [0, 1, 0], "TPF301": [1, 1, 1]}


def test_the_text_lists_misses_and_false_alarms(recorded):
    options = ["labels.json", "library", "--report", "report.txt", "--misses", "5", "--false", "5"]
    text = truth(recorded[0], *options)
    assert "MISS core.py:5 [mask-index] | kept = x[x > 0]" in text
    assert "FALSE core.py:10 [TPF101] | return kept" in text


def test_a_recording_agrees_with_itself(recorded):
    text = truth(recorded[0], "--compare", "labels.json", "labels.json")
    assert "sync: 4 and 4, 4 in both (1.00 of either), 4 with the same kinds" in text
    assert "only" not in text


MISTAKES = {
    "no package": (["--record", "nowhere", "a.json", "--", "use.py"], "no package nowhere can be"),
    "no module": (["--record", "no.where", "a.json", "--", "use.py"], "no package no.where can be"),
    "not installed": (["--record", "loose", "a.json", "--", "use.py"], "package loose is not inst"),
    "no place": (["--record", "loose", "x/a.json", "--", "use.py"], "there is no folder x to writ"),
    "no labels": (["gone.json"], "gone.json: No such file or directory; name a file that --record"),
    "other JSON": (["other.json"], "other.json: these are no labels; name a file that --record"),
    "no other": (["--compare", "gone.json", "labels.json"], "gone.json: No such file"),
    "no folder": (["labels.json", "nowhere"], "there is no folder nowhere; name the package's"),
    "no report": (["labels.json", ".", "--report", "gone.txt"], "gone.txt: No such file"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_one_line_before_anything_runs(tmp_path, arguments, message):
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose" / "__init__.py").touch()
    (tmp_path / "use.py").write_text("open('ran', 'w')\n")
    (tmp_path / "other.json").write_text("[1]")
    labels = {"package": "loose", "version": "1", "executed": {}}
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    done = started(tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"truth: {message}")
    assert not (tmp_path / "ran").exists()


def test_labels_of_a_library_read_and_write_as_they_are(tmp_path, monkeypatch):
    """The form is that of all labels recorded so far: README's figures are measured with them."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from truth_labels import CATEGORIES, load_labels

    kept = ROOT / "benchmarks" / "labels" / "nflows-0.14.json"
    labels = load_labels(kept)
    assert kept.name == f"{labels.package}-{labels.version}.json"
    assert (labels.count_executed(), len(labels.places("sync"))) == (1441, 51)
    for category in CATEGORIES:
        assert set(labels.places(category)) <= labels.executed_places()
    labels.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == kept.read_bytes()


def test_a_device_from_elsewhere_is_not_taken_for_the_host(cases):
    assert [row["span"] for row in cases["sync"]["devices.py"]] == [[7, 7]]
    assert [row["span"] for row in cases["extra"]["devices.py"]] == [[10, 10]]
