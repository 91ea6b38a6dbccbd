"""`torchperf confirm` on shapes that depend on data and on copies to and from a device.

The machine that runs this may have no accelerator: then the host stands in for it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from linting import ALL

from flake8_torchperf.options import Options

torch = pytest.importorskip("torch")

from torch._subclasses import FakeTensorMode  # noqa: E402

from flake8_torchperf.runtime import DispatchCounter  # noqa: E402
from flake8_torchperf.runtime.counting.fake_accelerator import HostStandsIn, standing_in  # noqa: E402
from flake8_torchperf.runtime.counting.op_schemas import looks_at_elements  # noqa: E402

DEFAULT = Options()
pytestmark = pytest.mark.usefixtures("forked_sandboxes")

SHAPES = """
import torch


def select(x: torch.Tensor) -> torch.Tensor:
    mask = x > 0
    kept = x[mask]  # TPF402
    where = torch.nonzero(mask)  # TPF401
    x[mask] = kept  # TPF403
    return torch.unique(x).sum() + where.sum()  # TPF404
"""


def verdicts(path: Path, options: Options = DEFAULT) -> dict[int, tuple[str, str, str]]:
    """Code, status and reason of every finding in a file, by line."""
    from flake8_torchperf.runtime.confirm.plan import ConfirmSettings, Request, plan
    from flake8_torchperf.runtime.confirm.sandbox import Sandbox
    from flake8_torchperf.runtime.confirm.verdict import verdict_of_call

    found = {}
    settings = ConfirmSettings((16, 64), "cpu", options=options)
    with Sandbox(20, 1024) as sandbox:
        for group in plan([Request(path)], settings, print):
            answer = sandbox.run(group.job)
            for target in group.targets:
                verdict = verdict_of_call(group, target, answer, 1000, "cpu")
                found[target.finding.line] = (target.finding.code, verdict.status, verdict.reason)
    return found


def test_shapes_that_depend_on_data_are_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "shapes.py"
    path.write_text(SHAPES)
    found = verdicts(path)
    assert {code for code, _, _ in found.values()} == {"TPF401", "TPF402", "TPF403", "TPF404"}
    for _, status, reason in found.values():
        assert status == "confirmed"
        assert "1 dynamic shape per call" in reason


NEW = """
import torch


class Shifted(torch.nn.Module):
    def forward(self, x: torch.Tensor, by: float) -> torch.Tensor:
        return x - x.new_tensor([by])  # TPF502
"""


def test_a_new_tensor_of_host_data_is_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    path.write_text(NEW)
    ((code, status, reason),) = verdicts(path).values()
    assert (code, status) == ("TPF502", "confirmed")
    assert "1 copy to the device per call" in reason


IN_A_KERNEL = """
import torch


def step(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.svd(x.outer(x)).S.sum()  # TPF404
"""


def test_a_wait_in_a_kernel_is_not_refuted_without_a_device(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(IN_A_KERNEL)
    ((code, status, reason),) = verdicts(path).values()
    assert (code, status) == ("TPF404", "inconclusive")
    assert reason == "it waits in a kernel of the device: run with --device cuda"


UNSEEN = """
import numpy as np
import torch


def nowhere(rows: np.ndarray, device=None):
    return torch.Tensor(rows).to(device)


def made_nowhere(rows: np.ndarray, device=None):
    return torch.tensor(rows, device=device)


def beside(rows: np.ndarray, x: torch.Tensor):
    return torch.Tensor(rows).to(x) + x


def of_its_type(x: torch.Tensor):
    return torch.zeros(3, 1).type_as(x) + x


def into(rows: np.ndarray, x: torch.Tensor):
    x.copy_(torch.from_numpy(rows))


def seen(rows: np.ndarray, device: torch.device):
    return torch.Tensor(rows).to(device)
"""


def test_a_copy_that_a_host_alone_cannot_show_is_not_refuted(tmp_path: Path) -> None:
    path = tmp_path / "unseen.py"
    path.write_text(UNSEEN)
    *unseen, (code, status, _) = [found for _, found in sorted(verdicts(path, ALL).items())]
    assert (code, status) == ("TPF502", "confirmed")
    assert [code for code, _, _ in unseen] == ["TPF502", "TPF502", "TPF502", "TPF501", "TPF502"]
    for _, status, reason in unseen:
        assert status == "inconclusive"
        assert reason == "a CPU alone shows no copy to a device here: run with --device cuda"


X = torch.arange(6.0).reshape(3, 2)
without_device = pytest.mark.skipif(torch.accelerator.is_available(), reason="has an accelerator")


@without_device
@pytest.mark.parametrize(
    ("move", "copies"),
    [
        (lambda: X.to("cuda"), 1),
        (lambda: X.to(device="cuda:1", dtype=torch.float64), 1),
        (lambda: X.to(0), 1),
        (lambda: X.cuda(), 1),
        (lambda: X.cuda(non_blocking=True), 1),
        (lambda: torch.tensor([1.0], device="cuda"), 1),
        (lambda: torch.as_tensor([1.0], device=torch.device("cuda", 0)), 1),
        (lambda: torch.nn.Linear(2, 2, bias=False).to("cuda"), 1),
        (lambda: X.new_tensor([1.0, 2.0]), 1),
        (lambda: X.new_tensor(data=1.0, device="cuda"), 1),
        (lambda: X.new_tensor(1.0, device="cpu"), 0),
        (lambda: X.new_tensor([]), 0),
        (lambda: torch.tensor([], device="cuda"), 0),
        (lambda: X.new_full((), 1.0), 0),
        (lambda: torch.zeros(3, device="cuda"), 0),
        (lambda: torch.ones_like(X, device="cuda"), 0),
        (lambda: X.to(torch.float64), 0),
        (lambda: X.to(X), 0),
    ],
)
def test_the_host_stands_in_for_a_device_that_is_not_there(move, copies) -> None:
    with standing_in(), DispatchCounter(host_as_device=True) as counter:
        assert move() is not None
    totals = counter.evidence.totals
    assert (totals.copies_to_device, totals.transfers, totals.host_reads) == (copies, copies, 0)


def test_what_is_on_the_host_or_nowhere_stays_there() -> None:
    with HostStandsIn():
        assert torch.zeros(2, device="meta").device.type == "meta"
        assert X.to("cpu") is X
        assert X.to(torch.int64).dtype == torch.int64
        assert torch.full((2,), 1, dtype=torch.int8).dtype == torch.int8


@without_device
def test_outside_the_mode_a_missing_device_is_an_error() -> None:
    with pytest.raises((RuntimeError, AssertionError)):
        X.to("cuda")


def test_a_copy_is_read_early_until_it_has_arrived() -> None:
    """Only CUDA lets copies arrive late; here an event says by hand when this one does."""
    arrived = [False]
    with DispatchCounter(host_as_device=False) as counter:
        copied = X.clone()
        counter._recorders.here().expect(copied, lambda: arrived[0])
        view = copied[0]  # a view reads nothing
        view.sum()  # early
        copied.tolist()  # early
        copied.numpy()  # early
        np.asarray(copied)  # early
        torch.zeros_like(copied)  # takes the shape alone
        X.sum()
        arrived[0] = True
        copied.max()
    causes = [
        line.events["early_reads"]
        for line in counter.evidence.lines
        if "early_reads" in line.events
    ]
    assert causes == [{"aten::sum": 1}, {"tolist": 1}, {"numpy": 1}, {"__array__": 1}]
    assert counter.evidence.totals.early_reads == 4


class _NeverThere:
    """An event behind a copy that does not arrive."""

    def record(self) -> None:
        pass

    def query(self) -> bool:
        return False


def test_a_copy_into_memory_of_the_host_is_watched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", _NeverThere)
    with FakeTensorMode():  # has tensors of CUDA where there is none
        there, here, waited = torch.ones(2, device="cuda"), torch.empty(2), torch.empty(2)
        with DispatchCounter(host_as_device=False) as counter:
            waited.copy_(there)
            waited.sum()
            here.copy_(there, non_blocking=True)
            here.copy_(there, True)  # the device does this after the first
            here.sum()  # early
    causes = [one.events["early_reads"] for one in counter.evidence.lines if one.counts.early_reads]
    assert [sorted(one) for one in causes] == [["aten::sum"]]


def test_what_a_device_fetches_the_host_does_not_look_at() -> None:
    there, cuda = torch.empty(2, device="meta"), {"device": torch.device("cuda")}
    copy, move = torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default
    assert not looks_at_elements(copy, "aten::copy_", (there, X), {})
    assert not looks_at_elements(copy, "aten::copy_", (X, there), {})
    assert looks_at_elements(copy, "aten::copy_", (X, X), {})
    assert not looks_at_elements(move, "aten::_to_copy", (X,), cuda)
    assert looks_at_elements(move, "aten::_to_copy", (X,), {"dtype": torch.float64})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_lets_a_copy_be_read_early() -> None:
    x = torch.ones(50_000_000, device="cuda")
    x.to("cpu", non_blocking=True)
    with DispatchCounter() as counter:
        x.to("cpu", non_blocking=True).sum()
        copied = x.to("cpu", non_blocking=True)
        torch.cuda.synchronize()
        copied.sum()
    assert counter.evidence.totals.early_reads == 1
