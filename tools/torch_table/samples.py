"""Small sample arguments for a signature: those to try, and a call with them.

Takes the parameters of a `Signature`; returns `Scenario`s, the arguments of each, and a callable's
results for them. Samples are a few elements on the CPU; every failure of a call is an expected
answer ("these arguments do not fit").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from torch_table.model import Parameter

DTYPES = {"f": torch.float32, "i": torch.int64, "b": torch.bool, "c": torch.complex64}
SHAPES: tuple[tuple[int, ...], ...] = ((3, 3), (3,), (), (2, 3, 3), (1, 2, 4, 4), (1, 2, 4, 4, 4))
# Shapes of the first tensor and of the others, which distinguish broadcasting from following the
# first tensor.
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
    # unit: within (0, 1); definite: symmetric positive definite; zeros; ones; mixed
    fill: str = "unit"
    # The sample for a required parameter of unknown type.
    unknown: str = "tensor"

    def tensor(self, first: bool) -> torch.Tensor:
        """Return the sample for the first or for any other tensor parameter."""
        shape = self.shape if first or self.other_shape is None else self.other_shape
        dtype = DTYPES[self.dtype if first or self.other_dtype is None else self.other_dtype]
        fill = self.fill if self.fill != "mixed" else ("zeros" if first else "ones")
        return _tensor(shape, dtype, fill).clone()  # an operation may write to its argument


@cache
def _tensor(shape: tuple[int, ...], dtype: torch.dtype, fill: str) -> torch.Tensor:
    """Return the sample of a shape, to be copied."""
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


def arguments(
    parameters: Sequence[Parameter], scenario: Scenario, given: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """Return sample arguments for the required parameters and the `given` ones.

    None if they cannot be built.
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
    """Return one sample of a parameter's type; None if there is none."""
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


def call(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    scenario: Scenario,
    given: Mapping[str, Any] | None = None,
) -> tuple[bool, Any]:
    """Return True and the result if the call worked, else False and None."""
    built = arguments(parameters, scenario, given or {})
    if built is None:
        return False, None
    # torch.manual_seed also queues a seed for every accelerator.
    torch.default_generator.manual_seed(0)
    try:
        return True, function(*built[0], **built[1])
    except FAILURES:
        return False, None


def scenarios(parameters: Sequence[Parameter]) -> Iterator[Scenario]:
    """Yield shapes with the integer and size choices to try for each, base dtype first."""
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


def tensors_of(parameters: Sequence[Parameter]) -> int:
    """Return the number of tensors that a call takes; a list counts as two."""
    return sum(
        2 if p.types[0] == "Tl" or p.form == "variadic" else 1
        for p in parameters
        if p.types[0] in {"T", "Tl"} and (not p.optional or p.form == "variadic")
    )


def spread(scenarios: Sequence[Scenario]) -> Iterator[Scenario]:
    """Yield one working scenario for every shape, the first with all dtypes."""
    shapes: set[tuple[int, ...]] = set()
    for scenario in scenarios:
        if scenario.shape in shapes:
            continue
        for dtype in DTYPES if not shapes else (scenario.dtype,):
            yield replace(scenario, dtype=dtype)
        shapes.add(scenario.shape)


def variants(base: Scenario, tensors: int, numbers: bool, *, first: bool) -> Iterator[Scenario]:
    """Yield the working scenario itself, then the first one with other dtypes and unlike shapes."""
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
