"""Evaluation after each epoch."""

import torch

from .losses import compute
from .meters import AverageMeter, History
from .metrics import agreement, perplexity


@torch.no_grad()
def evaluate(model, criterion, loader, device):
    """Mean loss, perplexity and accuracy over a loader."""
    model.eval()
    losses, right = AverageMeter(), AverageMeter()
    history = History()
    for words, labels in loader:
        words, labels = words.to(device), labels.to(device)
        result = compute(model, criterion, words, labels)
        losses.update(result.loss, len(words))
        share = agreement(result.logits.argmax(dim=-1), labels)
        right.update(share.item(), len(words))
        history.add("loss", result.loss)
    return losses.avg, perplexity(losses.avg), right.avg
