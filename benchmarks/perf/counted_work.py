"""Work of torch's that is timed, uncounted and under each of the ways of counting it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from flake8_torchperf.runtime import DispatchCounter
from flake8_torchperf.runtime.workload.child_session import Session
from flake8_torchperf.runtime.workload.exchange import Plan

ELEMENTS = 4000


class BareDispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds one for each dispatch, as torch's documentation writes a mode."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and run."""
        self.count += 1
        return func(*args, **(kwargs or {}))


class BareFunction(TorchFunctionMode):
    """Adds one for each call of torch from Python."""

    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and run."""
        self.count += 1
        return func(*args, **(kwargs or {}))


def recorded(level: str) -> AbstractContextManager[Any]:
    """Return the recording that `torchperf run --save-profile` does around a workload."""
    folder = str(Path(__file__).parent)
    plan = Plan("work", (), False, (folder,), (), level, "", profile=True)
    return Session(plan).watching()


COLUMNS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "uncounted": nullcontext,
    "full": lambda: DispatchCounter("full"),
    "reads": lambda: DispatchCounter("reads"),
    "profile": lambda: recorded("reads"),
    "bare dispatch mode": BareDispatch,
    "bare function mode": BareFunction,
}


def scaler_loop() -> Callable[[], None]:
    """The worst case: an operation on one element each, nine dispatches an element."""
    grads, inv_scale = [torch.ones(ELEMENTS)], torch.tensor([1.0])

    def work() -> None:
        found_inf = torch.zeros(1)
        for grad in grads:
            for element in grad:
                if torch.isinf(element).any().item() or torch.isnan(element).any().item():
                    found_inf.data = torch.tensor([1.0])
                    break
                element.data *= inv_scale.item()

    return work


def training_step(widths: tuple[int, ...], steps: int, adam: bool) -> Callable[[], None]:
    """Steps of an MLP over batches of 64."""
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    kind = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=1e-3)
    images, labels = torch.randn(64, widths[0]), torch.randint(widths[-1], (64,))

    def work() -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return work


def matmul() -> Callable[[], None]:
    """Products of two 2048-square matrices."""
    left, right = torch.randn(2048, 2048), torch.randn(2048, 2048)

    def work() -> None:
        for _ in range(2):
            left @ right

    return work


# The limit applies to a step of the MLP of torch's quickstart tutorial; the two below it show how
# the ratio grows if a dispatch does almost no work.
WORKLOADS = {
    "scaler loop": scaler_loop(),
    "training step": training_step((784, 512, 512, 10), 20, adam=False),
    "  the same, Adam": training_step((784, 512, 512, 10), 10, adam=True),
    "  784-256-10": training_step((784, 256, 10), 40, adam=False),
    "  64-128-128-10": training_step((64, 128, 128, 10), 40, adam=False),
    "matmul 2048": matmul(),
}


def best_times(work: Callable[[], None], seconds: float) -> dict[str, float]:
    """Return the least processor time under each column."""
    best = dict.fromkeys(COLUMNS, float("inf"))
    work()
    end = perf_counter() + seconds
    rounds = 0
    while rounds < 3 or perf_counter() < end:
        rounds += 1
        for name, column in COLUMNS.items():
            with column():
                began = process_time()
                work()
                best[name] = min(best[name], process_time() - began)
    return best


def dispatches(work: Callable[[], None]) -> int:
    """Return the number of dispatches that the workload makes."""
    with DispatchCounter() as counter:
        work()
    return counter.evidence.totals.dispatches
