"""Call an operation with small sample arguments, and observe its results.

Takes a callable with its `Signature`; returns `Observation`s (dtypes and ranks in, form and
letters out) and the operators dispatched on the way.
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
from torch_table.samples import (
    FAILURES,
    Scenario,
    arguments,
    call,
    sample,
    scenarios,
    spread,
    tensors_of,
    variants,
)

# How many size and integer choices to observe for one shape, and how many to try.
_TRIES_PER_SHAPE = 30
_CHOICES_PER_SHAPE = 4


@dataclass(frozen=True)
class Observation:
    """The arguments and the result of one call."""

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
    """Return the category of a dtype: b, i, f or c."""
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


def describe(value: Any, names: Mapping[type, str]) -> Return:
    """Return the form of an observed value; tensors have the dtype category, and rank as digits."""
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
    """Return the field names of a `torch.return_types` class, in order."""
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
        """Return everything observed of one signature; no observation where no sample suits."""
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
        """Return the first samples that work with the `given` arguments; None if none do."""
        tensors = tensors_of(signature.parameters)
        for base in scenarios(signature.parameters):
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
        """Return the observations for the arguments that worked, with options added."""
        parameters = signature.parameters
        found: list[Observation] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for scenario in spread(probed.scenarios):
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
        tensors = tensors_of(parameters)
        numbers = any(p.types[0] == "n" and not p.optional for p in parameters)
        settled: dict[tuple[int, ...], int] = {}
        tried: dict[tuple[int, ...], int] = {}
        for base in scenarios(parameters):
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
            for variant in variants(found, tensors, numbers, first=first):
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
