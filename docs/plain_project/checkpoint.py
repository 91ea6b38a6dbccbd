"""Checkpoints."""

import torch


class Checkpointer:
    """Saves the weights when the loss is the best so far."""

    def __init__(self, path):
        self.path = path
        self.best = float("inf")

    def save(self, model, loss):
        if loss < self.best:
            self.best = loss.item()
            weights = {k: v.cpu() for k, v in model.state_dict().items()}
            torch.save({"weights": weights, "loss": self.best}, self.path)


def load(model, path):
    """Load weights, and print their norm."""
    state = torch.load(path)
    model.load_state_dict(state["weights"])
    print("norm", sum(v.norm().item() for v in state["weights"].values()))
