"""A language model of one layer of attention."""

from collections import namedtuple

from torch import nn
from torch.nn import functional as F

from .data import WORDS

Output = namedtuple("Output", ["logits", "aux"])


class Model(nn.Module):
    """Embedding, attention, and the logits of the next word."""

    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.head = nn.Linear(width, WORDS)

    def forward(self, words, cache=None):
        x = self.embed(words)
        q, k, v = self.query(x), self.key(x), self.value(x)
        if cache is not None:
            k, v = cache.append(k, v)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        logits = self.head(x + mixed)
        return Output(logits, logits.logsumexp(dim=-1).square().mean())


def count_parameters(model):
    """The number of parameters, and their norm at the start."""
    norm = sum(p.norm().item() for p in model.parameters())
    return sum(p.numel() for p in model.parameters()), norm
