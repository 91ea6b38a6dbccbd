"""Meters, and the logger that holds one for each name."""

from collections import defaultdict

import torch


class AverageMeter:
    """The average of all values so far."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class PeakMeter:
    """The largest value so far."""

    def __init__(self):
        self.peak = 0.0

    def update(self, val):
        if val > self.peak:
            self.peak = val


class MetricLogger:
    """A meter for each name, and a line that shows them."""

    def __init__(self):
        self.meters = defaultdict(AverageMeter)

    def update(self, **kwargs):
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                v = v.item()
            self.meters[k].update(v)

    def line(self):
        return ", ".join(f"{k} {meter.avg:.4f}" for k, meter in self.meters.items())


class History:
    """All values, by name."""

    def __init__(self):
        self.values = {}

    def add(self, name, value):
        self.values.setdefault(name, []).append(float(value))
