"""Python's reductions over tensors, done on the device."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

CHANGED = [
    pytest.param(
        """
        def f(a: Tensor, b: Tensor, n: int):
            return max(a.sum(), a.abs().sum()) + min(n / 2, a.norm()) + max(a.norm() - 1, 0)
        """,
        """
        def f(a: Tensor, b: Tensor, n: int):
            return torch.maximum(a.sum(), a.abs().sum()) + a.norm().clamp(max=n / 2) + (a.norm() - 1).clamp(min=0)
        """,
        id="of two",
    ),
    pytest.param(
        """
        def f(a: Tensor, b: Tensor):
            if any(a > b):
                return min(a * b)
            return all(a == b)
        """,
        """
        def f(a: Tensor, b: Tensor):
            if (a > b).any():
                return (a * b).min()
            return (a == b).all()
        """,
        id="of one tensor",
    ),
    pytest.param(
        """
        def f(a: Tensor, b: Tensor, tensors: list[Tensor]):
            norms = [t.norm() for t in tensors]
            return max(norms) - min(t.norm() for t in tensors) + max([a.norm(), b.norm()])
        """,
        """
        def f(a: Tensor, b: Tensor, tensors: list[Tensor]):
            norms = [t.norm() for t in tensors]
            return torch.stack(norms).max() - torch.stack([t.norm() for t in tensors]).min() + torch.stack([a.norm(), b.norm()]).max()
        """,
        id="of a list",
    ),
]

KEPT = [
    pytest.param(
        """
        def f(a: Tensor, b: Tensor):
            return max(a.sum(), b.sum())
        """,
        id="of two dtypes, of which the larger one's is kept",
    ),
    pytest.param(
        """
        def f(a: Tensor):
            return max((a > 0).sum(), 0.5)
        """,
        id="of an int and a fraction",
    ),
    pytest.param(
        """
        def f(tensors: list[Tensor]):
            return max(tensors, key=lambda t: t.sum())
        """,
        id="by a key",
    ),
    pytest.param(
        """
        def f(a: Tensor):
            return sorted(a), max(a, default=0)
        """,
        id="a list, a default",
    ),
    pytest.param(
        """
        def f(a: Tensor, g):
            return max(g(), a.sum())
        """,
        id="what is evaluated first",
    ),
    pytest.param(
        """
        def f(tensors: list[Tensor], g):
            return max(torch.abs(await g(t)) for t in tensors)
        """,
        id="a generator that waits",
    ),
    pytest.param(
        """
        def f(loss: Tensor, n: Tensor):
            return max([loss.mean(), n.sum()])
        """,
        id="a float and what may be a count",
    ),
    pytest.param(
        """
        from collections.abc import Iterable
        def f(norms: Iterable[Tensor], a: Tensor):
            return max(norms) + max([a.sum(), 0])
        """,
        id="no list, not all tensors",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_device_reduces(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF103")


@pytest.mark.parametrize("before", KEPT)
def test_other_reductions_stay(before: str) -> None:
    check_fix(before, "", UNSAFE, code="TPF103")
