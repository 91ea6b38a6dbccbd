"""The keys and values of the words so far."""

import torch


class Cache:
    """Keys and values that grow by a word in each step of decoding."""

    def __init__(self):
        self.k = None
        self.v = None

    def append(self, k, v):
        if self.k is not None:
            k = torch.cat([self.k, k], dim=1)
            v = torch.cat([self.v, v], dim=1)
        self.k, self.v = k, v
        return k, v


class Words:
    """The words of a sentence while it is decoded."""

    def __init__(self, first):
        self.ids = first

    def add(self, word):
        self.ids = torch.cat([self.ids, word], dim=1)
