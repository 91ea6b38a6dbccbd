"""Decoding, a word at a time."""

import torch

from .cache import Cache, Words
from .data import END


def pick(logits, temperature=0.0):
    """The next word of each sentence."""
    if temperature == 0.0:
        return logits.argmax(dim=-1, keepdim=True)
    return torch.multinomial((logits / temperature).softmax(dim=-1), 1)


def finished(word):
    """True where the sentence ends."""
    return word.item() == END


@torch.no_grad()
def generate(model, first, longest):
    """Continue a sentence until it ends."""
    cache = Cache()
    words = Words(first)
    word = first
    for _ in range(longest):
        out = model(word, cache)
        word = pick(out.logits[:, -1])
        words.add(word)
        if finished(word):
            break
    return words.ids[0].tolist()
