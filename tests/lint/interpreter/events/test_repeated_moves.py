"""Moves that each round of a loop repeats with the same tensor: reported, with their own advice."""

from __future__ import annotations

import pytest
from linting import findings

ONCE = "move it once before the loop"
TRAIN = """\
import torch
from torch import Tensor, nn


def train(model: nn.Module, w: Tensor, loader, opt, devices, device: torch.device):
    host = torch.load("w.pt", map_location="cpu")
    for x in loader:
        {step}
        model(x * moved).sum().backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "step",
    [
        "moved = w.to(device)",
        "moved = w.to('cuda')",
        "moved = w.cuda()",
        "moved = host.to(device)",
        "moved = host.cuda()",
    ],
)
def test_a_move_of_the_same_tensor_is_repeated(step: str) -> None:
    found = [one for one in findings(TRAIN.format(step=step)) if ONCE in one]
    assert [one.partition(" ")[0] for one in found] == ["8:"]


@pytest.mark.parametrize(
    "step",
    [
        "w = moved = w.to(device)",
        "w[0] = x; moved = w.to(device)",
        "w.add_(x); moved = w.to(device)",
        "device = devices.pop(); moved = w.to(device)",
        "moved = w.to(x.device)",
        "moved = w.to(torch.float32)",
        "moved = w.to('cpu')",
        "moved = x.to(device)",
        "host = make(x); moved = host.to(device)",
    ],
)
def test_a_move_of_what_the_loop_changes_is_not(step: str) -> None:
    assert not [one for one in findings(TRAIN.format(step=step)) if ONCE in one]


def test_a_move_without_a_loop_is_not() -> None:
    source = "def to(x: Tensor, device):\n    return x.to(device)\n"
    assert findings(f"from torch import Tensor\n\n\n{source}") == []
