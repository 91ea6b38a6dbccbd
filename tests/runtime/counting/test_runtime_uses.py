"""Where what a line makes is used, and what `confirm` and `run` say of findings that cost there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.documentation import read_documentation
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.runtime.confirm.plan import ConfirmSettings, Request, plan
from flake8_torchperf.runtime.confirm.sandbox import Answer
from flake8_torchperf.runtime.confirm.verdict import CallVerdict, verdict_of_call
from flake8_torchperf.runtime.counting.counts import Counts
from flake8_torchperf.runtime.rule_pages.use_spans import use_spans
from flake8_torchperf.runtime.workload.exchange import Observed
from flake8_torchperf.runtime.workload.matching import match_findings as judge_run
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun

USED = """\
import torch
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


class Trainer:
    def __init__(self, model):
        self.model = model.to("cuda")
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)  # 12, 14

    def train_step(self, x):
        self.opt.zero_grad()
        self.model(x).sum().backward()
        self.opt.step()


def main(dataset: Dataset, model):
    model = model.cuda()
    loader = DataLoader(dataset, batch_size=4)  # 21
    optimizers = [torch.optim.SGD([p], lr=0.1) for p in model.parameters()]  # 24, 25
    for i, batch in enumerate(tqdm(loader)):
        model(batch.cuda())
        for one in optimizers:
            one.zero_grad(set_to_none=False)  # 24
            one.step()
    for batch in DataLoader(dataset, batch_size=3):  # 26
        model(batch)
    loose = []
    for p in model.parameters():
        loose.append(torch.optim.Adam([p], lr=0.1))  # nowhere
"""


def test_what_a_line_makes_is_looked_for_by_its_name() -> None:
    tree = ast.parse(USED)
    lines = USED.splitlines()
    found = {
        one.line: [first for first, _ in use_spans(one, tree)]
        for one in lint(USED, "used.py", Options(scope=Level.COLD))
        if one.code in ("TPF505", "TPF506")
    }
    expected = {}
    for number, line in enumerate(lines, 1):
        _, mark, told = line.partition("  # ")
        if mark:
            expected[number] = [int(n) for n in told.split(", ") if n.isdecimal()]
    assert found == expected


PREVIEWED = Options(preview=True)


def confirmed(path: Path, code: str, counted: list[int], device: str = "cpu") -> CallVerdict:
    """The verdict where the regions of the first finding of this code counted so at three sizes."""
    sizes = (16, 64, 256)
    (group, target) = next(
        (group, one)
        for group in plan([Request(path)], ConfirmSettings(sizes, device, options=PREVIEWED), print)
        for one in group.targets
        if one.finding.code == code
    )
    assert target.evidence is not None
    probes = [
        {
            "size": n, "seconds": 0.1, "error": "", "counted": True, "executions": {target.id: 1},
            "totals": Counts().to_dict(), "lines": {},
            "regions": {target.id: {**Counts().to_dict(), target.evidence.counter: count}},
        }
        for n, count in zip(sizes, counted, strict=True)
    ]  # fmt: skip
    inputs = {"(inputs)": "on the host"} if device == "cuda" else {}
    entry = {"reached": True, "inputs": inputs, "error": "", "probes": probes}
    return verdict_of_call(
        group, target, Answer({"targets": {target.id: entry}}, "", 0.1), 1000, device
    )


@pytest.mark.parametrize(
    ("code", "counted", "status", "reason"),
    [
        ("TPF506", [16, 64, 256], "confirmed", "where it is used: 1.00 dispatches per element"),
        ("TPF506", [0, 0, 0], "inconclusive", "where its cost falls no dispatches were counted"),
        ("TPF505", [11, 11, 11], "inconclusive", "where its cost falls 11 dispatches were counted"),
    ],
)
def test_what_costs_elsewhere_is_judged_there_and_never_refuted(
    tmp_path: Path, code: str, counted: list[int], status: str, reason: str
) -> None:
    path = tmp_path / "bad.py"
    rule = load_catalogue().rule(code)
    assert rule is not None
    example = read_documentation(rule).example
    assert example is not None
    path.write_text(example.bad)
    verdict = confirmed(path, code, counted)
    assert verdict.status == status
    assert verdict.reason.startswith(reason)


def test_what_is_used_in_another_function_is_inconclusive(tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    path.write_text(
        "import torch\n\n\ndef make(parameters: list[torch.nn.Parameter]):\n"
        "    return torch.optim.SGD(parameters, lr=0.1, foreach=False)\n"
    )
    verdict = confirmed(path, "TPF506", [0, 0, 0])
    assert verdict.status == "inconclusive"
    assert "which this function does not show" in verdict.reason


def test_a_run_judges_it_where_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "used.py"
    path.write_text(USED)
    stepped = {"path": str(path), "line": 14, "counts": {"dispatches": 8}}
    run = Observed(
        torch="", device="cpu", level="full", seconds=0.0, totals={}, lines=(stepped,),
        executed={str(path): frozenset({8, 9, 12, 13, 14, 18, 19, 20})}, syncs=(), metrics="",
        ended="",
    )  # fmt: skip
    (file,) = judge_run(MergedRun(run), Options(scope=Level.COLD))
    verdicts = {one.finding.line: (one.verdict, one.count) for one in file.judged}
    assert verdicts[9] == ("confirmed", 8)
    assert verdicts[19] == ("undecided", 0)


MOVED = """\
import torch


def evaluate(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    model.to(x.device)
    return model(x)
"""


@pytest.mark.parametrize(("copies", "verdict"), [(4, "confirmed"), (0, "undecided")])
def test_a_module_that_lies_there_already_refutes_no_move(
    tmp_path: Path, copies: int, verdict: str
) -> None:
    path = tmp_path / "moved.py"
    path.write_text(MOVED)
    moved = {"path": str(path), "line": 5, "counts": {"copies_to_device": copies}}
    run = Observed(
        torch="", device="cpu", level="full", seconds=0.0, totals={}, lines=(moved,),
        executed={str(path): frozenset({5, 6})}, syncs=(), metrics="", ended="",
    )  # fmt: skip
    (file,) = judge_run(MergedRun(run), Options(scope=Level.COLD, preview=True))
    (judged,) = (one for one in file.judged if one.finding.code == "TPF510")
    assert (judged.verdict, judged.count) == (verdict, copies)
    assert bool(judged.reason) is not bool(copies)
    assert confirmed(path, "TPF510", [0, 0, 0]).status == "inconclusive"


RACE = """\
import torch


def largest(x: torch.Tensor) -> torch.Tensor:
    copied = x.square().to("cpu", non_blocking=True)
    return copied.max()


def read(x: torch.Tensor) -> float:
    return x.sum().item()
"""


def test_a_copy_that_arrived_in_time_refutes_no_race(tmp_path: Path) -> None:
    path = tmp_path / "race.py"
    path.write_text(RACE)
    verdict = confirmed(path, "TPF504", [0, 0, 0], "cuda")
    assert verdict.status == "inconclusive"
    assert "had arrived" in verdict.reason
    (race,) = (
        g for g in plan([Request(path)], ConfirmSettings((1, 2, 3), "cuda"), print) if g.job["busy"]
    )
    assert race.function == "largest"


def test_inputs_on_the_host_refute_nothing_on_cuda(tmp_path: Path) -> None:
    path = tmp_path / "race.py"
    path.write_text(RACE)
    verdict = confirmed(path, "TPF101", [0, 0, 0], "cuda")
    assert verdict.status == "inconclusive"
    assert "on the host" in verdict.reason
    assert confirmed(path, "TPF101", [0, 0, 0]).status == "refuted"


def test_a_page_says_where_its_evidence_shows() -> None:
    shown = {
        rule.code
        for rule in load_catalogue().rules
        if (spec := read_documentation(rule).evidence) and spec.shows == "use"
    }
    assert shown == {"TPF505", "TPF506", "TPF508", "TPF512"}
