"""Findings of one statement, and indexes: what each row of a run's report may claim."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from test_run_verdicts import run

from flake8_torchperf.runtime.workload.ranks.shares import Shares, part_of

WORK = """\
import torch


def step(x: torch.Tensor, y: torch.Tensor):
    return x.sum().item(), y.sum().item(), x.mean().item()



def given(device):
    return torch.ones(3, 3, device=device)


HERE = torch.device("cpu")  # stands in for a device
for _ in range(7):
    step(given(HERE), given(HERE))
"""


def test_findings_of_one_statement_share_its_count(tmp_path: Path) -> None:
    data, _ = run(tmp_path, WORK)
    reads = [one for one in data["confirmed"] if one["line"] == 5]
    assert [one["count"] for one in reads] == [7, 7, 7]
    assert sum(one["count"] for one in reads) == data["totals"]["host_reads"]


INDEXES = """\
import torch


def listed(x: torch.Tensor, ids: list[int]):
    return {read}


def given(device):
    return torch.ones(3, 3, device=device), torch.zeros(2, dtype=torch.int64, device=device)


HERE = {where}  # a device that a variable holds stands in for an accelerator
for _ in range(7):
    listed(*given(HERE)).sum() + given(HERE)[0].sum()
"""


def test_an_index_of_the_host_is_confirmed_by_its_copies(tmp_path: Path) -> None:
    data, _ = run(tmp_path, INDEXES.format(read="x[:, [0, 2]]", where='torch.device("cpu")'))
    [told] = [one for one in data["confirmed"] if one["code"] == "TPF406"]
    assert (told["counter"], told["count"]) == ("copies_to_device", 7)


def test_an_index_into_a_tensor_of_the_host_is_refuted(tmp_path: Path) -> None:
    """The statement allocates as much, but nothing is copied to a device."""
    data, _ = run(tmp_path, INDEXES.format(read="x[:, [0, 2]]", where="None"))
    assert [one["code"] for one in data["refuted"]] == ["TPF406"]


def test_a_branch_that_did_not_run_refutes_nothing(tmp_path: Path) -> None:
    read = "x[:, [0, 2]] if x.dim() > 7 else x[:, ids]"
    data, _ = run(tmp_path, INDEXES.format(read=read, where='torch.device("cpu")'))
    assert {one["code"] for one in data["not_in_this_run"]} == {"TPF406"}
    assert data["refuted"] == []


@pytest.mark.parametrize("count", [0, 1, 5, 21])
@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_parts_add_up(count: int, parts: int) -> None:
    assert sum(part_of(count, place, parts) for place in range(parts)) == count
    shares = Shares({0: count}, {0: 1.5})
    assert sum(shares.part(place, parts).counts[0] for place in range(parts)) == count
