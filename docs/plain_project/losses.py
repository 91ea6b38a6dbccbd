"""Losses, and what a step computes."""

from dataclasses import dataclass

import torch
from torch.nn import functional as F


@dataclass
class Result:
    """What one batch gives."""

    loss: torch.Tensor
    aux: torch.Tensor
    logits: torch.Tensor


def masked_loss(logits, labels, mask, smoothing=0.0):
    """Cross entropy of the words under a mask."""
    return F.cross_entropy(logits[mask], labels[mask], label_smoothing=smoothing)


def compute(model, criterion, words, labels):
    """Run the model on a batch."""
    out = model(words)
    loss = criterion(out.logits, labels, labels != -100)
    return Result(loss, out.aux, out.logits)
