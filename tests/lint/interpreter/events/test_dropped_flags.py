"""Wrappers of copies that take ``non_blocking`` and drop it: torchao issue 4297."""

from __future__ import annotations

import pytest
from linting import findings

PASS_ON = "pass the function's non_blocking on"
WRAPPER = """\
import torch


def to_device(x: torch.Tensor, device: torch.device, non_blocking: bool = False) -> torch.Tensor:
    {body}


def train_step(model: torch.nn.Module, x: torch.Tensor, device: torch.device):
    return model(to_device(x, device, non_blocking=True))
"""
DROPPED = ("return x.to(device)", "return x.to(device=device, dtype=torch.float16)")
PASSED = (
    "return x.to(device, non_blocking=non_blocking)",
    "return x.to(device) if not non_blocking else x.to(device, non_blocking=True)",
    "return x.to(torch.float16)",
)


@pytest.mark.parametrize("body", DROPPED)
def test_a_flag_that_is_not_passed_on_is_told(body: str) -> None:
    (told,) = findings(WRAPPER.format(body=body))
    assert "TPF503" in told
    assert PASS_ON in told


@pytest.mark.parametrize("body", PASSED)
def test_a_flag_that_is_read_is_not(body: str) -> None:
    assert not any(PASS_ON in one for one in findings(WRAPPER.format(body=body)))


def test_a_function_without_the_flag_drops_none() -> None:
    source = WRAPPER.format(body="return x.to(device)").replace(", non_blocking: bool = False", "")
    assert findings(source) == []
