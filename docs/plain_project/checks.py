"""Checks of what training computes."""

import torch


def validate(x, reject=torch.isnan):
    """Raise if a test rejects a value."""
    if reject(x).any():
        raise FloatingPointError("bad values")
    return x


def check_weights(model):
    """Raise if a weight is not finite."""
    for p in model.parameters():
        if not torch.isfinite(p).all():
            raise FloatingPointError("bad weights")
