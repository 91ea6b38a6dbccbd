"""Functions and classes of torch under the names of the modules that define them."""

from __future__ import annotations

from collections.abc import Iterable

from linting import ALL, places

from flake8_torchperf.interpreter.models.torch_overrides import SPECIAL
from flake8_torchperf.knowledge.table import load


def told(names: Iterable[str]) -> set[tuple[int, str]]:
    """Return the findings of calls of functions, a line for each."""
    lines = ["import torch", *(f"{name}(torch.ones(1), True)" for name in names)]
    return places("\n".join(lines), ALL)


def test_calls_are_told_by_either_name() -> None:
    """`torch.autograd.anomaly_mode.set_detect_anomaly` once ended a run in a KeyError."""
    names = {other: name for other, name in load().aliases().items() if name in SPECIAL}
    assert "torch.autograd.anomaly_mode.set_detect_anomaly" in names
    assert told(names) == told(names.values()) != set()
