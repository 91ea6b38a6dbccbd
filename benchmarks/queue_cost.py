"""Measures on a GPU what a wait costs by the work that is queued since the wait before it.

    python benchmarks/queue_cost.py

Each row is a training step with one wait more against the same step without it: the difference is
the cost of that wait. The two are timed in turn, several times, and the medians are compared.
Needs torch and CUDA.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

ROUNDS = 31
STEPS = 10
SMALL_OPERATIONS = (0, 1, 2, 4, 8, 16, 32, 64)
Step = Callable[[], None]


def _per_step(step: Step) -> float:
    """Return the seconds of one step, the device's work included."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / STEPS


def _cost(without: Step, with_it: Step) -> tuple[float, list[float]]:
    """Return the median time of a step without a wait and the quartiles of what the wait adds.

    All in microseconds.
    """
    for _ in range(3):  # warm up
        _per_step(without), _per_step(with_it)
    pairs = [(_per_step(without), _per_step(with_it)) for _ in range(ROUNDS)]
    base = statistics.median(one for one, _ in pairs)
    added = statistics.quantiles((1e6 * (other - one) for one, other in pairs), n=4)
    return base * 1e6, added


class Training:
    """A transformer's training step on made-up data, with an optimizer and a gradient scaler."""

    def __init__(self, optimizer: str, *, width: int = 512, layers: int = 6) -> None:
        layer = nn.TransformerEncoderLayer(width, 8, batch_first=True)
        self.model = nn.TransformerEncoder(layer, layers).cuda()
        kind = torch.optim.SGD if optimizer.startswith("SGD") else torch.optim.AdamW
        fused = True if optimizer.endswith("fused") else None
        self.optimizer = kind(self.model.parameters(), lr=1e-4, fused=fused)
        self.scaler = torch.amp.GradScaler("cuda")
        self.data = torch.randn(48, 256, width, device="cuda")
        self.small = torch.randn(256, 256, device="cuda")

    def loss(self) -> Tensor:
        """Return the loss of a forward pass in half precision."""
        with torch.autocast("cuda", torch.float16):
            made: Tensor = self.model(self.data)
            return made.float().square().mean()

    def step(self, *reads: str, scaled: bool = True) -> None:
        """Take a step that reads a number at each of the places that ``reads`` names."""
        loss = self.loss()
        if "before backward" in reads:
            loss.item()
        self.optimizer.zero_grad()
        (self.scaler.scale(loss) if scaled else loss).backward()  # type: ignore[no-untyped-call]
        if "clip" in reads or "read of the norm" in reads:
            if scaled:
                self.scaler.unscale_(self.optimizer)
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            if "read of the norm" in reads:
                norm.item()
        if scaled:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if "after the step" in reads:
            loss.item()

    def behind(self, operations: int, work: Callable[[], object], *, again: bool) -> None:
        """Wait behind a forward pass, queue operations, and wait again if ``again`` is true."""
        loss = self.loss()
        loss.item()
        for _ in range(operations):
            work()
        if again:
            loss.item()

    def of_one(self) -> object:
        """Queue one small operation."""
        return self.small.mul_(1.0)


def _rows() -> Iterator[tuple[str, Step, Step]]:
    training = Training("AdamW")
    for number in SMALL_OPERATIONS:
        yield (
            f"behind a wait and {number} small operations",
            lambda n=number: training.behind(n, training.of_one, again=False),  # type: ignore[misc]
            lambda n=number: training.behind(n, training.of_one, again=True),  # type: ignore[misc]
        )
    yield (
        "behind a wait and a forward pass",
        lambda: training.behind(1, training.loss, again=False),
        lambda: training.behind(1, training.loss, again=True),
    )
    for name in ("AdamW", "AdamW fused", "SGD"):
        for scaled in (True, False):
            yield from _of_training(name, scaled=scaled)


def _of_training(name: str, *, scaled: bool) -> Iterator[tuple[str, Step, Step]]:
    one = Training(name)
    title = f"{name}, {'GradScaler' if scaled else 'no scaler'}"
    for place in ("before backward", "after the step"):
        yield (
            f"{title}: loss.item() {place}",
            lambda: one.step(scaled=scaled),
            lambda p=place: one.step(p, scaled=scaled),  # type: ignore[misc]
        )
    yield (
        f"{title}: norm.item() in front of the step",
        lambda: one.step("clip", scaled=scaled),
        lambda: one.step("read of the norm", scaled=scaled),
    )


def main() -> int:
    """Print a row for each place of a wait; returns the exit status."""
    if not torch.cuda.is_available():
        print("queue_cost: CUDA is not available", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"{'wait':60} {'step, us':>10}   the wait adds, us: quartiles")
    for name, without, with_it in _rows():
        base, added = _cost(without, with_it)
        print(f"{name:60} {base:10.0f}", *(f"{one:9.0f}" for one in added), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
