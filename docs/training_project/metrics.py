"""Running metrics of training and evaluation."""

from __future__ import annotations

import torch


class RunningMean:
    """The mean of all values that were added."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def add(self, value: torch.Tensor) -> None:
        self.total += value.item()
        self.count += 1

    def mean(self) -> float:
        return self.total / max(self.count, 1)


class ConfusionMatrix:
    """Counts predictions by the true class."""

    def __init__(self, classes: int) -> None:
        self.counts = [[0] * classes for _ in range(classes)]

    def add(self, predictions: torch.Tensor, labels: torch.Tensor) -> None:
        for predicted, label in zip(predictions, labels):
            self.counts[int(label)][int(predicted)] += 1

    def recall(self) -> list[float]:
        return [row[i] / max(sum(row), 1) for i, row in enumerate(self.counts)]


def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of right predictions."""
    return (logits.argmax(dim=-1) == labels).float().mean().item()


def top_k_hits(logits: torch.Tensor, labels: torch.Tensor, k: int) -> int:
    """How many labels are among the k best predictions."""
    best = logits.topk(k, dim=-1).indices
    hits = 0
    for row, label in zip(best, labels):
        if label in row:
            hits += 1
    return hits


def calibration_error(probabilities: torch.Tensor, labels: torch.Tensor, bins: int = 5) -> float:
    """How far confidence and accuracy are apart, over bins of equal width."""
    confidence, predictions = probabilities.max(dim=-1)
    right = predictions == labels
    error = 0.0
    for edge in range(bins):
        inside = (confidence > edge / bins) & (confidence <= (edge + 1) / bins)
        if inside.any():
            gap = right[inside].float().mean() - confidence[inside].mean()
            error += abs(gap.item()) * inside.float().mean().item()
    return error
