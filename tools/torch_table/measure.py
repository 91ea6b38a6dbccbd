"""Calls every operation of the table with small tensors on a device and notes whether it waited.

Takes the table and a `Witness`; returns one row for each operation, its overloads by the text of
their parameters. The generator's own prober finds the arguments on the CPU first, so that only
valid arguments reach the device.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from flake8_torchperf.knowledge.overloads import Overload
from flake8_torchperf.knowledge.table import MASK, Op, TorchTable
from torch_table.forms import FORMS, PREFIX, prepared
from torch_table.model import Parameter, Signature
from torch_table.operations import probeable
from torch_table.probe import Prober
from torch_table.samples import FAILURES, Scenario, arguments, sample
from torch_table.witness import Witness

# Where operations on tensors are; everything else of torch is plumbing.
NAMESPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
METHOD = "torch.Tensor."
# Copies between host and device: whether they wait depends on where from, where to and how, which
# the cases below spell out. `x.new([2, 3])` copies two numbers, `x.new(2, 3)` none.
COPIES = frozenset(
    f"{METHOD}{name}" for name in ("to", "cpu", "cuda", "xpu", "copy_", "new", "new_tensor", "type")
) | {"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy"}


@dataclass
class Row:
    """The results for one operation: by overload, one of `witness.WAITED_BY`."""

    name: str
    seen: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A call that an overload does not describe. `decides` names the operation that it decides.

    `spares` names the operation, and its parameter, that are documented not to wait in this call.
    `disputed` is set if sources disagree: the summary then reports the outcome.
    """

    words: str
    make: Callable[[str], Callable[[], object]]
    decides: str = ""
    spares: tuple[str, str] = ("", "")
    disputed: bool = False


def operation_names(table: TorchTable) -> list[str]:
    """Return the names that are measured one by one, in the order of the table."""
    functions = [
        name
        for name in table.function_names()
        if name.rpartition(".")[0] in NAMESPACES and probeable(name.rpartition(".")[2])
    ]
    methods = [METHOD + name for name in table.method_names() if probeable(name)]
    return [name for name in (*functions, *methods) if name not in COPIES]


def measure(name: str, table: TorchTable, witness: Witness) -> Row:
    """Return every overload of one operation for which arguments are found."""
    row = Row(name)
    if name.startswith(PREFIX):
        text = name.removeprefix(PREFIX)
        outcome = _outcome(lambda: prepared(text, witness.device), witness)
        row.seen.update({text: outcome} if outcome else {})
        return row
    if name in CASES:
        outcome = _outcome(lambda: CASES[name].make(witness.device), witness)
        row.seen.update({CASES[name].words: outcome} if outcome else {})
        return row
    op, function = table.function(name), _function(name)
    if op is None or function is None:
        return row
    for overload in op.overloads:
        outcome = _overload(function, op, overload, witness)
        if outcome:
            signature = _signature(overload)
            bound = signature.without_first() if name.startswith(METHOD) else signature
            row.seen[key_of(bound)] = outcome
    return row


def key_of(signature: Signature) -> str:
    """Return the parameters as the table writes them before the arrow."""
    return signature.text().partition("->")[0]


def _overload(function: Callable[..., Any], op: Op, overload: Overload, witness: Witness) -> str:
    """Return the outcome, or "" if no arguments suit."""
    signature = _signature(overload)
    given = _conditions(op, signature, witness.device)
    if given is None or not _computes(signature):
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        on_cpu = {name: "cpu" if name == "device" else value for name, value in given.items()}
        scenario = Prober({}).working(function, signature, on_cpu)
    if scenario is None:
        return ""

    def make() -> Callable[[], object]:
        built = arguments(signature.parameters, scenario, given)
        assert built is not None
        positional = [_moved(value, witness.device) for value in built[0]]
        keywords = {name: _moved(value, witness.device) for name, value in built[1].items()}
        return lambda: function(*positional, **keywords)

    return _outcome(make, witness)


def _outcome(make: Callable[[], Callable[[], object]], witness: Witness) -> str:
    """Return how the second of two calls waited; "" if it failed.

    The first call loads kernels and makes handles and memory.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            make()()
            found = witness.waited(make())
        except FAILURES:
            found = ""  # These samples do not suit on the device; is the device still there?
        witness.settle()
        return found


def _signature(overload: Overload) -> Signature:
    parameters = tuple(Parameter(p.name, (p.type,), p.optional, p.form) for p in overload.params)
    return Signature(parameters)


def _computes(signature: Signature) -> bool:
    """True if there is a tensor to compute on, or a device to make one on."""
    return any(
        p.types[0] in ("T", "Tl") or p.name == "device" or (p.types[0] == "x" and not p.optional)
        for p in signature.parameters
    )


def _conditions(op: Op, signature: Signature, device: str) -> dict[str, Any] | None:
    """Return the options without which no source says that the operation waits.

    None if this signature lacks one of them, or if one has no sample. An operation that makes a
    tensor without taking one gets the device.
    """
    given: dict[str, Any] = {}
    named = {p.name: p for p in signature.parameters}
    for name in op.only_with:
        param = named.get(name)
        value = None if param is None or name == MASK else sample(param, Scenario(), False)
        if value is None:
            return None
        given[name] = True if value is False else value
    if "device" in named and not any(p.types[0] in ("T", "Tl") for p in signature.parameters):
        given["device"] = device
    return given


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, torch.device):
        return torch.device(device)
    if isinstance(value, list):
        return [_moved(item, device) for item in value]
    return value


def _function(name: str) -> Callable[..., Any] | None:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found if callable(found) else None


# --- calls whose wait depends on more than the overload


def _numbers(device: str) -> torch.Tensor:
    return torch.arange(12, device=device)


def _to_device(
    pinned: bool, wait: bool, size: int = 1 << 20
) -> Callable[[str], Callable[[], object]]:
    def make(device: str) -> Callable[[], object]:
        source = torch.ones(size)
        source = source.pin_memory() if pinned else source
        return lambda: source.to(device, non_blocking=not wait)

    return make


def _to_cuda(device: str) -> Callable[[], object]:
    source = torch.ones(1 << 16)
    return source.cuda if device == "cuda" else lambda: source.to(device)


def _indexed(index: Callable[[str], Any]) -> Callable[[str], Callable[[], object]]:
    def make(device: str) -> Callable[[], object]:
        x, chosen = _numbers(device), index(device)
        return lambda: x[chosen]

    return make


def _assigned(
    index: Callable[[str], Any], value: Callable[[str], Any]
) -> Callable[[str], Callable[[], object]]:
    def make(device: str) -> Callable[[], object]:
        x, chosen, given = _numbers(device), index(device), value(device)

        def call() -> None:
            x[chosen] = given

        return call

    return make


def _mask(device: str) -> torch.Tensor:
    return _numbers(device) > 5


def _positions(device: str) -> torch.Tensor:
    return torch.tensor([2, 0, 1], device=device)


def _host_positions(device: str) -> torch.Tensor:
    return torch.tensor([2, 0, 1])


def _list(device: str) -> list[int]:
    return [2, 0, 1]


def _number(device: str) -> int:
    return 0


def _one(device: str) -> torch.Tensor:
    return torch.ones((), dtype=torch.long, device=device)


def _bound(device: str) -> slice:
    return slice(None, _one(device))


def _plain(call: Callable[[torch.Tensor], object]) -> Callable[[str], Callable[[], object]]:
    def make(device: str) -> Callable[[], object]:
        x = _numbers(device)
        return lambda: call(x)

    return make


_CASES = (
    Case("Tensor.to(device), pageable memory", _to_device(False, True), f"{METHOD}to"),
    Case("Tensor.to(device), pinned memory", _to_device(True, True)),
    Case(
        "Tensor.to(device, non_blocking=True), pageable memory",
        _to_device(False, False),
        disputed=True,
    ),
    Case(
        "Tensor.to(device, non_blocking=True), 16 numbers in pageable memory",
        _to_device(False, False, 16),
        disputed=True,
    ),
    Case("Tensor.to(device, non_blocking=True), pinned memory", _to_device(True, False)),
    Case("Tensor.cuda(), pageable memory", _to_cuda, f"{METHOD}cuda"),
    Case("Tensor.cpu()", _plain(lambda x: x.cpu()), f"{METHOD}cpu"),
    Case("Tensor.to('cpu', non_blocking=True)", _plain(lambda x: x.to("cpu", non_blocking=True))),
    Case(
        "Tensor.copy_(host tensor)",
        _plain(lambda x: x.copy_(torch.arange(12))),
        f"{METHOD}copy_",
    ),
    Case("Tensor.new_tensor(list)", _plain(lambda x: x.new_tensor([1, 2])), f"{METHOD}new_tensor"),
    Case(
        "torch.tensor(list, device=device)",
        _plain(lambda x: torch.tensor([1, 2], device=x.device)),
        "torch.tensor",
    ),
    Case("torch.tensor(number, device=device)", _plain(lambda x: torch.tensor(1, device=x.device))),
    Case(
        "torch.as_tensor(list, device=device)",
        _plain(lambda x: torch.as_tensor([1, 2], device=x.device)),
        "torch.as_tensor",
    ),
    Case("x[mask]", _indexed(_mask), f"{METHOD}__getitem__"),
    Case("x[positions]", _indexed(_positions)),
    Case("x[host positions]", _indexed(_host_positions)),
    Case("x[list]", _indexed(_list)),
    Case("x[:tensor]", _indexed(_bound)),
    Case("x[0-d tensor]", _indexed(_one)),
    Case("x[mask] = tensor", _assigned(_mask, _one), f"{METHOD}__setitem__"),
    Case("x[mask] = number", _assigned(_mask, _number)),
    Case("x[positions] = tensor", _assigned(_positions, _one)),
    Case("x[positions] = number", _assigned(_positions, _number), disputed=True),
    Case("x[list] = number", _assigned(_list, _number)),
    Case(
        "index_put_((mask,), tensor)",
        _plain(lambda x: x.index_put_((x > 5,), x.new_zeros(()))),
        f"{METHOD}index_put_",
    ),
    Case("bincount(minlength=)", _plain(lambda x: torch.bincount(x, minlength=16)), disputed=True),
    Case(
        "histc(min=, max=)",
        _plain(lambda x: torch.histc(x.float(), 4, min=0, max=12)),
        spares=("torch.histc", "min"),
    ),
    Case(
        "repeat_interleave(output_size=)",
        _plain(lambda x: torch.repeat_interleave(x, x, output_size=66)),
        spares=("torch.repeat_interleave", "output_size"),
    ),
    Case(
        "one_hot(num_classes=)",
        _plain(lambda x: torch.nn.functional.one_hot(x, 12)),
        spares=("torch.nn.functional.one_hot", "num_classes"),
        disputed=True,
    ),
    Case("multinomial", _plain(lambda x: torch.multinomial(x.float(), 2)), "torch.multinomial"),
    Case(
        "multinomial, with replacement",
        _plain(lambda x: torch.multinomial(x.float(), 2, replacement=True)),
    ),
)
CASES = {f"case: {one.words}": one for one in _CASES}


def all_names(table: TorchTable) -> list[str]:
    """Return every operation, then every case, then every form."""
    return [*operation_names(table), *CASES, *(PREFIX + text for text in FORMS)]


def rows(names: list[str], table: TorchTable, witness: Witness) -> Iterator[Row]:
    """Yield one row for each name, in order. Raises RuntimeError if the device is lost."""
    for name in names:
        yield measure(name, table, witness)
