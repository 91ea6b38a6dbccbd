"""A small classifier of sequences: gated pooling and a mixture of experts."""

from __future__ import annotations

import torch
from torch import nn


class GatedPooling(nn.Module):
    """Average of the events of each sequence, weighted by a learnt gate."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 1)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.gate(hidden).squeeze(-1)
        scores[~mask] = -1e4
        if not torch.isfinite(scores).all():
            raise FloatingPointError(f"gate scores out of range: {scores}")
        weights = scores.softmax(dim=-1)
        return (weights[..., None] * hidden).sum(dim=1)


class Experts(nn.Module):
    """Each sequence goes to the expert that a router chooses."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.register_buffer("load", torch.zeros(count))

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        choice = self.router(pooled).argmax(dim=-1)
        out = torch.zeros_like(pooled)
        for number, expert in enumerate(self.experts):
            chosen = (choice == number).nonzero().squeeze(-1)
            out[chosen] = expert(pooled[chosen])
            self.load[number] += len(chosen)
        return out


class SequenceClassifier(nn.Module):
    """Embeds events, pools them and classifies what an expert makes of the result."""

    def __init__(self, features: int, width: int, classes: int, experts: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.pool = GatedPooling(width)
        self.experts = Experts(width, experts)
        self.head = nn.Linear(width, classes)
        spread = self.embed.weight.std().item()
        nn.init.normal_(self.head.weight, std=spread)
        self.trace = False

    def forward(self, events: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.embed(events[:, : mask.shape[1]]))
        if self.trace:
            print("hidden", hidden.abs().max().item())
        pooled = self.pool(hidden, mask)
        return self.head(pooled + self.experts(pooled))

    def start_from(self, frequencies: torch.Tensor) -> None:
        """Begin with the frequencies of the classes as predictions."""
        rarest = frequencies.min().item()
        if rarest == 0:
            frequencies = frequencies + 1e-3
        with torch.no_grad():
            self.head.bias.copy_(frequencies.log())

    def describe(self) -> str:
        """The norm of each parameter, a line each."""
        rows = []
        for name, parameter in self.named_parameters():
            rows.append(f"{name}: {parameter.norm().item():.3f}")
        return "\n".join(rows)
