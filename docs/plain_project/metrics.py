"""Accuracy and agreement."""

import torch


def accuracy(output, target, topk=(1,)):
    """The share of right words among the k best, for each k."""
    with torch.no_grad():
        _, best = output.topk(max(topk), dim=-1)
        right = best == target.unsqueeze(-1)
        known = (target != -100).sum()
        results = []
        for k in topk:
            hits = right[..., :k].sum()
            results.append((hits / known).item())
        return results


def perplexity(loss):
    """The perplexity that a loss means."""
    return float(torch.exp(loss))


def agreement(first, second):
    """The share of equal words."""
    return (first == second).float().mean()
