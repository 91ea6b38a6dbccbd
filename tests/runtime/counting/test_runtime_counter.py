"""The counter: what it counts, at which line, and that it leaves torch as it found it."""

import inspect
import math
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402

from flake8_torchperf.runtime import DispatchCounter  # noqa: E402
from flake8_torchperf.runtime.counting.counts import ELSEWHERE  # noqa: E402

HOST = torch.device("cpu")
ROOT = str(Path(__file__).resolve().parents[3])


def counted(function, *args, level="full", **options):
    """The evidence of one call, as if the host's tensors stood on an accelerator."""
    options.setdefault("host_as_device", True)
    with DispatchCounter(level, **options) as counter:
        function(*args)
    return counter.evidence


def nonzero(counts):
    return {name: value for name, value in counts.to_dict().items() if value and name != "seconds"}


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


# The bug of PyTorch issue 82206, in our own words: a gradient is walked element by element.
def unscale(grads, found_inf, inv_scale):
    for grad in grads:
        for element in grad:
            if torch.isinf(element).any().item() or torch.isnan(element).any().item():
                found_inf.data = torch.tensor([1.0])
                break
            element.data *= inv_scale.item()


def unscale_counts(n, level):
    grads = [torch.ones(n)]
    return counted(unscale, grads, torch.zeros(1), torch.tensor([0.5]), level=level).totals


def slope(sizes, counts):
    """The least-squares law `count = slope * size + intercept`."""
    by_size, by_count = sum(sizes) / len(sizes), sum(counts) / len(counts)
    above = sum((s - by_size) * (c - by_count) for s, c in zip(sizes, counts, strict=True))
    found = above / sum((s - by_size) ** 2 for s in sizes)
    return found, by_count - found * by_size


def test_scaler_costs_nine_dispatches_and_three_reads_per_element():
    sizes = (16, 64, 256)
    counts = [unscale_counts(n, "full") for n in sizes]
    dispatches, once = slope(sizes, [one.dispatches for one in counts])
    reads, reads_once = slope(sizes, [one.host_reads for one in counts])
    assert (dispatches, reads) == pytest.approx((9.0, 3.0))
    assert (once, reads_once) == pytest.approx((1.0, 0.0))  # the one unbind of the flat gradient
    assert round(dispatches * 320_008 + once) == 2_880_073
    assert [one.host_reads for one in counts] == [
        unscale_counts(n, "reads").host_reads for n in sizes
    ]


def test_scaler_is_attributed_to_its_lines():
    evidence = counted(unscale, [torch.ones(10)], torch.zeros(1), torch.tensor([0.5]))
    check = evidence.at(__file__, line_of(unscale, "isinf"))
    assert check.ops == {
        "aten::isinf": 10,
        "aten::isnan": 10,
        "aten::any": 20,
        "aten::_local_scalar_dense": 20,
    }
    assert check.events == {"host_reads": {"aten::_local_scalar_dense": 20}}
    assert check.function.endswith("unscale")
    assert check.counts.dispatches == 60
    assert check.counts.seconds > 0
    loop = evidence.at(__file__, line_of(unscale, "for element"))
    assert nonzero(loop.counts) == {"dispatches": 1, "iterations": 1}
    _, first = inspect.getsourcelines(unscale)
    assert evidence.between(__file__, first, first + 6).dispatches == evidence.totals.dispatches
    assert evidence.at(__file__, 1) is None
    assert evidence.op("aten::isinf") == 10


X = torch.arange(12.0).reshape(3, 4)
READS_AND_MOVES = {"host_reads": 1, "transfers": 1, "bytes_to_host": X.nbytes}


@pytest.mark.parametrize("level", ["full", "reads"])
@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (lambda: X.tolist(), READS_AND_MOVES),
        (lambda: X.numpy(), READS_AND_MOVES),
        (lambda: np.asarray(X), READS_AND_MOVES),
        (lambda: np.array(X, copy=None), READS_AND_MOVES),
        (lambda: X.cpu(), READS_AND_MOVES),
        (lambda: X.to("cpu"), READS_AND_MOVES),
        (lambda: X.to(device="cpu"), READS_AND_MOVES),
        (lambda: X.to("cpu", torch.float64), READS_AND_MOVES),
        # One event, however it is spelled out.
        (lambda: X.cpu().numpy(), READS_AND_MOVES),
        (lambda: X.detach().cpu().tolist(), READS_AND_MOVES),
        (lambda: X[0, 0].cpu().item(), {"host_reads": 1, "transfers": 1, "bytes_to_host": 4}),
        # Copied twice, the second time read as well.
        (lambda: (X.cpu(), X.cpu().numpy()), {name: 2 * n for name, n in READS_AND_MOVES.items()}),
        (lambda: X.to(HOST), {"transfers": 1, "bytes_to_device": X.nbytes}),
        (lambda: torch.tensor([1.0], device=HOST), {"transfers": 1, "bytes_to_device": 4}),
        (lambda: torch.as_tensor([1.0], device=HOST), {"transfers": 1, "bytes_to_device": 4}),
        (lambda: torch.tensor([1.0], device="cpu"), {}),
        (lambda: torch.tensor([1.0]), {}),
        (lambda: X.to(torch.float64), {}),
        (lambda: X.to(X), {}),
        (lambda: X.sum().item(), {"host_reads": 1}),
        (lambda: bool(X.sum()), {"host_reads": 1}),
        (lambda: float(X.sum()), {"host_reads": 1}),
        (lambda: int(X.sum()), {"host_reads": 1}),
        (lambda: math.sqrt(X.sum()), {"host_reads": 1}),
        (lambda: X.sum() > 0 and 1, {"host_reads": 1}),
        (lambda: 1.0 in X, {"host_reads": 1}),
        (lambda: X[: torch.tensor(2)], {"host_reads": 1}),
        (lambda: [7, 8, 9][torch.tensor(1)], {"host_reads": 1}),
        (lambda: range(torch.tensor(3)), {"host_reads": 1}),
        (lambda: torch.equal(X, X), {"host_reads": 1}),
        (lambda: torch.allclose(X, X), {"host_reads": 1}),
        (lambda: torch.is_nonzero(X.sum()), {"host_reads": 1}),
        (lambda: repr(X), {"host_reads": 1}),
        (lambda: f"{X}", {"host_reads": 1}),
        (lambda: f"{X.sum():.3f}", {"host_reads": 1}),
        (lambda: "%s" % X, {"host_reads": 1}),  # noqa: UP031
        (lambda: X.sum(), {}),
        # What a kernel reads of a number of its own is no read of the program's.
        (lambda: torch.pow(X, torch.tensor(2.0)), {}),
        (lambda: X * torch.tensor(2.0), {}),
        (lambda: torch.isinf(X), {}),
    ],
)
def test_reads_and_transfers(event, expected, level):
    names = ("host_reads", "transfers", "bytes_to_host", "bytes_to_device")
    totals = nonzero(counted(event, level=level).totals)
    assert {name: totals[name] for name in names if name in totals} == expected


def masked_assignment():
    target = X.clone()
    target[target > 3] = 0.0  # by masked_fill_, without indices


def masked_assignment_of_a_tensor():
    target = X.clone()
    target[target > 3] = X.sum()


def masked_assignment_through_two_masks():
    target = torch.zeros(2, 2)
    target[torch.tensor([True, False]), torch.tensor([True, False])] = 0.0


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (lambda: X[X > 3], 1),
        (masked_assignment, 0),
        (masked_assignment_of_a_tensor, 1),
        (masked_assignment_through_two_masks, 1),
        (lambda: X[torch.tensor([True, False, True])], 1),
        (lambda: torch.nonzero(X), 1),
        (lambda: torch.where(X > 3), 1),
        (lambda: torch.unique(X), 1),
        (lambda: X.masked_select(X > 3), 1),
        (lambda: torch.repeat_interleave(torch.tensor([1, 2])), 1),
        (lambda: X[torch.tensor([0, 2])], 0),
        (lambda: X[:, None, 1:], 0),
        (lambda: torch.where(X > 3, X, 0.0), 0),
        (lambda: X.masked_fill(X > 3, 0.0), 0),
    ],
)
def test_dynamic_shapes(event, expected):
    assert counted(event).totals.dynamic_shapes == expected


@pytest.mark.parametrize(
    ("event", "allocations", "factories"),
    [
        (lambda: torch.zeros(3), 1, 1),
        (lambda: torch.zeros_like(X), 1, 1),
        (lambda: X.new_ones(3), 1, 1),
        (lambda: torch.tensor([1.0]), 1, 1),
        (lambda: X + 1, 1, 0),
        (lambda: X.view(-1), 0, 0),
        (lambda: X.clone().add_(1), 1, 0),
    ],
)
def test_allocations(event, allocations, factories):
    totals = counted(event).totals
    assert (totals.allocations, totals.factories) == (allocations, factories)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (lambda: list(X), 1),
        (lambda: list(zip(X, X, strict=True)), 2),
        (lambda: [row for row in X], 1),  # noqa: C416
        (lambda: max(X.sum(1)), 1),
        (lambda: torch.where(X > 3), 0),  # takes its result apart by itself
        (lambda: X.unbind(), 0),
    ],
)
def test_iteration_over_tensors(event, expected):
    assert counted(event).totals.iterations == expected


@pytest.mark.parametrize("level", ["full", "reads"])
def test_synchronisations_count_without_the_device(level):
    before = torch.cuda.synchronize

    def wait():
        torch.cuda.synchronize()
        torch.accelerator.synchronize()
        torch.cuda.empty_cache()
        torch.mps.synchronize()

    evidence = counted(wait, level=level)
    assert evidence.totals.synchronisations == 4
    assert evidence.at(__file__, line_of(wait, "empty_cache")).events == {
        "synchronisations": {"torch.cuda.empty_cache": 1}
    }
    assert torch.cuda.synchronize is before


def test_an_error_of_barrier_stays_an_error():
    with DispatchCounter() as counter, pytest.raises((ValueError, RuntimeError)):
        torch.distributed.barrier()
    assert counter.evidence.totals.synchronisations == 0


def test_host_tensors_cost_nothing_where_there_is_an_accelerator():
    def read():
        X.tolist()
        X.sum().item()
        X.cpu()

    for level in ("full", "reads"):
        totals = counted(read, level=level, host_as_device=False).totals
        assert (totals.host_reads, totals.transfers) == (0, 0)


def test_meta_tensors_are_no_transfers():
    assert counted(lambda: X.to("meta")).totals.transfers == 0


def test_owner_says_whose_lines_count():
    model = torch.nn.Linear(4, 2)
    torch_folder = os.path.dirname(torch.__file__)
    in_torch = counted(lambda: model(X), owner=[torch_folder])
    assert {os.path.basename(line.path) for line in in_torch.lines} == {"linear.py"}
    elsewhere = counted(lambda: X + 1, owner=lambda filename: False)
    assert [(line.path, line.line) for line in elsewhere.lines] == [(ELSEWHERE, 0)]
    assert elsewhere.totals.dispatches == 1
    mine = counted(lambda: model(X), owner=[__file__])
    assert {line.path for line in mine.lines} == {__file__}


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="'full' or 'reads', not 'light'"):
        DispatchCounter("light")
    with pytest.raises(TypeError, match=r"several paths, not one path"):
        DispatchCounter(owner="src")


def test_evidence_is_frozen_and_plain():
    import json

    evidence = counted(unscale, [torch.ones(2)], torch.zeros(1), torch.tensor([0.5]))
    with pytest.raises(FrozenInstanceError):
        evidence.seconds = 0.0
    plain = json.loads(json.dumps(evidence.to_dict()))
    assert plain["totals"]["dispatches"] == 19
    assert sum(line["counts"]["dispatches"] for line in plain["lines"]) == 19
    assert sum(op["dispatches"] for op in plain["ops"]) == 19


def test_importing_the_package_does_not_import_torch():
    code = (
        "import sys, flake8_torchperf, flake8_torchperf.runtime, "
        "flake8_torchperf.runtime.api.pytest_plugin; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_missing_torch_is_one_line_with_the_command():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from flake8_torchperf import runtime\n"
        "try: runtime.DispatchCounter\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == (
        "counting dispatches needs torch: pip install flake8-torchperf[confirm]\n"
    )
