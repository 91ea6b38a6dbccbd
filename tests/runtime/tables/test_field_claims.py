"""What tests/lint/published/test_field_patterns.py takes to be a wait, held against torch: each is run and counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

from flake8_torchperf.runtime import DispatchCounter  # noqa: E402


def reads(call: Callable[[], object]) -> int:
    """The values that a call reads, as if its tensors lay on a device."""
    with DispatchCounter("reads", host_as_device=True) as counter:
        call()
    return counter.evidence.totals.host_reads


@pytest.mark.parametrize(("options", "waits"), [({}, True), ({"fused": True}, False)])
def test_an_optimizer_reads_a_rate_that_is_a_tensor(options: dict[str, bool], waits: bool) -> None:
    layer = torch.nn.Linear(3, 3)
    layer(torch.randn(2, 3)).sum().backward()
    optimizer = torch.optim.SGD(layer.parameters(), lr=torch.tensor(0.1), **options)
    assert bool(reads(optimizer.step)) is waits
    plain = torch.optim.SGD(layer.parameters(), lr=0.1)
    assert reads(plain.step) == 0


def test_collectives_of_objects_read_their_sizes(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'rank'}", rank=0, world_size=1)
    try:
        found = [None]
        assert reads(lambda: dist.all_gather_object(found, {"tokens": 3})) > 0
    finally:
        dist.destroy_process_group()
    assert found == [{"tokens": 3}]


def test_who_receives_objects_reads_their_sizes(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(broadcast, args=(tmp_path,), nprocs=2)
    sent, received = ((tmp_path / f"reads{rank}").read_text() for rank in range(2))
    assert sent == "0"
    assert int(received) > 0


def broadcast(rank: int, folder: Path) -> None:
    """Write the values that one of two processes reads in a broadcast of an object."""
    shared = f"file://{folder / 'rank'}"
    dist.init_process_group("gloo", init_method=shared, rank=rank, world_size=2)
    try:
        found = [{"tokens": 3} if rank == 0 else None]
        count = reads(lambda: dist.broadcast_object_list(found))
        assert found == [{"tokens": 3}]
        (folder / f"reads{rank}").write_text(str(count))
    finally:
        dist.destroy_process_group()


def test_a_nested_tensor_reads_its_longest_row_once_it_is_asked_for() -> None:
    values, offsets = torch.randn(10, 4), torch.tensor([0, 3, 10])
    make = torch.nested.nested_tensor_from_jagged
    unknown, known = make(values, offsets), make(values, offsets, min_seqlen=3, max_seqlen=7)
    assert reads(unknown._get_max_seqlen) > 0
    assert reads(known._get_max_seqlen) == 0


def test_anomaly_detection_reads_every_gradient() -> None:
    x = torch.randn(4, requires_grad=True)

    def step() -> None:
        x.square().sum().backward()

    assert reads(step) == 0
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():
        assert reads(step) >= 2
