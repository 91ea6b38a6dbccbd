"""Reads through a mask that keep their shape."""

from __future__ import annotations

import pytest
from fixing import SHOWN, UNSAFE, check_fix

CHANGED = [
    pytest.param(
        """
        def f(x: Tensor):
            known = ~torch.isnan(x)
            total = x[known].sum() / x[known].numel()
            part = 2 * x[known].mean() + torch.mean(x[(x > 0)])
            mean = x[known].mean() + 1
            total = total.exp()
            return total + part + mean, (x == 1)[x > 0].any(), x[x > 0].sum(0)
        """,
        """
        def f(x: Tensor):
            known = ~torch.isnan(x)
            total = torch.where(known, x, 0).sum() / known.sum()
            part = 2 * (torch.where(known, x, 0).sum() / known.sum()) + torch.where(x > 0, x, 0).sum() / (x > 0).sum()
            mean = torch.where(known, x, 0).sum() / known.sum() + 1
            total = total.exp()
            return total + part + mean, (x == 1)[x > 0].any(), x[x > 0].sum(0)
        """,
        id="reductions of all that is selected",
    ),
    pytest.param(
        """
        def f(x: Tensor, y: Tensor, mask: Tensor):
            positive = x > 0
            total = y.masked_select(mask.bool()).sum()
            y = y + 1
            total = total + torch.masked_select(y + 1, mask).sum()
            x[positive] = 2 * x.masked_select(positive)
            return total / torch.masked_select(x, positive).mean()
        """,
        """
        def f(x: Tensor, y: Tensor, mask: Tensor):
            positive = x > 0
            total = y.masked_select(mask.bool()).sum()
            y = y + 1
            total = total + torch.where(mask, y + 1, 0).sum()
            x.copy_(torch.where(positive, 2 * x, x))
            return total / (torch.where(positive, x, 0).sum() / positive.sum())
        """,
        id="masked_select",
    ),
    pytest.param(
        """
        def f(x: Tensor, y: Tensor, eps: float):
            good = y == 0
            good = y > eps
            x[good] = 1 - (x[good] / y[good]).sqrt()  # why
            x[~good] /= torch.abs(y[~good]) + 1
            x[x > 1] = torch.zeros_like(x[x > 1])
            return x
        """,
        """
        def f(x: Tensor, y: Tensor, eps: float):
            good = y == 0
            good = y > eps
            x.copy_(torch.where(good, 1 - (x / y).sqrt(), x))  # why
            x.copy_(torch.where(~good, x / (torch.abs(y) + 1), x))
            x.copy_(torch.where(x > 1, torch.zeros_like(x), x))
            return x
        """,
        id="assignments through one mask",
    ),
]

KEPT = [
    pytest.param(
        """
        def f(x: Tensor, mask: Tensor):
            return x[mask.bool()]
        """,
        id="the selection itself",
    ),
    pytest.param(
        """
        def f(x: Tensor, y: Tensor, w: Tensor):
            m = x > 0
            n = y > 0
            x[m] = w * y[n]
            return x
        """,
        id="more than the elements that one mask selects",
    ),
    pytest.param(
        """
        def f(x: Tensor, g):
            return g(x)[g(x) > 0].mean() + x[x > 0].max()
        """,
        id="what would be computed twice, what has no neutral element",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_shapes_are_kept(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF402")


@pytest.mark.parametrize("before", KEPT)
def test_other_reads_stay(before: str) -> None:
    check_fix(before, "", SHOWN, code="TPF402")


def test_a_mask_of_unknown_shape_is_shown_only() -> None:
    before = "def f(x: Tensor, mask: Tensor):\n    m = mask > 0\n    return x[m].sum()\n"
    after = before.replace("x[m]", "torch.where(m, x, 0)")
    check_fix(before, "", UNSAFE, code="TPF402")
    check_fix(before, after, SHOWN, code="TPF402")


def test_a_mean_of_masked_select_may_have_a_smaller_mask() -> None:
    before = "def f(x: Tensor, mask: Tensor):\n    return torch.masked_select(x, mask).mean()\n"
    after = (
        "def f(x: Tensor, mask: Tensor):\n    return torch.where(mask, x, 0).sum() / mask.sum()\n"
    )
    check_fix(before, "", UNSAFE)
    check_fix(before, after, SHOWN)


@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((4,), (3, 4)), ((3, 1), (1, 4))])
def test_where_takes_what_masked_select_takes(shapes: tuple[tuple[int, ...], ...]) -> None:
    torch = pytest.importorskip("torch")
    x, mask = torch.randint(5, shapes[0]), torch.randn(shapes[1]) > 0
    assert torch.where(mask, x, 0).sum() == torch.masked_select(x, mask).sum()
