"""`torchperf run` refutes only what it saw at work: what was switched off is "not in this run"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from check_run import torchperf, without_devices

torch = pytest.importorskip("torch")

from flake8_torchperf.cli.run_page import page  # noqa: E402
from flake8_torchperf.cli.run_report import as_text  # noqa: E402
from flake8_torchperf.judgement.heat import Level  # noqa: E402
from flake8_torchperf.options import Options  # noqa: E402
from flake8_torchperf.runtime.workload.device_reports import NO_WAIT  # noqa: E402
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow  # noqa: E402
from flake8_torchperf.runtime.workload.matching import Matched, match_findings  # noqa: E402
from flake8_torchperf.runtime.workload.profiling import profile_of  # noqa: E402
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun  # noqa: E402
from flake8_torchperf.runtime.workload.summary import as_data  # noqa: E402
from flake8_torchperf.runtime.workload.sync_recorder import Witness  # noqa: E402
from flake8_torchperf.runtime.workload.waits import NO_CALL, ON_HOST  # noqa: E402

EVERYTHING = Options(scope=Level.COLD)

# A training script in the manner of nanoGPT: AMP off, debug logging off, and torch's own reads.
TRAINING = """\
import logging

import torch
from torch import Tensor, nn

log = logging.getLogger("train")
where = torch.device("cpu")


def get_batch():
    return torch.randn(8, 16, device=where), torch.randint(0, 4, (8,), device=where)


def clipped(loss: Tensor, clip: bool) -> float:
    return loss.item() if clip else 0.0  # off


def bound(x: Tensor) -> float:
    return x.max().item()  # reads the host


def size(x: Tensor) -> float:
    return x.sum().item()  # reads the device


def hidden(value, name):
    return getattr(value, name)()  # nothing found


def peak(value, name):
    return getattr(value, name)()  # nothing found, on the host


def train(model: nn.Module, optimizer: torch.optim.AdamW, amp: bool):
    scaler = torch.amp.GradScaler("cpu", enabled=amp)
    for step in range(6):
        x, y = get_batch()
        loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=amp)  # no errors
        scaler.step(optimizer)
        scaler.update()
        scale = scaler.get_scale()  # AMP off
        optimizer.zero_grad()
        if log.isEnabledFor(logging.DEBUG): log.debug(loss.item())  # no debugging
        clipped(loss, False)
        size(x)
        hidden(x.sum(), "item")
    local = torch.ones(3)
    bound(local)
    peak(local.sum(), "item")


model = nn.Sequential(nn.Linear(16, 8), nn.LayerNorm(8), nn.Linear(8, 4)).to(where)
train(model, torch.optim.AdamW(model.parameters()), ENABLED)
"""


def run(folder: Path, source: str, *options: str) -> tuple[dict[str, Any], str]:
    """The report of a script as data and as text."""
    (folder / "train.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in without_devices().items():
            patch.setenv(name, value)
        done = torchperf("run", "--json", "run.json", *options, "train.py", cwd=folder)
    assert done.status == 0, done.errors
    return json.loads((folder / "run.json").read_text()), done.errors


def at(text: str, source: str = TRAINING) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


@pytest.fixture(scope="module")
def without_amp(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    source = TRAINING.replace("ENABLED", "False")
    return run(tmp_path_factory.mktemp("off"), source, "--html", "run.html")


def lines(rows: list[dict[str, Any]]) -> dict[int, str]:
    return {row["line"]: row.get("reason", "") for row in rows}


def test_what_was_switched_off_is_not_refuted(without_amp: tuple[dict[str, Any], str]) -> None:
    data, text = without_amp
    assert lines(data["not_in_this_run"]) == dict.fromkeys(
        (at("# off"), at("no errors"), at("AMP off"), at("no debugging")), NO_CALL
    )
    assert "not in this run: findings in lines that ran without" in text
    assert ", 4 not in this run, " in text.splitlines()[-1]


def test_what_read_the_host_is_refuted_as_a_line_without_a_finding_is(
    without_amp: tuple[dict[str, Any], str],
) -> None:
    data = without_amp[0]
    assert lines(data["refuted"]) == {at("reads the host"): ON_HOST}
    assert at("reads the device") in lines(data["confirmed"])
    assert set(lines(data["missed_on_host"])) == {at("nothing found, on the host")}
    assert at("nothing found") in lines(data["missed"])


def test_what_torch_makes_for_itself_on_the_host_is_not_waited_for(
    without_amp: tuple[dict[str, Any], str],
) -> None:
    """Adam reads its step counters: six parameters in each of six steps."""
    data = without_amp[0]
    assert data["inside_calls"] == []
    counted = data["files"][0]["lines"][str(at("scaler.step"))]
    assert counted["dispatches"] > 36
    assert "host_reads" not in counted
    assert (
        data["totals"]["host_reads"] == 12
    )  # size and hidden in six steps; bound and peak are the host's


@pytest.mark.slow
def test_a_scaler_that_is_enabled_waits(tmp_path: Path) -> None:
    data, _ = run(tmp_path, TRAINING.replace("ENABLED", "True"), "--level", "reads")
    confirmed = {one["line"]: one["count"] for one in data["confirmed"]}
    assert confirmed.items() >= {at("AMP off"): 6, at("no errors"): 6}.items()
    (step,) = data["inside_calls"]
    assert (step["line"], step["kinds"]) == (at("scaler.step"), {"host_reads": 6})


STEP = """\
import torch


def train_step(x: torch.Tensor, strict: bool):
    total = x.sum().item() if strict else 0.0
    least = x.min().item()
    most = x.max().item()
    return total, least, most, x.mean().item()
"""


def counted(path: Path, line: int, **counts: Any) -> dict[str, Any]:
    """What a line counted; what raised each counter does not matter."""
    events = {name: {"some": times} for name, times in counts.items() if isinstance(times, int)}
    return {"path": str(path), "line": line, "counts": counts, "events": events}


def on_cuda(path: Path) -> Observed:
    """A run with ``strict`` off, in which the last line waited longest and the one before oftener."""
    path.write_text(STEP)
    return Observed(
        torch="2.13.0", device="cuda:0", level="reads", seconds=1.0,
        totals={"host_reads": 12, "device_syncs": 5, "transfers": 3, "dispatches": 0},
        lines=(
            counted(path, 7, host_reads=4, device_syncs=4, waited=0.001, seconds=0.9),
            counted(path, 8, host_reads=1, device_syncs=1, waited=0.25),
        ),
        executed={str(path): frozenset({1, 4, 5, 6, 7, 8})},
        syncs=tuple(
            SyncRow(str(path), line, category, kind, "item", times, 8)
            for line, times in ((6, 3), (7, 4), (8, 1))
            for category, kind in (("device", "waited"), ("sync", "item"))
            if line > 6 or category == "sync"  # its tensor is on the host of this machine
        ),
        times={str(path): (tuple((line, 4) for line in (5, 6, 7, 8)),)},
        metrics="", ended="returned",
    )  # fmt: skip


def judged(observed: Observed) -> dict[int, Matched]:
    (file,) = match_findings(MergedRun(observed), EVERYTHING)
    return {one.finding.line: one for one in file.judged}


def test_the_device_refutes_what_was_at_work_and_nothing_else(tmp_path: Path) -> None:
    verdicts = judged(on_cuda(tmp_path / "step.py"))
    assert (verdicts[5].verdict, verdicts[5].reason) == ("not in this run", NO_CALL)
    assert (verdicts[6].verdict, verdicts[6].reason) == ("refuted", NO_WAIT)


def test_what_was_waited_for_longest_is_told_first(tmp_path: Path) -> None:
    observed = on_cuda(tmp_path / "step.py")
    files = match_findings(MergedRun(observed), EVERYTHING)
    data = as_data([], 0, MergedRun(observed), files)
    assert [(row["line"], row["waited"]) for row in data["confirmed"]] == [(8, 0.25), (7, 0.001)]
    told = [line for line in as_text(data).splitlines() if ", waited " in line]
    assert [line.rpartition("[")[2] for line in told] == [
        "1 device sync, waited 250 ms]",
        "4 device syncs, waited 1 ms, 900 ms in operations]",
    ]


def test_without_a_device_the_time_in_operations_comes_before_the_count(tmp_path: Path) -> None:
    path = tmp_path / "step.py"
    cuda = on_cuda(path)
    lines = (
        counted(path, 7, host_reads=9, seconds=0.1),
        counted(path, 8, host_reads=2, seconds=0.4),
        counted(path, 5, host_reads=3, seconds=0.1),
    )
    observed = Observed(**{**vars(cuda), "device": "cpu", "lines": lines, "syncs": ()})
    data = as_data([], 0, MergedRun(observed), match_findings(MergedRun(observed), EVERYTHING))
    assert [(row["line"], row["waited"]) for row in data["confirmed"]] == [
        (8, None), (7, None), (5, None),
    ]  # fmt: skip


def test_the_page_knows_the_verdict(tmp_path: Path) -> None:
    observed = on_cuda(tmp_path / "step.py")
    files = match_findings(MergedRun(observed), EVERYTHING)
    text = page(as_data([], 0, MergedRun(observed), files), files)
    assert "1 not in this run" in text
    assert ">not in this run</a>: TPF101" in text
    assert "4 device syncs, waited 1 ms" in text


def test_a_profile_of_such_a_run_has_no_word_of_the_device(tmp_path: Path) -> None:
    """With it the finding would disappear in every scope."""
    profile = profile_of(on_cuda(tmp_path / "step.py"), str(tmp_path))
    measured = {entry.line: (entry.waits, entry.seconds) for entry in profile.files["step.py"]}
    assert measured == {5: (0, None), 6: (0, 0.0), 7: (4, 0.001), 8: (1, 0.25)}


def test_a_tensor_that_was_moved_is_the_devices_as_one_made_there_is() -> None:
    """On the host `to(device)` returns its operand, whose mark must not go with it."""
    text = (
        "a = torch.zeros(3).to(d)\nb = torch.zeros(3, device=d)\na.sum().item()\nb.sum().item()\n"
    )
    witness = Witness(lambda name: name == "<moved>")
    with witness:
        exec(compile(text, "<moved>", "exec"), {"torch": torch, "d": torch.device("cpu")})
    assert [(row.line, row.category) for row in witness.rows if row.kind == "item"] == [
        (3, "sync"), (4, "sync"),
    ]  # fmt: skip


# The device is a text that stands for the host only where there is no accelerator.
CHOSEN = """\
import torch


def moved(lengths: torch.Tensor, device: str) -> float:
    return lengths.to(device).max().item()  # device


def made(device: str) -> float:
    return torch.ones(3, device=device).max().item()  # device


def kept(lengths: torch.Tensor) -> float:
    return lengths.to("cpu").max().item()  # host


def chosen(lengths: torch.Tensor) -> float:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return lengths.to(device).max().item()  # device


if __name__ == "__main__":
    lengths = torch.arange(4)
    for function in (moved, made):
        for _ in range(2):
            function(*((lengths, "cpu") if function is moved else ("cpu",)))
    kept(torch.arange(5))
    chosen(torch.arange(6))
"""


def test_a_variable_that_holds_the_host_is_where_a_program_computes(tmp_path: Path) -> None:
    data, _ = run(tmp_path, CHOSEN, "--scope", "all", "--level", "reads")
    waiting = [n for n, line in enumerate(CHOSEN.splitlines(), 1) if "# device" in line]
    assert sorted(lines(data["confirmed"])) == waiting
    host = at("# host", CHOSEN)
    assert host not in lines(data["confirmed"])
    assert host not in lines(data["missed"])
