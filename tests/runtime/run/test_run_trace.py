"""`torchperf run --trace`: waits, transfers and graph breaks on a timeline that Perfetto opens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_run import torchperf, without_devices
from flake8_run import Run

pytest.importorskip("torch")

from flake8_torchperf.runtime.counting import moments as kept
from flake8_torchperf.runtime.counting.moments import Moment, Moments, Timeline, timeline_of
from flake8_torchperf.runtime.workload.exchange import Observed, load_observed
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun
from flake8_torchperf.runtime.workload.timeline.chrome import as_trace

PROGRAM = """
    import os, sys, threading
    import torch

    sys.path.append(os.environ["LIBRARY"])
    import library

    def helper(x):
        return x.sum().item()

    def step(rows, w):
        total = (w * w).sum()
        if total > 0:
            total = total * 2
        rows[:, :20].to(torch.device("cpu"), non_blocking=True)
        library.read(w)
        torch.zeros(1).item()
        return helper(w), w.tolist()

    w = torch.nn.Parameter(torch.ones(3))
    for _ in range(2):
        step(torch.rand(30, 30), w)
    reader = threading.Thread(target=helper, args=(w.detach(),), name="reader")
    reader.start()
    reader.join()
    compiled = torch.compile(lambda x: x.sum().item() + 1, backend="eager")
    compiled(w)
    torch.cuda.synchronize()
    """


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the programs import from elsewhere.

    Not by PYTHONPATH: what differs in that is not forked from the process that other tests use.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "library.py").write_text("def read(x):\n    return x.sum().item()\n")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**without_devices(), "LIBRARY": str(folder)}.items():
            patch.setenv(name, value)
        yield


def run(folder: Path, *arguments: str) -> Run:
    (folder / "train.py").write_text(dedent(PROGRAM))
    return torchperf("run", *arguments, cwd=folder)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(dedent(PROGRAM).splitlines(), 1) if text in line)


@pytest.mark.parametrize("level", ["full", "reads"])
def test_a_run_is_shown_by_thread_with_the_lines_that_waited(tmp_path: Path, level: str) -> None:
    done = run(
        tmp_path, "--owner", "train.py", "--level", level, "--trace", "t-{rank}.json", "train.py"
    )
    assert done.status == 0, done.errors
    data = json.loads((tmp_path / "t-0.json").read_text())
    assert data["otherData"]["command"] == "train.py"
    events = data["traceEvents"]
    named = {(e["name"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert named["process_name", 0] == "program"
    threads = {tid: name for (kind, tid), name in named.items() if kind == "thread_name"}
    shown = [e for e in events if e["ph"] != "M"]
    seen = Counter(
        (e["cat"], e["name"], e["args"]["line"], threads[e["tid"]])
        for e in shown
        if e["cat"] != "graph break"
    )
    main = "MainThread"
    seeming = "to: non_blocking, but the source is not dense"
    assert seen == {
        ("wait", "__bool__", line_of("if total > 0"), main): 2,
        ("transfer", "to-device to", line_of(".to(torch"), main): 2,
        ("looks asynchronous", seeming, line_of(".to(torch"), main): 2,
        # What a library reads is the line that called it; what is on the host is not shown.
        ("wait", "aten::_local_scalar_dense", line_of("library.read"), main): 2,
        ("wait", "item", line_of("return x.sum()"), main): 2,
        ("wait", "tolist", line_of("w.tolist()"), main): 2,
        ("transfer", "to-host tolist", line_of("w.tolist()"), main): 2,
        ("wait", "item", line_of("return x.sum()"), "reader"): 1,
        ("wait", "item", line_of("compiled = "), main): 1,
        ("wait", "torch.cuda.synchronize", line_of("cuda.sync"), main): 1,
    }
    (broken,) = (e for e in shown if e["cat"] == "graph break")
    assert (broken["ph"], broken["args"]["line"]) == ("i", line_of("compiled(w)"))
    assert "item()" in broken["name"]
    times = [e["ts"] for e in shown]
    assert times == sorted(times)
    assert times[0] > 0
    slices = [e for e in shown if e["ph"] == "X"]
    assert all(e["dur"] >= 0 for e in slices)
    call = next(e for e in slices if e["name"] == "__bool__")
    assert call["dur"] > 0
    assert call["args"] == {
        "file": "train.py", "line": line_of("if total > 0"), "kind": "bool", "count": 1,
        "source": "if total > 0:", "how": "inferred",
    }  # fmt: skip


def test_a_trace_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, "--trace", "nowhere/t.json", "train.py")
    assert done.status == 2
    assert "run: --trace: " in done.errors
    assert len(done.errors.splitlines()) == 1


def moment(began: int, category: str, **fields: Any) -> Moment:
    values = {"took": 10, "thread": 0, "kind": "", "operation": category, "path": "gone.py"}
    values |= {"line": 3, "times": 1, "size": 0, "firm": False, **fields}
    return Moment(began=began, category=category, **values)


def observed(device: str, began: int, moments: list[Moment], **fields: Any) -> Observed:
    timeline = Timeline(100 + began, began, ("MainThread",), tuple(moments), fields.pop("lost", 0))
    return Observed(
        torch="2.13.0", device=device, level="full", seconds=1.0,
        totals={"host_reads": 1, "device_syncs": 1}, lines=(), executed={}, syncs=(), metrics="",
        ended="returned", timeline=timeline, **fields,
    )  # fmt: skip


def slices(*processes: Observed) -> list[dict[str, Any]]:
    run = MergedRun(processes[0], processes=processes)
    return json.loads(as_trace(run, ["train.py"]))["traceEvents"]


def test_where_a_device_reported_its_waits_these_are_shown() -> None:
    moments = [
        moment(1_000, "sync", kind="item", operation="item"),
        moment(1_002, "host_reads", operation="aten::_local_scalar_dense"),
        moment(1_003, "device_syncs", operation="aten::_local_scalar_dense", took=7_000),
        moment(9_000, "copy", kind="copy-to-device", operation="to"),
    ]
    (waited,) = (e for e in slices(observed("cuda", 0, moments)) if e["ph"] == "X")
    assert (waited["ts"], waited["dur"]) == (1.003, 7.0)
    assert waited["args"]["how"] == "reported by the device"
    inferred = [e for e in slices(observed("cpu", 0, moments)) if e["ph"] == "X"]
    assert [(e["name"], e["ts"]) for e in inferred] == [("item", 1.0), ("to", 9.0)]


def test_a_read_is_shown_once_but_in_another_thread_or_at_another_time() -> None:
    moments = [
        moment(1_000, "sync", kind="svd", took=500),
        moment(1_500, "host_reads"),  # as the call ends
        moment(995, "host_reads", took=20),  # its wrapper began before
        moment(1_511, "host_reads", operation="later"),
        moment(1_100, "host_reads", operation="beside", thread=1),
        moment(900, "host_reads", operation="before"),
    ]
    shown = [e["name"] for e in slices(observed("cpu", 0, moments)) if e["ph"] == "X"]
    assert shown == ["before", "sync", "beside", "later"]


def test_what_does_not_wait_on_a_device_is_left_out() -> None:
    moments = [
        moment(1_000, "host", kind="item", firm=True),
        moment(2_000, "fill", kind="mask-fill"),
        moment(3_000, "queued", kind="non-blocking"),
        moment(4_000, "host", kind="item", operation="passed", firm=False),
    ]
    shown = [e["name"] for e in slices(observed("cpu", 0, moments)) if e["ph"] == "X"]
    assert shown == ["passed"]


def test_ranks_and_data_workers_are_processes_on_one_clock() -> None:
    ranks = [
        observed("cpu", 5_000, [moment(6_000, "synchronisations")], rank=0),
        observed("cpu", 4_000, [moment(6_500, "synchronisations")], rank=1),
    ]
    worker = observed("cpu", 7_000, [], rank=1, data_worker=2, lost=4)
    run = MergedRun(ranks[0], processes=tuple(ranks), data_workers=(worker,))
    data = json.loads(as_trace(run, ["train.py", "--x"]))
    events = data["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {5_100: "rank 0", 4_100: "rank 1", 7_100: "rank 1, data worker 2"}
    assert [e["ts"] for e in events if e["ph"] == "X"] == [2.0, 2.5]
    assert data["otherData"]["dropped"] == 4


def test_moments_are_bounded_and_survive_the_way_to_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST", 3)
    collected = Moments()
    place = (test_a_read_is_shown_once_but_in_another_thread_or_at_another_time.__code__, 0)
    for size in range(5):
        collected.add(place, 0, "transfers", "", "to", size=size)
    timeline = collected.timeline()
    assert [one.size for one in timeline.moments] == [0, 1, 2]
    assert timeline.dropped == 2
    assert timeline_of(json.loads(json.dumps(timeline.to_data()))) == timeline
    seen = observed("cpu", 0, [moment(1, "transfers")])
    seen.save(tmp_path / "r.json")
    assert load_observed(tmp_path / "r.json") == seen
    collected.clear()
    assert collected.timeline().moments == ()
