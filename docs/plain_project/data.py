"""Sentences of made-up words, and the batches of them."""

import torch
from torch.utils.data import DataLoader, Dataset

WORDS = 24
END = 0
IGNORED = -100


class Sentences(Dataset):
    """Sentences that count upwards from a word drawn at random."""

    def __init__(self, count, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.first = torch.randint(1, WORDS, (count,), generator=generator)
        self.length = torch.randint(4, 10, (count,), generator=generator)
        self.mean_length = self.length.float().mean().item()

    def __len__(self):
        return len(self.first)

    def __getitem__(self, index):
        first, length = self.first[index].item(), self.length[index].item()
        return torch.arange(first, first + length) % WORDS


def collate(sentences):
    """Pad sentences to the longest; the labels are the next words."""
    longest = max(len(sentence) for sentence in sentences) - 1
    words = torch.full((len(sentences), longest), END)
    labels = torch.full((len(sentences), longest), IGNORED)
    for row, sentence in enumerate(sentences):
        words[row, : len(sentence) - 1] = sentence[:-1]
        labels[row, : len(sentence) - 1] = sentence[1:]
    return words, labels


def make_loader(count, batch_size, seed):
    """Batches of new sentences."""
    return DataLoader(Sentences(count, seed), batch_size=batch_size, collate_fn=collate)
