"""Losses of the classifier."""

from __future__ import annotations

import torch
from torch.nn import functional as F


def classification_loss(
    logits: torch.Tensor, labels: torch.Tensor, weights: list[float], largest: float | None = None
) -> torch.Tensor:
    """Weighted cross entropy; logits beyond the largest are clamped."""
    if largest is not None and logits.abs().max() > largest:
        logits = logits.clamp(-largest, largest)
    weight = torch.tensor(weights, device=logits.device)
    return F.cross_entropy(logits, labels, weight=weight)


def margin_penalty(logits: torch.Tensor, labels: torch.Tensor, margin: float) -> torch.Tensor:
    """What the wrong classes come closer to the right one than a margin."""
    right = logits.gather(1, labels[:, None])
    close = (logits + margin - right) * (1 - F.one_hot(labels))
    close = close[close > 0]
    if close.numel() == 0:
        return logits.sum() * 0
    return close.mean()


def balance_penalty(load: torch.Tensor) -> float:
    """How unevenly the experts are used: 0 where all have the same."""
    total = load.sum().item()
    return float(load.max()) / total - 1 / len(load) if total else 0.0


def hard_examples(losses: torch.Tensor, share: float) -> torch.Tensor:
    """The indices of the examples with the largest losses."""
    limit = torch.quantile(losses, 1 - share).item()
    return torch.where(losses >= limit)[0]


def focal_loss(logits: torch.Tensor, labels: torch.Tensor, gamma: float = 2.0) -> torch.Tensor:
    """Cross entropy that forgets what is easy."""
    losses = F.cross_entropy(logits, labels, reduction="none")
    if torch.any(losses.isnan()):
        losses = losses[~losses.isnan()]
    return ((1 - (-losses).exp()) ** gamma * losses).mean()
