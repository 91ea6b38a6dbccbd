"""What training writes: a line every few steps, the history, and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn


class History:
    """Numbers by name, one for each step."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}

    def record(self, **numbers: torch.Tensor) -> None:
        for name, number in numbers.items():
            self.values.setdefault(name, []).append(number.detach().cpu().item())

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.values))


def log_step(step: int, loss: torch.Tensor, norm: float, every: int) -> None:
    """Print a line every few steps."""
    if step % every == 0:
        print(f"step {step}: loss {loss.item():.4f}, norm {norm:.3f}")


def gradient_histogram(model: nn.Module, bins: int = 10) -> list[list[float]]:
    """The histogram of each parameter's gradient."""
    rows = []
    for parameter in model.parameters():
        if parameter.grad is not None:
            rows.append(torch.histc(parameter.grad, bins).tolist())
    return rows


def save_checkpoint(path: Path, model: nn.Module, loss: torch.Tensor) -> None:
    """Write the weights, with the loss that they had."""
    weights = {name: value.cpu() for name, value in model.state_dict().items()}
    torch.save({"weights": weights, "loss": loss.item()}, path)


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    """Have two models the same weights?"""
    for one, other in zip(first.parameters(), second.parameters()):
        if not torch.equal(one, other):
            return False
    return True
