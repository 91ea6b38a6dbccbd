"""Running totals that stay on the device until the loop is over."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

CHANGED = [
    pytest.param(
        """
        def f(model, loader: torch.utils.data.DataLoader):
            correct = 0
            loss_sum: float = 0.0
            with torch.no_grad():
                for x, y in loader:
                    out = model(x)
                    loss = F.cross_entropy(out, y)
                    loss_sum += float(loss.detach()) * len(x)
                    correct += (out.argmax(1) == y).sum().item()

            # all of them
            return loss_sum / len(loader), correct
        """,
        """
        def f(model, loader: torch.utils.data.DataLoader):
            correct = 0
            loss_sum: float = 0.0
            with torch.no_grad():
                for x, y in loader:
                    out = model(x)
                    loss = F.cross_entropy(out, y)
                    loss_sum += loss.detach() * len(x)
                    correct += (out.argmax(1) == y).sum().detach()
            correct = int(correct)
            loss_sum = float(loss_sum)

            # all of them
            return loss_sum / len(loader), correct
        """,
        id="behind the with",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor]):
            total = 0.0
            for epoch in range(3):
                for i, loss in enumerate(losses):
                    total += loss.mean().item() + 1
                    if i % 100 == 0:
                        print(epoch, total / 100)
                        total = 0.0
            total += 1
            print(total)
        """,
        """
        def f(losses: list[Tensor]):
            total = 0.0
            for epoch in range(3):
                for i, loss in enumerate(losses):
                    total += loss.mean().detach() + 1
                    if i % 100 == 0:
                        print(epoch, float(total) / 100)
                        total = 0.0
            total = float(total)
            total += 1
            print(total)
        """,
        id="read in a branch",
    ),
]

KEPT = [
    pytest.param(
        """
        def f(losses: list[Tensor], bar):
            total = 0.0
            for loss in losses:
                total += loss.mean().item()
                bar.set_postfix(total)
            return total
        """,
        id="read in each round",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor]):
            total = 0.0
            for loss in losses:
                total += math.exp(loss.mean().item())
            return total
        """,
        id="more than arithmetic",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor], total):
            for loss in losses:
                total += loss.mean().item()
            return total
        """,
        id="a start of which nothing is known",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor]):
            total = 0
            for loss in losses:
                total += int(loss.mean())
            return total
        """,
        id="truncated in each round",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_total_stays_on_the_device(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF206")


@pytest.mark.parametrize("before", KEPT)
def test_other_totals_stay(before: str) -> None:
    check_fix(before, "", UNSAFE, code="TPF206")
