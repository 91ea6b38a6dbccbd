"""`torchperf run` tells which calls led to each wait, and which line of a library waited."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from check_run import torchperf

pytest.importorskip("torch")

import torch

from flake8_torchperf.runtime.workload.callers.chains import Chains
from flake8_torchperf.runtime.workload.callers.report import Callers, in_words
from flake8_torchperf.runtime.workload.exchange import Led, Observed, load_observed
from flake8_torchperf.runtime.workload.ranks.merge import merge
from flake8_torchperf.runtime.workload.sync_recorder import Witness

PROGRAM = """\
import torch
import library

def helper(x):
    return x.sum().item()

def train(x):
    return helper(x)

def evaluate(x):
    return helper(x) + helper(x)

def main(x):
    for _ in range(3):
        train(x)
        evaluate(x)
        library.mean(x)
    x.sum().backward()
    torch.nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True)

x = torch.nn.Parameter(torch.ones(3))
main(x)
helper(x)
helper(torch.zeros(3))
x.tolist()
"""
# Its `nonzero` is a dispatch; the test and `item` are reads.
LIBRARY = """\
def mean(x):
    if x.sum() > 0:
        return _positive(x)

def _positive(x):
    x.nonzero()
    return x.sum().item()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("callers")
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "library.py").write_text(LIBRARY)
    path = "import sys\nsys.path.insert(0, 'site-packages')\n"
    (folder / "start.py").write_text(f"{path}import train\n")
    (folder / "train.py").write_text(PROGRAM)
    outputs = ("--json", "run.json", "--output", "run.txt", "--html", "run.html")
    ran = torchperf("run", *outputs, "start.py", cwd=folder)
    assert ran.status == 0, ran.errors
    return folder


def callers_at(folder: Path, line: int) -> list[dict[str, Any]]:
    data = json.loads((folder / "run.json").read_text())
    rows = [
        row
        for key in ("confirmed", "missed", "missed_on_host", "inside_calls")
        for row in data[key]
        if (row["path"], row["line"]) == ("train.py", line)
    ]
    (callers,) = (row["callers"] for row in rows)
    return list(callers)


def line_of(text: str) -> int:
    return PROGRAM[: PROGRAM.index(text)].count("\n") + 1


def test_the_callers_of_a_helper_are_told_apart(folder: Path) -> None:
    """Two calls in one line are one way; the read of a tensor of the host is none."""
    callers = callers_at(folder, line_of("return x.sum().item()"))
    start = {"path": "start.py", "line": 3, "function": "<module>"}
    main = [
        {"path": "train.py", "line": line_of(f"        {name}(x)"), "function": "main"}
        for name in ("evaluate", "train")
    ]
    assert callers == [
        {
            "count": 6,
            "library": None,
            "frames": [{"path": "train.py", "line": 11, "function": "evaluate"}, main[0]],
        },
        {
            "count": 3,
            "library": None,
            "frames": [{"path": "train.py", "line": 8, "function": "train"}, main[1]],
        },
        {
            "count": 1,
            "library": None,
            "frames": [{"path": "train.py", "line": 23, "function": "<module>"}, start],
        },
    ]


def test_a_wait_inside_a_library_names_its_line(folder: Path) -> None:
    inside = [
        (one["count"], one["library"]["path"], one["library"]["line"], one["library"]["function"])
        for one in callers_at(folder, line_of("        library.mean"))
    ]
    assert sorted(inside) == [
        (3, "library.py", 2, "mean"),
        (3, "library.py", 6, "_positive"),
        (3, "library.py", 7, "_positive"),
    ]
    (torchs,) = callers_at(folder, line_of("    torch.nn.utils"))
    assert torchs["library"]["path"] == "torch/nn/utils/clip_grad.py"
    assert torchs["count"] == 1


def test_the_text_lists_callers_below_their_line_and_can_leave_them_out(folder: Path) -> None:
    text = (folder / "run.txt").read_text()
    main = line_of("        evaluate(x)")
    assert re.search(
        r"train\.py:5:\d+: TPF101 .*\n"
        rf"      6x from train\.py:11 evaluate, from train\.py:{main} main\n"
        rf"      3x from train\.py:8 train, from train\.py:{main - 1} main\n"
        r"      1x from train\.py:23 <module>, from start\.py:3 <module>\n",
        text,
    )
    assert (
        "      3x in library.py:7 _positive from train.py:22 <module>, from start.py:3 <module>"
        in text
    )
    (folder / "small.py").write_text(
        "import torch\ndef f(x):\n    return x.item()\n"
        "for _ in range(2):\n    f(torch.nn.Parameter(torch.ones(1)))\n"
    )
    full = torchperf("run", "small.py", cwd=folder).errors
    assert "      2x from small.py:5 <module>\n" in full


def test_the_page_folds_callers(folder: Path) -> None:
    page = (folder / "run.html").read_text()
    (folded,) = re.findall(
        r'<details class="callers"><summary>3 ways to it</summary>(.*?)<', page, re.S
    )[:1]
    assert folded.startswith("6x from train.py:11 evaluate, from train.py:")


def nested(depth: int, chains: Chains) -> None:
    if depth:
        nested(depth - 1, chains)
    else:
        chains.add(sys._getframe(), "sync", "item")


def test_a_call_of_itself_gives_few_ways() -> None:
    chains = Chains(lambda code: code.co_name == "nested", lambda code: False)
    for depth in (2, 7, 9):
        nested(depth, chains)
    (row,) = chains.rows
    assert row.times == 3
    assert [function for _, _, function in row.frames] == ["nested"] * 3
    chains.forget()
    assert chains.rows == ()


def test_frames_are_looked_at_only_where_something_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    monkeypatch.setattr(Chains, "add", lambda *args, **kwargs: added.append(args[2]))
    weight = torch.nn.Parameter(torch.ones(3))
    with Witness(lambda name: name == __file__):
        for _ in range(5):
            (weight * 2 + 1).sum()
        assert added == []
        weight.sum().item()
    assert added == ["sync"]


def observed(device: str, *led: Led) -> Observed:
    totals = {"host_reads": 1, "device_syncs": 1}
    return Observed("2.13.0", device, "full", 1.0, totals, (), {}, (), "", "returned", led=led)


def way(source: str, caller: str, *, line: int = 3, kind: str = "item", times: int = 2) -> Led:
    frames = (("/a/train.py", line, "step"), ("/a/main.py", 9, caller))
    return Led(source, kind, False, None, frames, times)


def counts(seen: Observed) -> dict[str, int]:
    callers = Callers(seen).at("/a/train.py", (3, 4))
    return {one["frames"][0]["function"]: one["count"] for one in callers}


def test_what_the_device_reported_outweighs_the_calls(tmp_path: Path) -> None:
    led = (way("sync", "call"), way("device_syncs", "told", times=5), way("host_reads", "read"))
    assert counts(observed("cuda", *led)) == {"told": 5}
    assert counts(observed("cpu", *led)) == {"call": 2}
    assert counts(observed("cpu", *led[1:])) == {"read": 2}
    assert counts(observed("cpu", way("sync", "elsewhere", line=5))) == {}
    assert counts(observed("cpu", way("extra", "kernel", kind="internal"))) == {}


def test_ranks_add_up_and_their_recordings_are_read_back(tmp_path: Path) -> None:
    one = observed(
        "cpu",
        way("sync", "call"),
        Led("sync", "item", True, ("/l.py", 1, "f"), (("/a/train.py", 4, "g"),), 1),
    )
    one.save(tmp_path / "results.json")
    assert load_observed(tmp_path / "results.json") == one
    assert counts(merge([observed("cpu", way("sync", "call"))] * 3)) == {"call": 6}


def test_many_callers_are_summed_up_in_the_text() -> None:
    led = [way("sync", f"caller_{number}", times=10 - number) for number in range(8)]
    lines = in_words(Callers(observed("cpu", *led)).at("/a/train.py", (3, 3)))
    assert lines[0] == "10x from /a/main.py:9 caller_0"
    assert lines[5:] == ["12x from 3 more callers"]
