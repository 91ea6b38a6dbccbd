"""An average of the weights over the steps."""

import torch


class EMA:
    """Weights that follow those of a model slowly."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow, model.parameters()):
            s.lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def distance(self, model):
        total = 0.0
        for s, p in zip(self.shadow, model.parameters()):
            total += (s - p).norm().item()
        return total
