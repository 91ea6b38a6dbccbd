"""Calling an operation with small sample arguments, and observing what comes back.

Enters: a callable with its `Signature`. Leaves: `Observation`s (dtypes and ranks in, form and
letters out) and the operators dispatched on the way. Samples are a few elements on the CPU; every
failure of a call is an expected answer ("these arguments do not suit").
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from flake8_torchperf.knowledge.returns import (
    UNKNOWN,
    HostReturn,
    InstanceReturn,
    ListReturn,
    Return,
    ScalarReturn,
    TensorReturn,
    TupleReturn,
)
from torch_table.model import Parameter, Signature

DTYPES = {"f": torch.float32, "i": torch.int64, "b": torch.bool, "c": torch.complex64}
SHAPES: tuple[tuple[int, ...], ...] = ((3, 3), (3,), (), (2, 3, 3), (1, 2, 4, 4), (1, 2, 4, 4, 4))
# First tensor's shape and the others', to tell broadcasting from following the first tensor.
MIXED: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 3), ()),
    ((), (3, 3)),
    ((3, 3), (3,)),
    ((3,), (2, 3, 3)),
    ((2, 3, 3), (3,)),
)
_SIZES: tuple[tuple[int, ...], ...] = ((0,), (2, 3), (1,), (1, 1), (3,), (1, 1, 1), (0, 1), (1, 0))
_NUMBERS: tuple[float, ...] = (2, 0.5, True)
_INTS = (1, 0, 2, 3, -1)
_UNKNOWNS = {"int": 1, "str": ""}
# How many size and integer choices to observe for one shape, and how many to try.
_TRIES_PER_SHAPE = 30
_CHOICES_PER_SHAPE = 4

FAILURES = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    NotImplementedError,
    AssertionError,
    KeyError,
    OverflowError,
    ZeroDivisionError,
    ImportError,
)


@dataclass(frozen=True)
class Scenario:
    """One choice of all samples."""

    shape: tuple[int, ...] = (3, 3)
    other_shape: tuple[int, ...] | None = None
    dtype: str = "f"
    other_dtype: str | None = None
    integer: int = 1
    size: tuple[int, ...] = (0,)
    number: float = 2
    fill: str = (
        "unit"  # unit: within (0, 1); definite: symmetric positive definite; zeros; ones; mixed
    )
    unknown: str = "tensor"  # what stands in for a required parameter of unknown type

    def tensor(self, first: bool) -> torch.Tensor:
        """The sample for the first or for any other tensor parameter."""
        shape = self.shape if first or self.other_shape is None else self.other_shape
        dtype = DTYPES[self.dtype if first or self.other_dtype is None else self.other_dtype]
        fill = self.fill if self.fill != "mixed" else ("zeros" if first else "ones")
        if fill == "zeros":
            return torch.zeros(shape, dtype=dtype)
        if fill == "ones":
            return torch.ones(shape, dtype=dtype)
        count = torch.Size(shape).numel()
        values = (torch.arange(count) % 3).reshape(shape)
        if dtype.is_floating_point or dtype.is_complex:
            unit = values.to(torch.float32) * 0.25 + 0.3
            if fill == "definite" and len(shape) > 1 and shape[-1] == shape[-2]:
                unit = (unit + unit.mT) / 2 + 3 * torch.eye(shape[-1])
            return unit.to(dtype)
        return values.remainder(2).to(dtype)


@dataclass(frozen=True)
class Observation:
    """What one call was given and gave back."""

    dtypes: tuple[str, ...]
    numbers: tuple[str, ...]
    ranks: tuple[int, ...]
    result: Return


@dataclass
class Probed:
    """All observations of one signature, the operators it dispatched, and the arguments that worked
    first.
    """

    observations: list[Observation] = field(default_factory=list)
    dispatched: list[Any] = field(default_factory=list)
    scenarios: list[Scenario] = field(default_factory=list)

    @property
    def scenario(self) -> Scenario | None:
        """The first arguments that worked."""
        return self.scenarios[0] if self.scenarios else None


def category(dtype: torch.dtype) -> str:
    """b, i, f or c."""
    if dtype is torch.bool:
        return "b"
    if dtype.is_complex:
        return "c"
    return "f" if dtype.is_floating_point else "i"


class Dispatched(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it so
    """Records every operator that reaches the dispatcher."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops: list[Any] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.ops.append(func)
        return func(*args, **(kwargs or {}))


def arguments(
    parameters: Sequence[Parameter], scenario: Scenario, given: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """Sample arguments for the required parameters and the `given` ones; None where none can be
    built.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    seen_tensor = False
    skipped = False
    for param in parameters:
        if param.name in given:
            value = given[param.name]
        elif param.form == "variadic" and param.types[0] == "i":
            positional.extend(scenario.size)
            continue
        elif param.form == "variadic" and param.types[0] in {"T", "Tl"}:
            value = sample(param, scenario, not seen_tensor)
            positional.extend([value, sample(param, scenario, False)])
            seen_tensor = seen_tensor or param.types[0] == "T"
            continue
        elif param.optional:
            skipped = True
            continue
        else:
            value = sample(param, scenario, not seen_tensor)
        if value is None:
            return None
        seen_tensor = seen_tensor or param.types[0] in {"T", "Tl"}
        if param.form == "keyword" or skipped:
            keywords[param.name] = value
        else:
            positional.append(value)
    return positional, keywords


def sample(param: Parameter, scenario: Scenario, first: bool) -> Any:
    """One sample of a parameter's type; None where there is none."""
    match param.types[0]:
        case "T":
            if param.name in {"index", "indices"} and not first:
                return replace(scenario, dtype="i", other_dtype=None).tensor(first)
            if param.name in {"mask", "condition"}:
                return replace(scenario, dtype="b", other_dtype=None).tensor(first)
            return scenario.tensor(first)
        case "Tl":
            return [scenario.tensor(first), scenario.tensor(False)]
        case "i":
            return scenario.integer
        case "Z":
            return list(scenario.size)
        case "f":
            return 0.5
        case "n":
            return scenario.number
        case "b" | "0":
            return False
        case "1":
            return True
        case "x":
            return (
                scenario.tensor(first)
                if scenario.unknown == "tensor"
                else _UNKNOWNS[scenario.unknown]
            )
        case "Y":
            return torch.float32
        case "D":
            return torch.device("cpu")
        case "s":
            return (
                "ij,jk->ik"
                if param.name == "equation"
                else "mean"
                if param.name == "reduce"
                else None
            )
    return None


def describe(value: Any, names: Mapping[type, str]) -> Return:
    """The return form of an observed value; tensors carry dtype category and rank as digits."""
    if isinstance(value, torch.Tensor):
        return TensorReturn(category(value.dtype), str(min(value.dim(), 9)))
    if isinstance(value, bool):
        return ScalarReturn("b")
    for scalar, kind in ((int, "i"), (float, "f"), (complex, "n"), (str, "s")):
        if isinstance(value, scalar):
            return ScalarReturn(kind)
    if isinstance(value, torch.Size):
        return HostReturn("Z")
    if value is None:
        return HostReturn("N")
    for host, kind in ((numpy.ndarray, "A"), (torch.dtype, "Y"), (torch.device, "D")):
        if isinstance(value, host):
            return HostReturn(kind)
    if isinstance(value, tuple):
        items = tuple(describe(item, names) for item in value)
        fields = getattr(type(value), "_fields", None)
        if fields is None and hasattr(type(value), "n_fields"):
            fields = structseq_fields(type(value))
        return TupleReturn(items, fields)
    if isinstance(value, Iterator):
        value = list(itertools.islice(value, 9))
    if isinstance(value, list):
        return _describe_list(value, names)
    return InstanceReturn(names[type(value)]) if type(value) in names else UNKNOWN


def structseq_fields(type_: type) -> tuple[str, ...]:
    """The field names of a `torch.return_types` class, in order."""
    members = [
        name for name, kind in vars(type_).items() if type(kind).__name__ == "member_descriptor"
    ]
    return tuple(members)


def _describe_list(value: list[Any], names: Mapping[type, str]) -> Return:
    if value and isinstance(value[0], torch.Tensor):
        return ListReturn(describe(value[0], names))
    if value and isinstance(value[0], (bool, int, float, complex, list)):
        return HostReturn("L")
    return UNKNOWN


def _scenarios(parameters: Sequence[Parameter]) -> Iterator[Scenario]:
    """Shapes with the integer and size choices to try for each, base dtype first."""
    required = [p for p in parameters if not p.optional or p.form == "variadic"]
    kinds = {"Z" if p.form == "variadic" and p.types[0] == "i" else p.types[0] for p in required}
    ints = _INTS if "i" in kinds else (1,)
    unknowns = ("tensor", *_UNKNOWNS) if "x" in kinds else ("tensor",)
    for shape in SHAPES if kinds & {"T", "Tl", "x"} else ((3, 3), (3,)):
        sizes = (shape, *_SIZES, tuple(range(len(shape)))) if "Z" in kinds else ((0,),)
        for size, integer, unknown in itertools.product(sizes, ints, unknowns):
            yield Scenario(shape=shape, size=size, integer=integer, unknown=unknown)
    if [p.types[0] for p in required].count("T") > 1:
        for (shape, other_shape), integer in itertools.product(MIXED, ints[:2]):
            yield Scenario(shape=shape, other_shape=other_shape, integer=integer)


def call(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    scenario: Scenario,
    given: Mapping[str, Any] | None = None,
) -> tuple[bool, Any]:
    """Whether the call worked, and its result."""
    built = arguments(parameters, scenario, given or {})
    if built is None:
        return False, None
    torch.default_generator.manual_seed(
        0
    )  # torch.manual_seed also queues a seed for every accelerator
    try:
        return True, function(*built[0], **built[1])
    except FAILURES:
        return False, None


class Prober:
    """Probes signatures; `names` maps torch classes to their qualified names."""

    def __init__(self, names: Mapping[type, str]) -> None:
        self._names = names

    def probe(
        self,
        function: Callable[..., Any],
        signature: Signature,
        given: Mapping[str, Any] | None = None,
    ) -> Probed:
        """Everything observed of one signature; no observation where no sample suits."""
        parameters = signature.parameters
        probed = Probed()
        required = [p for p in parameters if not p.optional and p.name not in (given or {})]
        if any(sample(p, Scenario(), True) is None for p in required):
            return probed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._observe_all(function, parameters, given or {}, probed)
        return probed

    def working(
        self, function: Callable[..., Any], signature: Signature, given: Mapping[str, Any]
    ) -> Scenario | None:
        """The first samples that suit beside the `given` arguments; None where none do."""
        tensors = _tensors_of(signature.parameters)
        for base in _scenarios(signature.parameters):
            found = self._first_working(function, signature.parameters, base, given, tensors)
            if found is not None:
                return found
        return None

    def again(
        self,
        function: Callable[..., Any],
        signature: Signature,
        probed: Probed,
        given: Mapping[str, Any],
    ) -> list[Observation]:
        """What is observed of the arguments that worked, with options added."""
        parameters = signature.parameters
        found: list[Observation] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for scenario in _spread(probed.scenarios):
                worked, result = call(function, parameters, scenario, given)
                if worked:
                    found.append(self._observation(parameters, scenario, given, result))
        return found

    def _observe_all(
        self,
        function: Callable[..., Any],
        parameters: Sequence[Parameter],
        given: Mapping[str, Any],
        out: Probed,
    ) -> None:
        tensors = _tensors_of(parameters)
        numbers = any(p.types[0] == "n" and not p.optional for p in parameters)
        settled: dict[tuple[int, ...], int] = {}
        tried: dict[tuple[int, ...], int] = {}
        for base in _scenarios(parameters):
            if base.other_shape is not None and settled:
                break  # unlike shapes are for operations that take no others, as `mv` does
            tried[base.shape] = tried.get(base.shape, 0) + 1
            if (
                settled.get(base.shape, 0) >= _CHOICES_PER_SHAPE
                or tried[base.shape] > _TRIES_PER_SHAPE
            ):
                continue
            found = self._first_working(function, parameters, base, given, tensors)
            if found is None:
                continue
            settled[base.shape] = settled.get(base.shape, 0) + 1
            out.scenarios.append(found)
            if len(out.scenarios) == 1:
                self._record(function, parameters, found, given, out)
            first = len(settled) == 1 and settled[base.shape] == 1
            for variant in _variants(found, tensors, numbers, first=first):
                worked, result = call(function, parameters, variant, given)
                if worked:
                    out.observations.append(self._observation(parameters, variant, given, result))

    def _first_working(
        self,
        function: Callable[..., Any],
        parameters: Sequence[Parameter],
        base: Scenario,
        given: Mapping[str, Any],
        tensors: int,
    ) -> Scenario | None:
        pairs: list[tuple[str, str | None]] = [("f", None)]
        if tensors:
            pairs += [("i", None), ("b", None)]
        if tensors > 1:
            pairs += [("f", "i"), ("i", "f"), ("f", "b"), ("b", "f")]
        cases = [(dtype, other, "unit") for dtype, other in pairs]
        if len(base.shape) > 1 and base.shape[-1] == base.shape[-2] and tensors:
            cases.append(("f", None, "definite"))
        for dtype, other, fill in cases:
            scenario = replace(base, dtype=dtype, other_dtype=other, fill=fill)
            if call(function, parameters, scenario, given)[0]:
                return scenario
        return None

    def _record(
        self,
        function: Callable[..., Any],
        parameters: Sequence[Parameter],
        scenario: Scenario,
        given: Mapping[str, Any],
        out: Probed,
    ) -> None:
        built = arguments(parameters, scenario, given)
        if built is None:
            return
        mode = Dispatched()
        try:
            with mode:
                function(*built[0], **built[1])
        except FAILURES:
            return
        out.dispatched = mode.ops

    def _observation(
        self,
        parameters: Sequence[Parameter],
        scenario: Scenario,
        given: Mapping[str, Any],
        result: Any,
    ) -> Observation:
        built = arguments(parameters, scenario, given)
        assert built is not None
        flat: list[Any] = []
        for value in [*built[0], *built[1].values()]:
            flat.extend(value if isinstance(value, list) else [value])
        tensors = [value for value in flat if isinstance(value, torch.Tensor)]
        has_number = any(p.types[0] == "n" and not p.optional for p in parameters)
        number = {bool: "b", int: "i"}.get(type(scenario.number), "f")
        return Observation(
            tuple(category(t.dtype) for t in tensors),
            (number,) if has_number else (),
            tuple(t.dim() for t in tensors),
            describe(result, self._names),
        )


def _tensors_of(parameters: Sequence[Parameter]) -> int:
    """How many tensors a call takes; of a list two stand for all."""
    return sum(
        2 if p.types[0] == "Tl" or p.form == "variadic" else 1
        for p in parameters
        if p.types[0] in {"T", "Tl"} and (not p.optional or p.form == "variadic")
    )


def _spread(scenarios: Sequence[Scenario]) -> Iterator[Scenario]:
    """One working scenario for every shape, the first with all dtypes."""
    shapes: set[tuple[int, ...]] = set()
    for scenario in scenarios:
        if scenario.shape in shapes:
            continue
        for dtype in DTYPES if not shapes else (scenario.dtype,):
            yield replace(scenario, dtype=dtype)
        shapes.add(scenario.shape)


def _variants(base: Scenario, tensors: int, numbers: bool, *, first: bool) -> Iterator[Scenario]:
    """The working scenario itself, then with other dtypes, and (once) with tensors of unlike
    shapes.
    """
    yield base
    if not first:
        return
    if not tensors:
        if numbers:
            yield from (replace(base, number=number) for number in _NUMBERS[1:])
        return
    others: tuple[str | None, ...] = (None, "f", "i", "b", "c") if tensors > 1 else (None,)
    for dtype, other in itertools.product(DTYPES, others):
        for number in _NUMBERS if numbers else _NUMBERS[:1]:
            scenario = replace(base, dtype=dtype, other_dtype=other, number=number)
            if scenario != base:
                yield scenario
    if tensors > 1:
        for shape, other_shape in MIXED:
            yield replace(base, shape=shape, other_shape=other_shape)
