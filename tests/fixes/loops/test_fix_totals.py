"""Running totals that stay on the device until the loop is over."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from fixing import UNSAFE, check_fix, outcome
from linting import PRELUDE

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
                    loss_sum += loss.detach().double() * len(x)
                    correct += (out.argmax(1) == y).sum().detach().long()
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
                    total += loss.mean().detach().double() + 1
                    if i % 100 == 0:
                        print(epoch, float(total) / 100)
                        total = 0.0
            total = float(total)
            total += 1
            print(total)
        """,
        id="read in a branch",
    ),
    pytest.param(
        """
        def f(rows: list[Tensor], weights: list[float]):
            half = 0
            for row in rows:
                half += (row > 0).sum().item() / 2
            kept = 0
            for row in rows:
                kept += (row > 0).sum().item() * len(row)
            return half, kept
        """,
        """
        def f(rows: list[Tensor], weights: list[float]):
            half = 0
            for row in rows:
                half += (row > 0).sum().detach().double() / 2
            half = float(half)
            kept = 0
            for row in rows:
                kept += (row > 0).sum().detach().long() * len(row)
            kept = int(kept)
            return half, kept
        """,
        id="counts in arithmetic",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor]):
            total = 0.0
            for loss in losses:
                total += loss.to("mps").item()
            return total
        """,
        """
        def f(losses: list[Tensor]):
            total = 0.0
            for loss in losses:
                total += loss.to("mps").detach().float()
            total = float(total)
            return total
        """,
        id="on MPS",
    ),
    pytest.param(
        """
        def f(model, optimizer, batches: list[Tensor]):
            sums = {"loss": 0.0, "hits": 0, "rounds": 0}
            metrics = dict()
            metrics["norm"] = 0
            for batch in batches:
                loss = model(batch)
                loss.backward()
                metrics["norm"] += loss.item()
                sums["loss"] += batch.mean().item() * len(batch)
                sums["hits"] += (batch > 0).sum().item()
                sums["rounds"] += 1
            return sums, metrics
        """,
        """
        def f(model, optimizer, batches: list[Tensor]):
            sums = {"loss": 0.0, "hits": 0, "rounds": 0}
            metrics = dict()
            metrics["norm"] = 0
            for batch in batches:
                loss = model(batch)
                loss.backward()
                metrics["norm"] += loss.detach().double()
                sums["loss"] += batch.mean().detach().double() * len(batch)
                sums["hits"] += (batch > 0).sum().detach().long()
                sums["rounds"] += 1
            sums["hits"] = int(sums["hits"])
            sums["loss"] = float(sums["loss"])
            metrics["norm"] = float(metrics["norm"])
            return sums, metrics
        """,
        id="entries of a dict, and what goes backward",
    ),
]

KEPT = [
    pytest.param(
        """
        def f(losses: list[Tensor]):
            total = 0.0
            try:
                for loss in losses:
                    total += loss.mean().item()
                print(total)
            except KeyboardInterrupt:
                pass
            finally:
                print(total)
        """,
        id="read where the loop may have been left by an exception",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor], log):
            sums = {"loss": 0.0}
            for loss in losses:
                sums["loss"] += loss.mean().item()
                log(sums)
            return sums
        """,
        id="a dict that others see in each round",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor], key: str):
            sums = {"loss": 0.0}
            for loss in losses:
                sums["loss"] += loss.mean().item()
                sums[key] = 1
            return sums
        """,
        id="a key that may be the same",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor]):
            sums = {"loss": 0.0}
            kept = sums
            for loss in losses:
                sums["loss"] += loss.mean().item()
                print(kept)
            return sums
        """,
        id="a dict with two names",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor]):
            sums = collections.defaultdict(float)
            for loss in losses:
                sums["loss"] += loss.mean().item()
            return sums
        """,
        id="an entry that is there only after a round",
    ),
    pytest.param(
        """
        def f(losses: list[Tensor]):
            sums = {"loss": 0.0}
            for loss in losses:
                sums["loss"] += loss.mean().item()
                if sums["loss"] > 3:
                    break
            return sums
        """,
        id="an entry that is read in the loop",
    ),
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
    pytest.param(
        """
        def f(rows: list[Tensor], weight):
            total = 0
            for row in rows:
                total += (row > 0).sum().item() * weight
            return total
        """,
        id="a count times what may be a fraction",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_total_stays_on_the_device(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF206")


@pytest.mark.parametrize("before", KEPT)
def test_other_totals_stay(before: str) -> None:
    check_fix(before, "", UNSAFE, code="TPF206")


def test_totals_are_those_of_python() -> None:
    torch = pytest.importorskip("torch")
    text = PRELUDE + textwrap.dedent("""
        def f(losses: list[Tensor]):
            total = 0.0
            for loss in losses:
                total += loss.item()
            return total
    """)
    done = outcome(text, UNSAFE, code="TPF206")
    assert done.changes
    ones = [torch.ones((), dtype=torch.bfloat16)] * 1000
    large = [torch.tensor(16_777_216), torch.tensor(1)]
    thirds = [torch.tensor(1 / 3)] * 100
    for values in (ones, large, thirds, []):
        told = []
        for code in (text, done.text):
            names: dict[str, Any] = {}
            exec(code, names)
            told.append(names["f"](values))
        assert told[0] == told[1]
        assert type(told[0]) is type(told[1])
