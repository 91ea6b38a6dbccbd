"""Checks for infinities and NaNs in a loop become one check."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

FIXED = {
    "unscaled at once, behind checks that raise": (
        """
        def unscale(grads: list[Tensor], found: Tensor, scale: Tensor):
            # all of them
            for grad in grads:
                if grad.is_sparse:
                    raise ValueError("sparse")  # no kernel for these
                if not torch.isfinite(grad).all().item():  # TPF203
                    found.data = torch.tensor([1.0])
                    break
                else:
                    grad.data.mul_(float(scale))
        """,
        """
        def unscale(grads: list[Tensor], found: Tensor, scale: Tensor):
            # all of them
            for grad in grads:
                if grad.is_sparse:
                    raise ValueError("sparse")  # no kernel for these
            tensors = [grad.data for grad in grads]
            if tensors:
                finite = torch.stack([torch.isfinite(t).all() for t in tensors]).all()
                found.data = torch.where(finite, found.data, 1.0)
                torch._foreach_mul_(tensors, scale.detach().reshape(()))
        """,
    ),
}
REFUSED = {
    "work beside the check": """
        def check(tensors: list[Tensor]):
            for t in tensors:
                if torch.isnan(t).any():
                    return True
                t.mul_(2)
            return False
        """,
    "NaNs are scaled on": """
        def unscale(grads: list[Tensor], found: Tensor, scale: Tensor):
            for grad in grads:
                if torch.isinf(grad).any().item():
                    found.fill_(1.0)
                else:
                    grad.mul_(scale.item())
        """,
    "another tensor is checked": """
        def unscale(grads: list[Tensor], found: Tensor, scale: Tensor, x: Tensor):
            for grad in grads:
                if not torch.isfinite(x * grad).all():
                    found.fill_(1.0)
                else:
                    grad.mul_(scale.item())
        """,
}


@pytest.mark.parametrize(("before", "after"), FIXED.values(), ids=FIXED)
def test_it_becomes(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF203")


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_it_stays(code: str) -> None:
    check_fix(code, "", UNSAFE, code="TPF203")
