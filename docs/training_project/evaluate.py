"""Evaluation after each epoch, and the report at the end."""

from __future__ import annotations

import torch
from data import CLASSES, padding_mask
from metrics import ConfusionMatrix, RunningMean, accuracy, calibration_error, top_k_hits
from torch import nn
from torch.utils.data import DataLoader


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> dict[str, float]:
    """Loss, accuracy and hits over a whole set."""
    model.eval()
    losses, hits, seen = RunningMean(), 0, 0
    right = 0.0
    for events, lengths, labels in loader:
        events, lengths, labels = events.to(device), lengths.to(device), labels.to(device)
        logits = model(events, padding_mask(lengths))
        losses.add(nn.functional.cross_entropy(logits, labels))
        right += accuracy(logits, labels) * len(labels)
        hits += top_k_hits(logits, labels, k=2)
        seen += len(labels)
    return {"loss": losses.mean(), "accuracy": right / seen, "top2": hits / seen}


@torch.no_grad()
def final_report(model: nn.Module, loader: DataLoader, device: torch.device) -> str:
    """Recall of each class and calibration, over a whole set."""
    matrix = ConfusionMatrix(CLASSES)
    probabilities, truths = [], []
    for events, lengths, labels in loader:
        logits = model(events.to(device), padding_mask(lengths.to(device)))
        matrix.add(logits.argmax(dim=-1), labels)
        probabilities.append(logits.softmax(dim=-1).cpu())
        truths.append(labels)
    error = calibration_error(torch.cat(probabilities), torch.cat(truths))
    recall = " ".join(f"{one:.2f}" for one in matrix.recall())
    return f"recall {recall}; calibration error {error:.3f}"


@torch.no_grad()
def worst_examples(model: nn.Module, loader: DataLoader, count: int) -> list[int]:
    """The positions of the examples with the largest losses."""
    losses = torch.empty(0)
    for events, lengths, labels in loader:
        logits = model(events, padding_mask(lengths))
        batch = nn.functional.cross_entropy(logits, labels, reduction="none")
        losses = torch.cat([losses, batch])
    return losses.topk(count).indices.tolist()
