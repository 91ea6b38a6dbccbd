"""Synthetic sequences of events, padded to one length, with a class for each."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, Dataset

CLASSES = 5
LENGTH = 12
FEATURES = 8


class EventSequences(Dataset):
    """Sequences around a centre of their class, normalised by the statistics of all of them."""

    def __init__(self, count: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(count) % CLASSES
        self.lengths = torch.randint(4, LENGTH + 1, (count,), generator=generator)
        centres = torch.randn(CLASSES, FEATURES, generator=generator)
        noise = torch.randn(count, LENGTH, FEATURES, generator=generator)
        self.events = centres[self.labels][:, None] + 0.5 * noise
        self.mean = self.events.mean().item()
        self.std = self.events.std().item()
        self.events = (self.events - self.mean) / self.std

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.events[index], self.lengths[index], self.labels[index]


def class_weights(labels: torch.Tensor) -> list[float]:
    """Weights that make rare classes count as much as frequent ones."""
    counts = torch.bincount(labels, minlength=CLASSES)
    weights = []
    for count in counts:
        weights.append(len(labels) / (CLASSES * count.item()))
    return weights


def class_frequencies(labels: torch.Tensor) -> torch.Tensor:
    """The share of each class that there is."""
    _, counts = torch.unique(labels, return_counts=True)
    return counts / counts.sum()


def describe_lengths(lengths: torch.Tensor) -> str:
    """How long the sequences are, in a line."""
    short = lengths[lengths <= LENGTH // 2]
    shortest, longest = int(lengths.min()), int(lengths.max())
    return f"{shortest} to {longest} events, {len(short)} sequences are short"


def make_loader(count: int, batch_size: int, seed: int, shuffle: bool) -> DataLoader:
    """Batches of a new set of sequences."""
    return DataLoader(EventSequences(count, seed), batch_size=batch_size, shuffle=shuffle)


def padding_mask(lengths: torch.Tensor) -> torch.Tensor:
    """True where a sequence has an event, up to the longest of the batch."""
    longest = int(lengths.max())
    return torch.arange(longest, device=lengths.device)[None] < lengths[:, None]


def mixup(events: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Mix each sequence with another one of the batch."""
    share = torch.distributions.Beta(0.4, 0.4).sample().to(events.device).item()
    order = torch.tensor(list(reversed(range(len(events)))), device=events.device)
    return share * events + (1 - share) * events[order], labels[order], share


def drop_events(events: torch.Tensor, rate: float) -> torch.Tensor:
    """Set a random part of the events to zero, sequence by sequence."""
    kept = []
    for sequence in events:
        keep = torch.rand(len(sequence), device=events.device) >= rate
        if keep.any():
            sequence = sequence * keep[:, None]
        kept.append(sequence)
    return torch.stack(kept)
