"""Gradient clipping, weight averages and the learning rate."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn


def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> float:
    """Scale gradients down to a total norm; returns the norm before."""
    total = 0.0
    gradients = [p.grad for p in parameters if p.grad is not None]
    for gradient in gradients:
        total += gradient.norm().item() ** 2
    norm = total**0.5
    if norm > limit:
        for gradient in gradients:
            gradient.mul_(limit / norm)
    return norm


def has_bad_gradient(parameters: Iterable[nn.Parameter]) -> bool:
    """Is some gradient infinite or no number?"""
    for parameter in parameters:
        if parameter.grad is not None and torch.isnan(parameter.grad).any().item():
            return True
    return False


class WeightAverage:
    """An exponential moving average of a model's parameters."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for shadow, parameter in zip(self.shadow, model.parameters()):
            shadow.mul_(self.decay).add_(parameter, alpha=1 - self.decay)

    def distance(self, model: nn.Module) -> float:
        """How far the average is from the model."""
        gaps = [(s - p).norm().item() for s, p in zip(self.shadow, model.parameters())]
        return max(gaps)


class PlateauScheduler:
    """Lowers the learning rate where the loss no longer falls."""

    def __init__(self, optimizer: torch.optim.Optimizer, patience: int) -> None:
        self.optimizer = optimizer
        self.patience = patience
        self.best = float("inf")
        self.waited = 0

    def step(self, loss: torch.Tensor) -> None:
        if loss < self.best:
            self.best = loss.item()
            self.waited = 0
            return
        self.waited += 1
        if self.waited > self.patience:
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.5
