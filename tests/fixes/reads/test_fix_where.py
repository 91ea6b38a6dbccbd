"""Choices of one value by one tensor, made on the device."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

CHANGED = [
    pytest.param(
        """
        def f(x: Tensor, y: Tensor):
            # first
            if x.mean() > 0:  # why
                z = x * 2  # one
            else:
                # because
                z = y.clamp(min=0)  # other
            return z + (x if (x < 0).any() else y)
        """,
        """
        def f(x: Tensor, y: Tensor):
            # first
            # why
            # because
            # other
            z = torch.where(x.mean() > 0, x * 2, y.clamp(min=0))  # one
            return z + torch.where((x < 0).any(), x, y)
        """,
        id="both sides, with comments",
    ),
    pytest.param(
        """
        def f(x: Tensor, limit: float):
            norm = x.norm()
            y = x / 2
            if not norm > limit: y = x
            return 0.0 if (x < 0).any() else y
        """,
        """
        def f(x: Tensor, limit: float):
            norm = x.norm()
            y = x / 2
            y = torch.where(norm > limit, y, x)
            return torch.where((x < 0).any(), 0.0, y)
        """,
        id="one side, negated, a number",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            return x if x.sum() else torch.zeros_like(x)
        """,
        """
        def f(x: Tensor):
            return torch.where(x.sum() != 0, x, torch.zeros_like(x))
        """,
        id="a condition that is no mask",
    ),
    pytest.param(
        """
        def f(pos, neg, scale: float):
            pred = pos + scale * (pos - neg)
            norm = torch.linalg.vector_norm(pred)
            if norm > scale:
                pred = pred * (scale / norm)
            return pred
        """,
        """
        def f(pos, neg, scale: float):
            pred = pos + scale * (pos - neg)
            norm = torch.linalg.vector_norm(pred)
            pred = torch.where(norm > scale, pred * (scale / norm), pred)
            return pred
        """,
        id="what a function of torch was given",
    ),
]

KEPT = [
    pytest.param(
        """
        def f(x: Tensor, sigma: Tensor):
            return x / sigma if sigma > 0 else x
        """,
        id="a condition that may have dimensions",
    ),
    pytest.param(
        """
        def f(p: Tensor, q: Tensor):
            kl = (p * (p / q).log()).sum()
            if not torch.isfinite(kl):
                kl = torch.zeros((), device=p.device)
            return kl
        """,
        id="a guard against non-finite values, which reach the gradients through torch.where",
    ),
    pytest.param(
        """
        def f(p: Tensor, q: Tensor):
            kl = (p / q).sum()
            bad = kl.isnan()
            if bad:
                kl = torch.zeros((), device=p.device)
            return kl if kl == kl else torch.ones((), device=p.device)
        """,
        id="a guard by name, and one without a name",
    ),
    pytest.param(
        """
        def f(x: Tensor, model):
            return model(x) if x.isnan().any() else x
        """,
        id="a side of which nothing is known",
    ),
    pytest.param(
        """
        def f(x: Tensor, y: Tensor):
            return x @ y if x.any() else x
        """,
        id="a side that is much work",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            n = 1 if x.any() else 0
            return n
        """,
        id="numbers",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            return torch.randn_like(x) if x.any() else x
        """,
        id="random numbers",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            if x.any():
                y = x + 1
            return y
        """,
        id="no value on the other side",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            if x.any():
                x = x + 1
                print("any")
            if x.all():
                x += 1
            return x
        """,
        id="more than a choice",
    ),
    pytest.param(
        """
        def f(x: Tensor, y: Tensor | None):
            return y if x.any() else x
        """,
        id="perhaps no tensor",
    ),
    pytest.param(
        """
        def f(x: Tensor, y=None):
            z = torch.abs(y)
            return y if x.any() else x
        """,
        id="left out by some",
    ),
    pytest.param(
        """
        def f(x: Tensor, n: int):
            if n:
                y = x
            elif x.any():
                y = x + 1
            else:
                y = x + 2
            return y
        """,
        id="elif",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_device_chooses(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE)


@pytest.mark.parametrize("before", KEPT)
def test_other_branches_stay(before: str) -> None:
    check_fix(before, "", UNSAFE)
