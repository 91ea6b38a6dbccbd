"""What torch does for itself, and copies that copy nothing, are no events of the program's."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from check_run import torchperf

torch = pytest.importorskip("torch")

from flake8_torchperf import DispatchCounter, dispatch_budget  # noqa: E402
from flake8_torchperf.runtime import sync_free  # noqa: E402

HOST = torch.device("cpu")
without_accelerator = pytest.mark.skipif(
    torch.accelerator.is_available(), reason="the host stands in for an accelerator"
)


def weights() -> list[torch.nn.Parameter]:
    found = [torch.nn.Parameter(torch.ones(4)) for _ in range(3)]
    for one in found:
        one.grad = torch.ones(4)
    return found


def moved(call) -> int:
    with DispatchCounter("reads") as counter:
        call()
    return counter.evidence.totals.transfers


@without_accelerator
@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad"])
@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("level", ["full", "reads"])
def test_the_step_counters_of_an_optimizer_are_no_reads(name, foreach, level) -> None:
    optimizer = getattr(torch.optim, name)(weights(), foreach=foreach)
    for _ in range(2):  # the second step reads counters that were made before
        with dispatch_budget(max_host_reads=0, max_dispatches=None if level == "reads" else 10**6):
            optimizer.step()


@without_accelerator
def test_an_optimizer_that_keeps_its_counters_on_the_device_reads_them() -> None:
    with DispatchCounter("reads") as counter:
        torch.optim.ASGD(weights(), foreach=False).step()
    assert counter.evidence.totals.host_reads > 0


@without_accelerator
def test_a_learning_rate_of_the_programs_is_read() -> None:
    optimizer = torch.optim.Adamax(weights(), lr=torch.tensor(0.1), foreach=True)
    with DispatchCounter("reads") as counter:
        optimizer.step()
    assert counter.evidence.totals.host_reads == 3


@without_accelerator
def test_clipping_gradients_neither_reads_nor_copies() -> None:
    with sync_free():
        torch.nn.utils.clip_grad_norm_(weights(), 1.0)


@without_accelerator
def test_a_copy_to_the_own_device_is_none() -> None:
    x = torch.ones(3)
    assert moved(lambda: x.to(x.device)) == 0
    assert moved(lambda: x.to(device=x.device)) == 0
    assert moved(lambda: (x.to(HOST), x.to(HOST))) == 1
    assert moved(lambda: (weights()[0] * 2).to(HOST)) == 0


@without_accelerator
def test_a_copy_to_the_device_still_counts() -> None:
    x, y = torch.ones(3), torch.ones(3)
    assert moved(lambda: x.to(HOST)) == 1
    assert moved(lambda: x.to(y.device)) == 1
    assert moved(lambda: torch.nn.Linear(2, 2).to(HOST)) == 2


def test_a_run_counts_the_copies_of_what_the_host_made(tmp_path: Path) -> None:
    program = """
        import torch

        device = torch.device("cpu")

        def step(weight, batch):
            batch = batch.to(device)
            return (weight * batch).to(device)

        weight = torch.nn.Parameter(torch.ones(3, device=device))
        for _ in range(5):
            step(weight, torch.ones(3)).sum().backward()
            torch.nn.utils.clip_grad_norm_([weight], 1.0)
        """
    (tmp_path / "train.py").write_text(dedent(program), encoding="utf-8")
    torchperf("run", "--json", "run.json", "train.py", cwd=tmp_path)
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert data["totals"]["transfers"] == 5
