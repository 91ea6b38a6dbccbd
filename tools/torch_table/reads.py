"""Finding out whether an operation reads its tensor's elements on the host.

Two experiments, neither of which needs an accelerator:

- A result that is a host value and differs when only the elements differ was read from the
  elements.
- Under FakeTensorMode with tensors that claim to be on `cuda`, torch raises
  DataDependentOutputException where an operation needs an element to go on, and
  DynamicOutputShapeException where it needs one to know a shape.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy
import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)

from torch_table.model import Parameter
from torch_table.samples import FAILURES, Scenario, arguments, call, sample

_HOST_TYPES = (bool, int, float, complex, str, bytes, list, numpy.ndarray)


def reads_elements(
    function: Callable[..., Any], parameters: Sequence[Parameter], scenario: Scenario
) -> bool:
    """True if a host value that the function returns depends on the elements alone."""
    small = (
        replace(scenario, shape=())
        if call(function, parameters, replace(scenario, shape=()))[0]
        else scenario
    )
    return any(_differs(function, parameters, case) for case in (scenario, small))


def _differs(
    function: Callable[..., Any], parameters: Sequence[Parameter], scenario: Scenario
) -> bool:
    outcomes: list[list[str]] = []
    alive: list[Any] = []  # so that no two samples share an address
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fill in ("zeros", "ones", "mixed"):
            texts = []
            for _ in range(2):
                built = arguments(parameters, replace(scenario, fill=fill), {})
                if built is None:
                    return False
                alive.append(built)
                try:
                    result = function(*built[0], **built[1])
                except FAILURES:
                    return False
                if not isinstance(result, _HOST_TYPES) or (
                    isinstance(result, list)
                    and any(isinstance(item, torch.Tensor) for item in result)
                ):
                    return False
                texts.append(repr(result))
            outcomes.append(texts)
    stable = all(first == second for first, second in outcomes)
    return stable and len({first for first, _ in outcomes}) > 1


def fake_reads(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    scenario: Scenario,
    given: Mapping[str, Any],
) -> str:
    """Return `h` or `y` if the operation needs elements of a fake CUDA tensor.

    `-` if it ran without them; "" if its arguments did not suit.
    """
    built = arguments(parameters, scenario, given)
    if built is None:
        return ""
    with FakeTensorMode(), warnings.catch_warnings(), contextlib.ExitStack():
        warnings.simplefilter("ignore")
        try:
            positional = [_on_cuda(value) for value in built[0]]
            keywords = {name: _on_cuda(value) for name, value in built[1].items()}
            function(*positional, **keywords)
        except DataDependentOutputException:
            return "h"
        except DynamicOutputShapeException:
            return "y"
        except FAILURES:
            return ""
    return "-"


def _on_cuda(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="cuda")
    if isinstance(value, list):
        return [_on_cuda(item) for item in value]
    return value


def conditions(
    function: Callable[..., Any], parameters: Sequence[Parameter], scenario: Scenario
) -> tuple[str, set[str]]:
    """Return the needs of a call without options (`fake_reads`), and options that avoid them."""
    found = fake_reads(function, parameters, scenario, {})
    spared: set[str] = set()
    if found not in {"h", "y"}:
        return found, spared
    for param in parameters:
        if (
            not param.optional
            or param.types[0] not in {"i", "b", "n", "f", "Z"}
            or param.form == "variadic"
        ):
            continue
        value = (
            True
            if param.types[0] == "b"
            else sample(replace(param, optional=False), Scenario(integer=8), False)
        )
        if (
            value is not None
            and fake_reads(function, parameters, scenario, {param.name: value}) == "-"
        ):
            spared.add(param.name)
    return found, spared
