"""The counter: what it counts, at which line, and that it leaves torch as it found it."""

import copy
import inspect
import math
import os
import subprocess
import sys
import threading
import warnings
from dataclasses import FrozenInstanceError

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402

from flake8_torchperf.runtime import DispatchCounter, cuda_syncs  # noqa: E402
from flake8_torchperf.runtime.evidence import ELSEWHERE, Counts  # noqa: E402

HOST = torch.device("cpu")


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
    target[target > 3] = 0.0


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (lambda: X[X > 3], 1),
        (masked_assignment, 1),
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


def test_counters_nest():
    with DispatchCounter() as outer:
        X + 1
        with DispatchCounter() as inner, DispatchCounter("reads", host_as_device=True) as reads:
            list(X * 2)
            X.sum().item()
        X + 1
    assert inner.evidence.totals.dispatches == 4
    assert reads.evidence.totals.host_reads == 1
    assert outer.evidence.totals.dispatches == 6
    assert outer.evidence.totals.iterations == inner.evidence.totals.iterations == 1
    assert {line.path for line in outer.evidence.lines} == {__file__}


def test_a_counter_opened_inside_itself_counts_once_and_again_adds_up():
    counter = DispatchCounter()
    with counter, counter:
        X + 1
    assert counter.evidence.totals.dispatches == 1
    with counter:
        X + 1
        assert counter.evidence.totals.dispatches == 2
    counter.reset()
    assert counter.evidence.totals == Counts()
    with counter:
        X + 1
        counter.reset()
        X - 1
    assert counter.evidence.totals.dispatches == 1


def state():
    return (
        torch._C._len_torch_dispatch_stack(),
        torch._C._len_torch_function_stack(),
        str(torch._C._dispatch_tls_local_include_set()),
        {name: vars(torch.Tensor).get(name) for name in dir(torch.Tensor)},
        {name: getattr(torch, name) for name in ("tensor", "as_tensor", "asarray")},
        torch.cuda.synchronize,
        torch.distributed.barrier,
        warnings.showwarning,
        list(warnings.filters),
    )


@pytest.mark.parametrize("level", ["full", "reads"])
def test_everything_is_restored_after_an_error(level):
    before = state()
    with pytest.raises(RuntimeError, match="size of tensor"), DispatchCounter(level) as counter:
        torch.ones(2) + torch.ones(3)
    assert state() == before
    with pytest.raises(KeyboardInterrupt), counter, counter:
        raise KeyboardInterrupt
    assert state() == before
    torch.ones(2) + 1
    assert counter.evidence.totals.dispatches in (0, 3)


def test_another_threads_work_is_its_own():
    def work():
        X.sum().item()
        X.tolist()

    for level in ("full", "reads"):

        def in_thread():
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        evidence = counted(in_thread, level=level)
        assert evidence.totals.host_reads == 0
        assert evidence.totals.dispatches == 0


def test_closing_in_another_thread_is_refused():
    errors = []

    def close():
        try:
            counter.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(str(error))

    with DispatchCounter() as counter:
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
    assert errors == ["this DispatchCounter is open in another thread: use one counter per thread"]


class ReadsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        grad.sum().item()  # read in backward
        return grad * 2


@pytest.mark.parametrize("level", ["full", "reads"])
def test_autograd(level):
    weight = torch.ones(3, requires_grad=True)

    def step():
        loss = ReadsInBackward.apply(weight).sum()
        loss.backward()

    evidence = counted(step, level=level)
    assert weight.grad.tolist() == [2.0, 2.0, 2.0]
    assert evidence.totals.host_reads == 1
    assert (
        evidence.at(__file__, line_of(ReadsInBackward, "read in backward")).counts.host_reads == 1
    )
    if level == "full":
        assert evidence.at(__file__, line_of(step, "backward")).counts.dispatches >= 2


@pytest.mark.parametrize("level", ["full", "reads"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_grad_modes(level, mode):
    def work():
        with mode():
            return (X * 2).sum().item()

    assert counted(work, level=level).totals.host_reads == 1


@pytest.mark.parametrize("level", ["full", "reads"])
def test_modules_and_optimizers_belong_to_the_users_line(level):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        loss = model(X).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    evidence = counted(step, level=level)
    assert {line.path for line in evidence.lines} == {__file__}
    assert evidence.at(__file__, line_of(step, "loss.item")).counts.host_reads == 1


def test_results_are_unchanged():
    def run():
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(X).pow(2).mean().backward()
            optimizer.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    plain = run()
    for level in ("full", "reads"):
        with DispatchCounter(level):
            assert torch.equal(run(), plain)


@pytest.mark.parametrize("level", ["full", "reads"])
def test_compiled_code_gives_the_same_results(level):
    def function(x):
        made = torch.tensor([2.0], device=HOST)
        return (x.sin() + 1).to("cpu").cos() * x * made

    x = torch.randn(5, requires_grad=True)
    expected = torch.autograd.grad(function(x).sum(), x)[0]
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    with DispatchCounter(level):
        inside = torch.autograd.grad(compiled(x).sum(), x)[0]
    after = torch.autograd.grad(compiled(x).sum(), x)[0]
    assert torch.equal(inside, expected)
    assert torch.equal(after, expected)
    again = torch.compile(
        lambda x: torch.tensor([3.0]) * x.to("cpu"), backend="eager", fullgraph=True
    )
    assert torch.equal(again(x), 3 * x)


@torch.library.custom_op("torchperf_tests::waits", mutates_args=())
def waits(x: torch.Tensor) -> torch.Tensor:
    # What c10/cuda/CUDAFunctions.cpp says from inside an operation.
    warnings.warn("called a synchronizing CUDA operation (Triggered internally)", stacklevel=1)
    return x + 1


@pytest.fixture
def pretended_cuda(monkeypatch):
    """The parts of torch.cuda that the watch talks to, and the modes it set."""
    modes = [0]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(
        torch.cuda, "set_sync_debug_mode", lambda mode: modes.append(int(mode == "warn" or mode))
    )
    return modes


def test_cudas_own_reports_are_attributed(pretended_cuda):
    def work():
        waits(X)
        warnings.warn("something else", stacklevel=1)

    with pytest.warns(UserWarning) as shown, DispatchCounter() as outer:  # noqa: PT030
        evidence = counted(work)
    assert [str(one.message) for one in shown] == ["something else"]
    assert evidence.totals.device_syncs == outer.evidence.totals.device_syncs == 1
    assert evidence.at(__file__, line_of(waits._init_fn, "warnings.warn")).events == {
        "device_syncs": {"torchperf_tests::waits": 1}
    }
    assert pretended_cuda == [0, 1, 1, 1, 0]  # on, on, and back to what each had found


def test_cuda_is_not_started_by_counting(pretended_cuda, monkeypatch):
    queued = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "_lazy_call", queued.append)
    monkeypatch.setattr(cuda_syncs, "_queued", threading.Event())
    with DispatchCounter(), DispatchCounter():
        assert pretended_cuda == [0]
        (start,) = queued
        start()
        assert pretended_cuda == [0, 1, 1]
    assert pretended_cuda == [0, 1, 1, 1, 0]
    start()  # later, with no counter open
    assert pretended_cuda == [0, 1, 1, 1, 0]


def test_graph_breaks_are_counted():
    @torch.compile(backend="eager")
    def broken(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    assert counted(broken, X).totals.graph_breaks == 1


def test_scripting_while_counting():
    def scripted(x):
        return x + torch.tensor([1.0]) + torch.as_tensor([1.0])

    with DispatchCounter():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            inside = torch.jit.script(scripted)
        assert torch.equal(inside(X), X + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        after = torch.jit.script(scripted)
    assert torch.equal(after(X), X + 2)


@pytest.mark.parametrize("level", ["full", "reads"])
def test_higher_order_operators(level):
    def chosen():
        return torch._higher_order_ops.while_loop(
            lambda n: n < 3, lambda n: (n + 1,), (torch.tensor(0),)
        )

    (plain,) = chosen()
    with DispatchCounter(level):
        (inside,) = chosen()
    assert torch.equal(plain, inside)


SEEN = []
HANDLED = {torch.Tensor.cpu: "cpu", torch.Tensor.tolist: "tolist", torch.Tensor.__repr__: "repr"}


class Watching(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SEEN.append(HANDLED.get(func))
        return super().__torch_function__(func, types, args, kwargs)


def test_subclasses_still_see_torchs_own_functions():
    SEEN.clear()
    tensor = torch.ones(2).as_subclass(Watching)
    evidence = counted(lambda: (tensor.tolist(), repr(tensor), tensor.cpu()))
    assert {"cpu", "tolist", "repr"} <= set(SEEN)
    assert evidence.totals.host_reads == 3


def test_parameters_print_and_copy():
    parameter = torch.nn.Parameter(torch.ones(2))
    assert counted(lambda: repr(parameter)).totals.host_reads == 1
    with DispatchCounter():
        assert torch.equal(copy.deepcopy(parameter), parameter)


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
        "flake8_torchperf.runtime.pytest_plugin; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_torch_is_one_line_with_the_command():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from flake8_torchperf import runtime\n"
        "try: runtime.DispatchCounter\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == (
        "counting dispatches needs torch: pip install flake8-torchperf[confirm]\n"
    )
