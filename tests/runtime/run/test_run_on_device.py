"""`torchperf run` on CUDA holds findings against what the device reported; elsewhere it infers.

No GPU is needed: what a run on one observed is written down, and what the calls look like without
one is compared with what an H100 said of each (`tests/data/forms-h100.json`).
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools")]

from torch_table.forms import holders  # noqa: E402

from flake8_torchperf.cli.run_report import as_text  # noqa: E402
from flake8_torchperf.judgement.heat import Level  # noqa: E402
from flake8_torchperf.options import Options  # noqa: E402
from flake8_torchperf.runtime.workload.device_reports import NO_WAIT, UNHEARD  # noqa: E402
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow  # noqa: E402
from flake8_torchperf.runtime.workload.matching import FileReport, match_findings  # noqa: E402
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun  # noqa: E402
from flake8_torchperf.runtime.workload.summary import as_data  # noqa: E402
from flake8_torchperf.runtime.workload.sync_recorder import Witness  # noqa: E402
from flake8_torchperf.runtime.workload.waits import NO_CALL  # noqa: E402

EVERYTHING = Options(scope=Level.COLD)

STEP = """\
import torch


def train_step(x: torch.Tensor, ids, strict: bool):
    x[ids] = 1.0
    if strict and x.sum() > 0:
        return 0.0
    norm = ids.total_norm(x)
    rows = torch.unique(x, dim=0)
    late = x.to("cpu", non_blocking=True)
    return x.sum().item()
"""


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(STEP.splitlines(), 1) if text in line)


def evidence(path: Path, text: str, **events: dict[str, int]) -> dict[str, Any]:
    counts = {counter: sum(causes.values()) for counter, causes in events.items()}
    return {"path": str(path), "line": line_of(text), "counts": counts, "events": events}


def observed(path: Path, device: str, totals: dict[str, int]) -> Observed:
    """What a run on an H100 recorded of STEP."""
    reported = [("x[ids]", "__setitem__"), ("return x.sum()", "item")]
    lines = (
        evidence(path, "x[ids]", device_syncs={"__setitem__": 3}),
        evidence(path, "if strict", host_reads={}),
        evidence(path, "total_norm", device_syncs={"__bool__": 3}, host_reads={"item": 3}),
        evidence(path, "torch.unique", dynamic_shapes={"aten::unique_dim": 3}),
        evidence(path, "late =", host_reads={"to": 3}, transfers={"to-host to": 3}),
        evidence(path, "return x.sum()", device_syncs={"item": 3}, host_reads={"item": 3}),
    )
    return Observed(
        torch="2.11.0", device=device, level="full", seconds=1.0, totals=totals, lines=lines,
        executed={str(path): frozenset({1, 4, *range(5, 12)})},
        syncs=tuple(SyncRow(str(path), line_of(t), "device", "waited", op, 3, 8) for t, op in reported),
        metrics="", ended="returned",
    )  # fmt: skip


TOTALS = {"host_reads": 9, "device_syncs": 9, "transfers": 3, "dispatches": 50}


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.py"
    path.write_text(STEP)
    return path


def report(
    path: Path, device: str = "cuda", totals: dict[str, int] = TOTALS, read: str = ""
) -> FileReport:
    """What is said of the run; `read` is the line of which a host tensor is tested besides."""
    seen = observed(path, device, totals)
    if read:
        row = SyncRow(str(path), line_of(read), "sync", "bool", "__bool__", 3, 1)
        seen = replace(seen, syncs=(*seen.syncs, row))
    (found,) = match_findings(MergedRun(seen), EVERYTHING)
    return found


def test_a_wait_that_the_device_reported_and_nobody_found_is_missed_with_its_operation(
    step: Path,
) -> None:
    missed = {(one.span[0], one.inside): one for one in report(step).missed}
    direct, inside = missed[line_of("x[ids]"), False], missed[line_of("total_norm"), True]
    assert dict(direct.kinds) == {"__setitem__": 3}
    assert dict(inside.kinds) == {"__bool__": 3}
    assert not direct.inferred
    assert len(missed) == 2  # the copy that did not wait is not among them


def test_the_device_refutes_what_was_at_work_and_did_not_wait(step: Path) -> None:
    verdicts = {one.finding.line: one for one in report(step).judged}
    branch = verdicts[line_of("if strict")]
    assert (branch.verdict, branch.reason) == ("not in this run", NO_CALL)
    copy = {one.finding.line: one for one in report(step, read="if strict").judged}[branch.span[0]]
    assert (copy.verdict, copy.reason) == ("refuted", NO_WAIT)
    read = verdicts[line_of("return x.sum()")]
    assert (read.verdict, read.counter, read.count) == ("confirmed", "device_syncs", 3)


def test_a_wait_that_the_debug_mode_does_not_report_is_not_refuted(step: Path) -> None:
    (unique,) = (one for one in report(step).judged if one.finding.code == "TPF404")
    assert (unique.verdict, unique.counter) == ("confirmed", "dynamic_shapes")


def test_where_no_report_was_heard_the_counters_decide_and_a_note_says_so(step: Path) -> None:
    silent = {**TOTALS, "device_syncs": 0}
    file = report(step, totals=silent)
    assert all(one.inferred for one in file.missed)
    data = as_data([], 0, MergedRun(observed(step, "cuda", silent)), [file])
    assert data["notes"] == [UNHEARD]
    assert as_data([], 0, MergedRun(observed(step, "cuda", TOTALS)), [report(step)])["notes"] == []


def test_the_report_says_whose_word_it_is(step: Path) -> None:
    text = as_text(as_data([], 0, MergedRun(observed(step, "cuda", TOTALS)), [report(step)]))
    assert "5: __setitem__ 3x (reported by the device): x[ids] = 1.0" in text
    row = SyncRow(str(step), line_of("x[ids]"), "copy", "assign-from-host", "__setitem__", 3, 8)
    seen = observed(step, "cpu", TOTALS)
    (file,) = match_findings(MergedRun(Observed(**{**vars(seen), "syncs": (row,)})), EVERYTHING)
    data = as_data([], 0, MergedRun(seen), [file])
    assert [one["inferred"] for one in data["missed"]] == [True]
    assert "5: assign-from-host 3x (inferred): x[ids] = 1.0" in as_text(data)


MEASURED = json.loads((ROOT / "tests" / "data" / "forms-h100.json").read_bytes())["forms"]
# Of pinned memory and of `cuda()` a machine without CUDA has nothing.
SHOWN = [text for text in MEASURED if "pin_memory" not in text and "cuda()" not in text]
HOST = ("h0", "hv", "hids")


@pytest.mark.parametrize("text", SHOWN)
def test_without_a_device_the_same_is_inferred_as_an_h100_reported(text: str) -> None:
    names, witness = holders("cpu"), Witness(lambda name: name == "<form>")
    code = compile(text, "<form>", "exec")
    with witness:
        for name in HOST:
            witness._origins.mark_host(names[name])
        exec(code, names)
    waits = [row for row in witness.rows if row.category in ("sync", "copy")]
    assert bool(waits) == (MEASURED[text] != "none"), witness.rows


def test_the_witness_notes_the_devices_waits_at_the_calls_that_made_them() -> None:
    """A device that reports a wait in each call of `relu`, also where a library makes it."""
    waited = [0]

    class Reports(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.relu:
                waited[0] += 2
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(3).as_subclass(Reports)
    owned = {"torch": torch, "x": x}
    exec(compile("def library():\n    torch.relu(x)\n", "<library>", "exec"), owned)
    code = compile("torch.relu(x)\nlibrary()\nx + 1\n", "<mine>", "exec")
    with Witness(lambda name: name == "<mine>", lambda: waited[0]) as witness:
        exec(code, owned)
    device = [
        (row.line, row.operation, row.times) for row in witness.rows if row.category == "device"
    ]
    assert device == [(1, "relu", 2)]
