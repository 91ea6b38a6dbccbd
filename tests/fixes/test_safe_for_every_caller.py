"""Safe fixes hold for whatever a caller passes, not only for what the annotations say.

Each program is called before and after its fix with arguments of any kind. What differs in value,
dtype, device, shared memory, gradient or exception fails, in eager mode, scripted and exported.
"""

from __future__ import annotations

import functools
import linecache
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from fixing import outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.rule import SAFE

torch = pytest.importorskip("torch")

HEAD = "import math\nimport torch\nfrom torch import Tensor\n\n\n"
# Fix, parameters, and the body that is rewritten. `x` is always a tensor, as its annotation says.
PROGRAMS = {
    "device-argument": ("x: Tensor, n: int", "return x.sum() + torch.arange(n).to(x.device)"),
    "device-argument, bounds": (
        "x: Tensor, n: int",
        "return x.sum() + torch.arange(1, x.shape[0] + 1).to(x.device) * n",
    ),
    "device-argument, filled": (
        "x: Tensor, n: int",
        "y = torch.ones(n)\ny[1:] = 0.5\ny = y.to(x.device)\nreturn x.sum() + y",
    ),
    "device-argument, type": (
        "x: Tensor, n: int",
        "return x.sum() + torch.ones(n).type(x.type()).to(x.device)",
    ),
    "fill-on-device, repeated": (
        "x: Tensor, n: int",
        "return x.sum() + torch.LongTensor([1] * len(x)).to(x.device)",
    ),
    "waiting-copy": ("x: Tensor, n: int", "return x.to('cpu', non_blocking=True).numpy()"),
    "device-argument, like": ("x: Tensor, n: int", "return torch.ones(n).to(x)"),
    "device-argument, dtype": (
        "x: Tensor, n: int",
        "return torch.ones(n).to(x.device).to(x.dtype)",
    ),
    "device-argument, computed": (
        "x: Tensor, n: int",
        "k = x.shape[0]\nreturn x.sum() + (torch.arange(k) * k + 1).to(x.device) * n",
    ),
    "device-argument, times a number": (
        "x: Tensor, n: int",
        "return x.sum() + (torch.tril(torch.ones(n, n)) * 2 - 1).to(x.device)",
    ),
    "device-argument, by a name": (
        "x: Tensor, n: int",
        "y = torch.zeros(n)\nz = x + 1\ny = y.to(x.device)\nreturn y.sum() + z",
    ),
    "device-argument, index": (
        "x: Tensor, n: int",
        "k = x.shape[0]\nreturn x[torch.arange(k)] * n",
    ),
    "fill-on-device": ("x: Tensor, n: int", "return x * torch.tensor(0.5, device=x.device) + n"),
    "fill-on-device, size": (
        "x: Tensor, n: int",
        "return x * torch.tensor(len(x), device=x.device) + n",
    ),
    "fill-on-device, tested": (
        "x: Tensor, n: int",
        "assert isinstance(n, int) and not isinstance(n, bool)\n"
        "return x * torch.tensor(n, device=x.device)",
    ),
    "fill-on-device, converted": (
        "x: Tensor, n: int",
        "return x * torch.tensor(int(n), device=x.device)",
    ),
    "queued-if-cuda": (
        "x: Tensor, n: int",
        "rank = x.dim()\nreturn x.sum() * torch.tensor([0.2, 0.3]).to(x.device) + n + rank",
    ),
    "fill-element": (
        "x: Tensor, n: int",
        "y = x.reshape(-1).clone()\ny[0] = 1.5\nreturn y * n",
    ),
    "number-on-device": (
        "x: Tensor, n: int",
        "y = x.reshape(-1).clone()\ny[n] = 1.5\nreturn y",
    ),
    "one-flag": (
        "x: Tensor, n: int",
        "if x.isnan().any() or x.isinf().any():\n    return x * n\nreturn x",
    ),
    "same-read": (
        "x: Tensor, n: int",
        "low = x.min().item() * n\nhigh = x.min().item() + n\nreturn x * low, high",
    ),
}
# What a declared int must not be taken for: the fix is not made, or holds for these as well.
TRAPS = {
    "a factor": "return x * torch.tensor(n, device=x.device)",
    "an index": "y = x.reshape(-1).clone()\ny[n] = 1.5\nreturn y",
    "a bound": "return x.sum() + torch.arange(n, 4).to(x.device)",
}
# Without a GPU nothing is pinned in the very expression.
NOT_RUN = {"non-blocking"}
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8,
          torch.bool)  # fmt: skip
SHAPES = ((), (0,), (1,), (2,), (3,), (2, 3), (2, 0))
NUMBERS = (0.0, 1.0, -2.0, 0.5, 3.0, float("inf"), float("nan"))


def _numbers_of_numpy() -> list[Any]:
    numpy = pytest.importorskip("numpy")
    return [numpy.float64(0.5), numpy.float32(1.5), numpy.int64(2), numpy.bool_(True)]


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    """A tensor of any dtype and of few elements, some of which take gradients."""
    shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(DTYPES))
    count = functools.reduce(lambda a, b: a * b, shape, 1)
    usable = NUMBERS if dtype.is_floating_point else NUMBERS[:5]
    values = draw(st.lists(st.sampled_from(usable), min_size=count, max_size=count))
    made = torch.tensor(values, dtype=torch.float64).abs().to(dtype).reshape(shape)
    if dtype.is_floating_point:
        made = torch.tensor(values, dtype=torch.float64).to(dtype).reshape(shape)
    return made.requires_grad_(dtype.is_floating_point and draw(st.booleans()))


OTHERS = st.one_of(
    st.sampled_from((0, 1, 2, -1, 0.5, 2.0, True, False)),
    st.deferred(lambda: st.sampled_from(_numbers_of_numpy())),
    tensors(),
)


@functools.cache
def programs(parameters: str, body: str) -> tuple[str, str, frozenset[str]]:
    """The text before and after the safe fixes, and the names of these."""
    text = f"{HEAD}def f({parameters}):\n{textwrap.indent(body, '    ')}\n"
    done = outcome(text)
    return text, done.text, frozenset(change.edit.name for change in done.changes)


@functools.cache
def function(text: str) -> Callable[..., Any]:
    """The function of a program, whose source `torch.jit.script` finds."""
    name = f"<program {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), names)
    made: Callable[..., Any] = names["f"]
    return made


def copied(value: Any) -> Any:
    """An argument of its own for one call."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value


def told(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """All that a call leaves: its result, its arguments, shared memory and gradients, or an error."""
    given = tuple(map(copied, arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(*given)
        except Exception as error:
            return (f"error {type(error).__name__}",)
        if not isinstance(result, torch.Tensor):
            return (repr(type(result)), repr(result))
        leaves = [one for one in given if isinstance(one, torch.Tensor)]
        places = [one.untyped_storage().data_ptr() for one in leaves]
        gradients = "none"
        if result.requires_grad:
            result.sum().backward()
            gradients = repr([one.grad for one in leaves])
    shared = [place == result.untyped_storage().data_ptr() for place in places if place]
    facts = (result.dtype, result.device, result.shape, result.stride(), result.requires_grad)
    return (repr(result.tolist()), repr(facts), repr(shared), gradients, repr(leaves))


def _same(parameters: str, body: str, arguments: tuple[Any, ...]) -> None:
    before, after, _ = programs(parameters, body)
    assert told(function(after), arguments) == told(function(before), arguments)


def settings_of(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


every_program = pytest.mark.parametrize("row", list(PROGRAMS.values()), ids=list(PROGRAMS))
every_trap = pytest.mark.parametrize("body", list(TRAPS.values()), ids=list(TRAPS))


def test_every_safe_fix_has_a_program() -> None:
    safe = {
        name for rule in load_catalogue().rules for safety, name in rule.fixes if safety == SAFE
    }
    assert {key.partition(",")[0] for key in PROGRAMS} | NOT_RUN == safe


@pytest.mark.parametrize("key", list(PROGRAMS))
def test_each_program_is_rewritten_by_its_fix(key: str) -> None:
    assert key.partition(",")[0] in programs(*PROGRAMS[key])[2]


@every_program
@settings_of(20)
@given(x=tensors(), n=OTHERS)
def test_eager(row: tuple[str, str], x: Any, n: Any) -> None:
    _same(*row, (x, n))


@every_trap
@settings_of(30)
@given(x=tensors(), n=OTHERS)
def test_what_is_declared_is_not_believed(body: str, x: Any, n: Any) -> None:
    _same("x: Tensor, n: int", body, (x, n))


CAUGHT = {
    "a fraction for an int": ("int", TRAPS["a factor"], (torch.ones(2), 0.5)),
    "a bool for an int": ("int", TRAPS["a factor"], (torch.ones(2, dtype=torch.bool), True)),
    "a bool for an index": ("int", TRAPS["an index"], (torch.zeros(3), True)),
    "positions for an index": ("int", TRAPS["an index"], (torch.zeros(3), torch.tensor([0, 2]))),
}


@pytest.mark.parametrize("row", list(CAUGHT.values()), ids=list(CAUGHT))
def test_calls_that_broke_a_fix(row: tuple[str, str, tuple[Any, ...]]) -> None:
    kind, body, arguments = row
    _same(f"x: Tensor, n: {kind}", body, arguments)


@pytest.mark.thorough
@every_program
@settings_of(200)
@given(x=tensors(), n=OTHERS)
def test_eager_with_many_arguments(row: tuple[str, str], x: Any, n: Any) -> None:
    _same(*row, (x, n))


@functools.cache
def scripted(text: str) -> Any:
    """The scripted function; None where TorchScript does not take it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return torch.jit.script(function(text))
        except RuntimeError:
            return None


@every_program
@settings_of(8)
@given(x=tensors(), n=st.sampled_from((0, 1, 2)))
def test_scripted(row: tuple[str, str], x: Any, n: int) -> None:
    before, after, _ = programs(*row)
    if scripted(before) is None:
        return
    wanted = told(scripted(before), (x, n))
    # TorchScript compiles some indices that it cannot run.
    if not wanted[0].startswith("error"):
        assert told(scripted(after), (x, n)) == wanted


class _Module(torch.nn.Module):
    """A function as a module, which is what `torch.export` takes."""

    def __init__(self, call: Callable[..., Any], n: int) -> None:
        super().__init__()
        self._call = call
        self._n = n

    def forward(self, x: Any) -> Any:
        return self._call(x, self._n)


def exported(text: str, x: Any) -> Any:
    """The exported function; None where `torch.export` does not take it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return torch.export.export(_Module(function(text), 2), (x,), strict=False).module()
        except Exception:
            return None


@every_program
def test_exported(row: tuple[str, str]) -> None:
    before, after, _ = programs(*row)
    x = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    made = exported(before, x)
    if made is not None:
        assert told(exported(after, x), (x,)) == told(made, (x,))
