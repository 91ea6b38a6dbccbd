"""Copies with `non_blocking=True` that only look asynchronous are counted, with the reason.

Pinned memory needs CUDA, so a test says here which memory is pinned; the host stands in for the
device. What an H100 said of such copies is in `tests/data/forms-h100.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_run import torchperf

torch = pytest.importorskip("torch")

from flake8_torchperf.cli.run_report import as_text  # noqa: E402
from flake8_torchperf.judgement.heat import Level  # noqa: E402
from flake8_torchperf.options import Options  # noqa: E402
from flake8_torchperf.runtime.counting.counter import DispatchCounter  # noqa: E402
from flake8_torchperf.runtime.counting.fake_accelerator import HostStandsIn  # noqa: E402
from flake8_torchperf.runtime.workload.copies.queued import queued  # noqa: E402
from flake8_torchperf.runtime.workload.copies.report import REASONS, seeming  # noqa: E402
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow  # noqa: E402
from flake8_torchperf.runtime.workload.matching import match_findings  # noqa: E402
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun  # noqa: E402
from flake8_torchperf.runtime.workload.summary import as_data  # noqa: E402
from flake8_torchperf.runtime.workload.sync_recorder import Witness  # noqa: E402

# `host` is a tensor of the host, `device` one of the device; both have 300 rows of 200 floats.
FORMS = [
    ("host.to('cuda', non_blocking=True)", "source-pageable"),
    ("host.to(torch.device('cuda', 0), None, True)", "source-pageable"),
    ("host.to(device='cuda', non_blocking=True)", "source-pageable"),
    ("host.to('cuda', torch.float16, non_blocking=True)", "source-pageable"),
    ("host.cuda(non_blocking=True)", "source-pageable"),
    ("host.cuda(0, True)", "source-pageable"),
    ("host.t().to('cuda', non_blocking=True)", "source-pageable"),
    ("host.t().to('cuda', torch.float16, non_blocking=True)", "source-not-dense"),
    ("host[:, :100].to('cuda', non_blocking=True)", "source-not-dense"),
    ("host[0].expand(300, 200).to('cuda', non_blocking=True)", "source-not-dense"),
    ("host[:, 0].to('cuda', non_blocking=True)", "small-source-not-dense"),
    ("host[0].to('cuda', non_blocking=True)", "small-source-pageable"),
    ("device.copy_(host, non_blocking=True)", "source-pageable"),
    ("device.copy_(host, True)", "source-pageable"),
    ("device.copy_(host.t().t(), non_blocking=True)", "source-pageable"),
    ("device.t().copy_(host.t(), non_blocking=True)", "source-pageable"),
    ("device.view(200, 300).copy_(host.t(), non_blocking=True)", "source-not-dense"),
    ("device.copy_(host[0], non_blocking=True)", "small-source-not-dense"),
    ("host.copy_(device, non_blocking=True)", "target-pageable"),
    ("host.t().copy_(device.view(200, 300), non_blocking=True)", "target-not-dense"),
    ("host.to('cuda')", None),
    ("host.to('cuda', non_blocking=False)", None),
    ("host.to('cpu', non_blocking=True)", None),
    ("host.to(torch.float16, non_blocking=True)", None),
    ("device.to('cuda', non_blocking=True)", None),
    ("device.copy_(device, non_blocking=True)", None),
    ("host.copy_(host, non_blocking=True)", None),
    ("host[:0].to('cuda', non_blocking=True)", None),
]


def kinds(text: str, is_pinned: Callable[[Any], bool] | None) -> list[str]:
    host, device = torch.rand(300, 200), torch.rand(300, 200)
    code = compile(text, "<form>", "exec")
    names = {"torch": torch, "host": host, "device": device}
    with HostStandsIn(), Witness(lambda name: name == "<form>", is_pinned=is_pinned) as witness:
        witness._origins.mark_host(host)
        exec(code, names)
    return [row.kind for row in witness.rows if row.category == "queued"]


@pytest.mark.parametrize(("text", "kind"), FORMS)
def test_a_copy_is_recorded_by_the_memory_that_it_needs(text: str, kind: str | None) -> None:
    dense = kind is not None and "not-dense" not in kind
    assert kinds(text, lambda _: False) == ([kind] if kind else [])
    # Pinned memory mends what is dense; of that a machine without CUDA can show no more.
    of_pinned = ["non-blocking"] if dense else [kind] if kind else []
    assert kinds(text, lambda _: True) == of_pinned
    assert kinds(text, None) == of_pinned


def test_a_copy_between_devices_is_known_by_its_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """On CUDA nothing stands in: where both lie decides, whoever made them."""

    class Lies(torch.Tensor):
        @property
        def device(self) -> Any:  # type: ignore[override]
            return torch.device("cuda", 0)

    host = torch.rand(300, 200)
    there = torch.rand(300, 200).as_subclass(Lies)
    wide = torch.rand(300, 200).t().as_subclass(Lies)

    def kind(name: str, args: tuple[Any, ...], out: Any, *, pinned: bool) -> str:
        return queued(name, args, {"non_blocking": True}, out, lambda _: False, lambda _: pinned)

    assert kind("to", (host, "cuda"), there, pinned=False) == "source-pageable"
    assert kind("to", (host, "cuda"), there, pinned=True) == "non-blocking"
    # The copy to the host that `to` makes is pinned (aten/src/ATen/native/TensorConversions.cpp).
    assert kind("to", (there, "cpu"), host, pinned=True) == "non-blocking"
    assert kind("copy_", (host, there), host, pinned=False) == "target-pageable"
    assert kind("copy_", (host.view(200, 300), wide), host, pinned=True) == "non-blocking"
    assert kind("copy_", (there, there), there, pinned=False) == ""


MODULE = """
import torch

def move(net, device):
    net.to(device, non_blocking=True)

class Batch:
    def to(self, device):
        return self.rows.to(device, non_blocking=True)
"""


def test_the_move_of_a_module_is_counted_at_the_line_that_asked_for_it() -> None:
    names: dict[str, Any] = {}
    exec(compile(MODULE, "<mine>", "exec"), names)
    net = torch.nn.Sequential(torch.nn.Linear(200, 200), torch.nn.Linear(2, 2, bias=False))
    with HostStandsIn(), Witness(lambda name: name == "<mine>", is_pinned=lambda _: False) as seen:
        for one in net.parameters():
            seen._origins.mark_host(one)
        names["move"](net, torch.device("cuda"))
    rows = {row.kind: (row.line, row.operation, row.times) for row in seen.rows}
    assert rows["source-pageable"] == (5, "to", 1)  # the weight of 160 kB
    assert rows["small-source-pageable"] == (5, "to", 2)


def test_the_line_of_a_library_that_copies_is_the_caller_of_yours() -> None:
    names: dict[str, Any] = {}
    exec(compile(MODULE, "<library>", "exec"), names)
    batch = names["Batch"]()
    batch.rows = torch.rand(300, 200)
    mine = compile("\nbatch.to('cuda')", "<mine>", "exec")
    with HostStandsIn(), Witness(lambda name: name == "<mine>", is_pinned=lambda _: False) as seen:
        seen._origins.mark_host(batch.rows)
        exec(mine, {"batch": batch})
    assert [(row.path, row.line, row.kind) for row in seen.rows] == [
        ("<mine>", 2, "source-pageable")
    ]


def test_asking_whether_memory_is_pinned_counts_no_dispatch() -> None:
    from flake8_torchperf.runtime.workload.copies.queued import _is_pinned

    with DispatchCounter() as counter:
        assert not _is_pinned(torch.rand(3))
    assert [one.name for one in counter.evidence.ops] == ["aten::rand"]


STEP = "import torch\n\n\ndef step(x, batch, net):\n    x.copy_(batch, non_blocking=True)\n    net.to(x.device, non_blocking=True)\n"


def observed(path: Path) -> Observed:
    """What a run on CUDA records: no wait was reported."""
    rows = [
        (5, "source-not-dense", "copy_", 3), (5, "small-source-not-dense", "copy_", 2),
        (6, "small-source-pageable", "to", 4), (6, "non-blocking", "to", 7),
    ]  # fmt: skip
    return Observed(
        torch="2.13.0", device="cuda", level="full", seconds=1.0, metrics="", ended="returned",
        totals={"host_reads": 0, "device_syncs": 0, "transfers": 16, "dispatches": 16},
        lines=(), executed={str(path): frozenset({1, 4, 5, 6})},
        syncs=tuple(SyncRow(str(path), line, "queued", kind, op, n, 9) for line, kind, op, n in rows),
    )  # fmt: skip


def test_the_report_names_the_line_the_reason_and_how_many_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "step.py"
    path.write_text(STEP)
    seen = observed(path)
    files = match_findings(MergedRun(seen), Options(scope=Level.COLD))
    data = as_data([], 0, MergedRun(seen), files)
    copy, move = data["looks_asynchronous"]
    assert copy == {
        "path": "step.py", "line": 5, "operation": "copy_", "kind": "source-not-dense",
        "reason": "non_blocking, but the source is not dense", "times": 5, "small": 2, "numel": 9,
        "source": "x.copy_(batch, non_blocking=True)",
    }  # fmt: skip
    assert (move["line"], move["times"], move["small"]) == (6, 4, 4)
    assert not data["missed"]  # they are a kind of their own, not among the waits
    text = as_text(data)
    small = "of at most 64 KiB, for which nothing waits"
    assert f"step.py:5: copy_ 5x: {REASONS['source-not-dense']} (2 {small}): x.copy_(" in text
    assert f"step.py:6: to 4x: {REASONS['source-pageable']} (all {small}): net.to(" in text
    assert "9 copies only look asynchronous" in text


def test_a_line_with_noqa_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "step.py"
    path.write_text(STEP.replace("batch, non_blocking=True)", "batch, True)  # noqa: TPF503"))
    assert [row["line"] for row in seeming(observed(path))] == [6]


def test_a_run_without_a_device_shows_what_is_not_dense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(
        dedent(
            """
            import torch

            def step(rows, device):
                whole = torch.zeros(300, 300)
                columns = rows[:, :200]
                return whole.to(device, non_blocking=True), columns.to(device, non_blocking=True)

            for _ in range(3):
                step(torch.zeros(300, 300), torch.device("cpu"))
            """
        )
    )
    if torch.cuda.is_available():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run = torchperf("run", "--json", "r.json", "train.py", cwd=tmp_path)
    assert run.status == 0, run.errors
    data = json.loads((tmp_path / "r.json").read_text())
    (row,) = data["looks_asynchronous"]
    assert (row["path"], row["line"], row["kind"], row["times"]) == (
        "train.py", 7, "source-not-dense", 3,
    )  # fmt: skip
