"""The gate of `torchperf run`: regions that may wait, `--fail-on` and `--raise`."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from check_run import torchperf
from flake8_run import Run

from flake8_torchperf import DispatchCounter, dispatch_budget
from flake8_torchperf.runtime import BudgetExceeded
from flake8_torchperf.runtime.workload.gate.conditions import (
    ConditionError,
    add_gate,
    gate_lines,
    read_conditions,
)
from torchperf import allow_sync

LOOP = """
import torch
from torchperf import allow_sync

def train(model, optimizer, batches):
    for batch in batches:
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        {read}

class Descent:
    def __init__(self, parameters, rate):
        self.parameters, self.rate = list(parameters), rate

    def step(self):
        with torch.no_grad():
            for parameter in self.parameters:
                parameter -= self.rate * parameter.grad

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

model = torch.nn.Linear(4, 1)
train(model, {optimizer}(model.parameters(), 0.1), [torch.randn(8, 4) for _ in range(5)])
{end}
"""
# Torch's own optimizers import torch._dynamo, which takes longer than all else that is run here.
SGD, PLAIN = "torch.optim.SGD", "Descent"
ADDED = "loss.item()"
ALLOWED = "with allow_sync('the loss is shown'): loss.item()"
FIRST = "with allow_sync('warms up', first_only=True): loss.item()"


def written(read: str, end: str = "", optimizer: str = PLAIN) -> str:
    """Return the loop with what it reads and how it ends."""
    text = LOOP.replace("{read}", read).replace("{end}", end)
    return text.replace("{optimizer}", optimizer)


def gate(
    folder: Path, *options: str, read: str = "pass", end: str = "", optimizer: str = PLAIN
) -> tuple[Run, Any]:
    """Run the loop under the gate; return how it ended, and the report."""
    script, report = folder / "train.py", folder / "report.json"
    script.write_text(written(read, end, optimizer), encoding="utf-8")
    words = ("--level", "reads", "--json", report, "--output", folder / "text", *options)
    done = torchperf("run", *words, script, cwd=folder)
    return done, json.loads(report.read_text()) if report.is_file() else None


def test_the_gate_fails_when_a_read_is_added_to_a_step(tmp_path: Path) -> None:
    assert gate(tmp_path, "--fail-on", "waits>0", optimizer=SGD)[0].status == 0
    done, report = gate(tmp_path, "--fail-on", "waits>0", read=ADDED, optimizer=SGD)
    assert done.status == 1
    (row,) = report["gate"]
    assert (row["condition"], row["failed"]) == ("waits>0", True)
    assert [one["value"] for one in row["values"]] == [5]
    assert [(one["line"], one["source"]) for one in row["lines"]] == [(11, ADDED)]
    text = (tmp_path / "text").read_text()
    assert "gate: failed by waits>0: 5 waits\n  train.py:11: 5 waits: loss.item()" in text


def test_the_gate_passes_when_the_read_stands_in_an_allowed_region(tmp_path: Path) -> None:
    done, report = gate(tmp_path, "--fail-on", "waits>0, host_reads>0", read=ALLOWED, optimizer=SGD)
    assert done.status == 0
    (row,) = report["allowed"]
    assert (row["reason"], row["line"], row["waits"]) == ("the loss is shown", 11, 5)
    assert report["totals"]["host_reads"] == 0
    assert report["missed"] == report["confirmed"] == []
    assert "train.py:11: 5 waits (the loss is shown)" in (tmp_path / "text").read_text()


def test_later_entries_of_a_region_that_allows_the_first_count(tmp_path: Path) -> None:
    done, report = gate(tmp_path, "--fail-on", "waits>3", read=FIRST)
    assert (done.status, report["gate"][0]["values"][0]["value"]) == (1, 4)
    assert [one["waits"] for one in report["allowed"]] == [1]


def test_a_line_with_noqa_is_exempt(tmp_path: Path) -> None:
    assert gate(tmp_path, "--fail-on", "waits>0", read=f"{ADDED}  # noqa: TPF101")[0].status == 0


def test_a_finding_in_a_helper_that_only_a_region_called_is_not_refuted(tmp_path: Path) -> None:
    helper = "with allow_sync('the loss is shown'): show(loss)"
    script = written(helper)
    show = "def show(loss: torch.Tensor):\n    print(loss.item())\n\ndef train("
    (tmp_path / "train.py").write_text(script.replace("def train(", show), encoding="utf-8")
    words = ("--level", "reads", "--fail-on", "waits>0", "--json", "report.json", "train.py")
    assert torchperf("run", *words, cwd=tmp_path).status == 0
    report = json.loads((tmp_path / "report.json").read_text())
    (finding,) = report["undecided"]
    assert (finding["code"], finding["line"]) == ("TPF101", 6)
    assert finding["reason"] == "allowed where it ran: the loss is shown"
    assert report["refuted"] == report["not_in_this_run"] == report["confirmed"] == []


def test_the_programs_own_status_comes_first(tmp_path: Path) -> None:
    done, report = gate(tmp_path, "--fail-on", "waits>0", read=ADDED, end="raise SystemExit(7)")
    assert (done.status, report["exit_status"]) == (7, 7)
    assert report["gate"][0]["failed"]


def test_per_step_needs_steps(tmp_path: Path) -> None:
    done, _ = gate(tmp_path, "--fail-on", "waits/step>0", read=ADDED, optimizer=SGD)
    assert done.status == 2
    assert "the run counted no steps" in done.errors


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("waits", "'waits' is no condition"),
        (
            "reads>0",
            "'reads' is not counted; name one of waits, host_reads, transfers, graph_breaks",
        ),
        ("waits>-1", "is no condition"),
        ("waits>0,", "a condition is empty"),
    ],
)
def test_a_condition_that_cannot_be_read_is_one_line(text: str, told: str, tmp_path: Path) -> None:
    done, report = gate(tmp_path, "--fail-on", text, read=ADDED)
    assert (done.status, report) == (2, None)
    assert told in done.errors
    assert len(done.errors.splitlines()) == 1


def test_raise_stops_at_the_first_wait_with_its_stack(tmp_path: Path) -> None:
    done, report = gate(tmp_path, "--raise", read=ADDED, end="print('not reached')")
    assert done.status == 1
    assert "not reached" not in done.output
    assert done.errors.count('File "') == 2  # the call of train, and the read
    assert "line 11, in train" in done.errors
    assert "torchperf.DeviceWait: the host reads a tensor's value" in done.errors
    assert report["ended"] == "DeviceWait"


def test_raise_passes_allowed_waits(tmp_path: Path) -> None:
    done, _ = gate(tmp_path, "--raise", read=ALLOWED, end="print('reached')", optimizer=SGD)
    assert (done.status, done.output.strip()) == (0, "reached")


def test_raise_stops_at_a_size_that_depends_on_data(tmp_path: Path) -> None:
    script = tmp_path / "shapes.py"
    script.write_text(
        "import torch\n"
        "x = torch.nn.Linear(2, 2).weight\n"
        "torch.nonzero(torch.ones(3))  # on the host everywhere\n"
        "try:\n    torch.nonzero(x)\nexcept Exception:\n    print('caught')\n",
        encoding="utf-8",
    )
    done = torchperf("run", "--raise", script, cwd=tmp_path)
    assert (done.status, done.output) == (1, "")
    assert "line 5, in <module>" in done.errors


REPORT = {
    "steps": {"warmup": 1, "counted": 4, "per_step": {"waits": 1.0, "graph_breaks": 0.5}},
    "totals": {"graph_breaks": 9, "host_reads": 6, "transfers": 1},
    "files": [
        {
            "path": "train.py",
            "lines": {"3": {"host_reads": 6, "transfers": 1}},
            "statements": [{"line": 3, "waits": 10, "text": "x.item()", "counted": {"waits": 4}}],
        }
    ],
}


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("waits>9", [True]),
        ("waits>10", [False]),
        ("waits/step>=1", [True]),
        ("waits / step > 1", [False]),
        ("graph_breaks/step==0.5", [True]),
        ("host_reads!=6", [False]),
        ("waits>0 and transfers>1", [False]),
        ("waits>0 and transfers>0", [True]),
        ("transfers>1, host_reads>5", [False, True]),
    ],
)
def test_conditions(text: str, fails: list[bool]) -> None:
    report: dict[str, Any] = {**REPORT}
    add_gate(report, [text])
    assert [row["failed"] for row in report["gate"]] == fails


def test_the_lines_behind_a_condition() -> None:
    report: dict[str, Any] = {**REPORT}
    add_gate(report, ["waits/step>0"])
    (line,) = report["gate"][0]["lines"]
    assert (line["path"], line["line"], line["times"]) == ("train.py", 3, 4)


def test_a_gate_per_step_is_told_in_the_same_unit_line_by_line() -> None:
    report: dict[str, Any] = {**REPORT}
    add_gate(report, ["waits/step>0", "waits>9", "graph_breaks/step>0"])
    assert list(gate_lines(report["gate"])) == [
        "gate: failed by waits/step>0: 1 wait per step",
        "  train.py:3: 1 wait per step: x.item()",
        "gate: failed by waits>9: 10 waits",
        "  train.py:3: 10 waits: x.item()",
        "gate: failed by graph_breaks/step>0: 0.5 graph breaks per step",
        "  9 graph breaks, counted for the whole run; --trace FILE tells where",
    ]


def test_a_gate_that_passes_tells_its_numbers(tmp_path: Path) -> None:
    gate(tmp_path, "--warmup", "1", "--fail-on", "waits/step>1, waits>9", read=ADDED, optimizer=SGD)
    *_, per_step, in_all, blank, _ = (tmp_path / "text").read_text().splitlines()
    assert per_step == "gate: passed waits/step>1: 1 wait per step"
    assert (in_all, blank) == ("gate: passed waits>9: 5 waits", "")


def test_a_comparison_that_is_none_is_named() -> None:
    with pytest.raises(ConditionError, match="'=>' in 'waits=>1' is no comparison"):
        read_conditions(["waits=>1"])


def test_a_region_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="allow_sync needs a reason"):
        allow_sync(" ")
    with pytest.raises(TypeError, match="takes the reason as text"):
        allow_sync(None)  # type: ignore[arg-type]


def test_only_functions_that_run_when_called_can_be_decorated() -> None:
    async def later() -> None: ...

    with pytest.raises(TypeError, match="write `with allow_sync"):
        allow_sync("x")(later)


def counted(counter: DispatchCounter) -> tuple[int, dict[str, int]]:
    """Return the reads that count, and those that regions allowed, by their reasons."""
    evidence, allowed = counter.evidence, Counter[str]()
    for one in evidence.allowed:
        allowed[one.reason] += one.counts.host_reads
    return evidence.totals.host_reads, allowed


def test_the_innermost_region_that_allows_gives_the_reason() -> None:
    x = torch.ones(())
    with DispatchCounter("reads") as counter, allow_sync("outer"):
        x.item()
        for _ in range(2):
            with allow_sync("inner", first_only=True):
                x.item()
    x.item()
    assert counted(counter) == (0, {"outer": 2, "inner": 1})


def test_a_region_ends_with_an_exception_and_may_be_entered_again() -> None:
    x, region = torch.ones(()), allow_sync("again")
    with DispatchCounter("reads") as counter:
        with pytest.raises(KeyError), region:
            raise KeyError
        x.item()
        with region, region:
            x.item()
        x.item()
    assert counted(counter) == (2, {"again": 1})


def test_a_decorated_function_is_a_region() -> None:
    @allow_sync("decorated")
    def read(x: torch.Tensor) -> float:
        return float(x)

    with DispatchCounter("reads") as counter:
        read(torch.ones(()))
    assert counted(counter) == (0, {"decorated": 1})


def test_a_region_holds_for_its_own_thread() -> None:
    x = torch.ones(())
    with DispatchCounter("reads") as counter, allow_sync("main"):
        thread = threading.Thread(target=x.item)
        thread.start()
        thread.join()
        x.item()
    assert counted(counter) == (1, {"main": 1})


def test_a_region_holds_for_its_own_task() -> None:
    x = torch.ones(())

    async def allowing(entered: asyncio.Event, done: asyncio.Event) -> None:
        with allow_sync("task"):
            entered.set()
            await done.wait()
            x.item()

    async def both() -> None:
        entered, done = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(allowing(entered, done))
        await entered.wait()
        x.item()
        done.set()
        await task

    with DispatchCounter("reads") as counter:
        asyncio.run(both())
    assert counted(counter) == (1, {"task": 1})


def test_sizes_that_depend_on_data_are_counted_apart_as_well() -> None:
    x = torch.ones(3)
    with DispatchCounter() as counter:
        torch.nonzero(x)
        with allow_sync("sizes"):
            torch.nonzero(x)
            x[x > 0]
    assert counter.evidence.totals.dynamic_shapes == 1
    assert sum(one.counts.dynamic_shapes for one in counter.evidence.allowed) == 2


def test_allowed_reads_spend_no_budget() -> None:
    x = torch.ones(())
    with dispatch_budget(max_host_reads=0, max_waits=0), allow_sync("read once"):
        x.item()
    with pytest.raises(BudgetExceeded, match="1 wait, 0 allowed"), dispatch_budget(max_waits=0):
        x.item()
    with dispatch_budget(max_waits=1):
        torch.nonzero(torch.ones(3))


def test_a_budget_of_graph_breaks() -> None:
    with dispatch_budget(max_graph_breaks=0):
        torch.ones(3)


def test_importing_the_region_imports_no_torch(tmp_path: Path) -> None:
    code = "import sys, torchperf; torchperf.allow_sync('x'); assert 'torch' not in sys.modules"
    done = torchperf("-c", code, program=(sys.executable,), cwd=tmp_path)
    assert done.status == 0, done.errors
