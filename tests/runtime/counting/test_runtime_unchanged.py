"""The counter leaves torch as it found it, whatever runs under it: results, modes, functions."""

import copy
import inspect
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")

from flake8_torchperf.runtime import DispatchCounter  # noqa: E402
from flake8_torchperf.runtime.counting import cuda_syncs  # noqa: E402
from flake8_torchperf.runtime.counting.counts import Counts  # noqa: E402

HOST = torch.device("cpu")
X = torch.arange(12.0).reshape(3, 4)


def counted(function, *args, level="full", **options):
    """The evidence of one call, as if the host's tensors stood on an accelerator."""
    options.setdefault("host_as_device", True)
    with DispatchCounter(level, **options) as counter:
        function(*args)
    return counter.evidence


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


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


def test_the_work_of_a_thread_that_ran_before_is_its_own():
    for level in ("full", "reads"):
        opened = threading.Event()

        def work(opened=opened):
            opened.wait()
            X.sum().item()
            X.tolist()

        thread = threading.Thread(target=work)
        thread.start()

        def in_thread(opened=opened, thread=thread):
            opened.set()
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


@pytest.mark.parametrize(
    "silenced",
    [
        lambda: warnings.simplefilter("ignore"),
        lambda: warnings.filterwarnings("ignore", category=UserWarning),
        lambda: warnings.resetwarnings() or warnings.simplefilter("ignore"),
    ],
    ids=["all", "by category", "reset"],
)
def test_cudas_reports_are_heard_whatever_the_program_filters(pretended_cuda, silenced):
    def work():
        silenced()
        waits(X)
        with warnings.catch_warnings(record=True) as log:  # as pytest does around each test
            warnings.simplefilter("ignore")
            waits(X)
        assert log == []
        warnings.warn("filtered by the program", stacklevel=1)

    filters, show = warnings.filters, warnings._showwarnmsg
    with warnings.catch_warnings(record=True) as log:
        assert counted(work).totals.device_syncs == 2
    assert log == []
    assert warnings.filters is filters
    assert type(filters) is list
    assert warnings._showwarnmsg is show


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
