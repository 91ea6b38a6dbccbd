"""Checks for infinities and NaNs in a loop become one check, or one read of all flags."""

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
    "flags of some, told once": (
        """
        def check(model: nn.Module):
            for name, p in model.named_parameters():
                if p.grad is None:
                    continue
                if torch.isnan(p.grad).any() or torch.isinf(p.grad).any():
                    raise ValueError("not finite")  # at the first
        """,
        """
        def check(model: nn.Module):
            flags = [torch.isnan(p.grad).any() | torch.isinf(p.grad).any() for name, p in model.named_parameters() if p.grad is not None]
            if flags and torch.stack(flags).any().item():
                raise ValueError("not finite")  # at the first
        """,
    ),
    "a flag of Python's": (
        """
        def check(tensors: list[Tensor]):
            flags = False
            for t in tensors:
                if not t.isfinite().all():
                    flags = True
                    break
            return flags
        """,
        """
        def check(tensors: list[Tensor]):
            flags = False
            nonfinite = [t.isfinite().all().logical_not() for t in tensors]
            if nonfinite and torch.stack(nonfinite).any().item():
                flags = True
            return flags
        """,
    ),
    "which one it was": (
        """
        def check(model: nn.Module, strict: bool):
            found = False
            for name, p in model.named_parameters():
                if torch.isnan(p.grad).any():
                    logging.error(f"{name} has NaNs")  # each of them
                    found = True
                    if strict:
                        raise ValueError(name)
            return found
        """,
        """
        def check(model: nn.Module, strict: bool):
            found = False
            rounds = list(model.named_parameters())
            flags = [torch.isnan(p.grad).any() for name, p in rounds]
            for (name, p), hit in zip(rounds, torch.stack(flags).tolist() if flags else []):
                if hit:
                    logging.error(f"{name} has NaNs")  # each of them
                    found = True
                    if strict:
                        raise ValueError(name)
            return found
        """,
    ),
    "the number of hits": (
        """
        def check(tensors: list[Tensor]):
            hits = 0
            for t in tensors:
                if t is None:
                    continue
                if torch.isnan(t).any():
                    hits += 1
            return hits
        """,
        """
        def check(tensors: list[Tensor]):
            hits = 0
            rounds = [t for t in tensors if t is not None]
            flags = [torch.isnan(t).any() for t in rounds]
            for t, hit in zip(rounds, torch.stack(flags).tolist() if flags else []):
                if hit:
                    hits += 1
            return hits
        """,
    ),
}
REFUSED = {
    "more rounds than fit into memory": """
        def check(batches):
            hits = 0
            for x in batches:
                if torch.isnan(x).any():
                    hits += 1
            return hits
        """,
    "a tensor is changed where one is found": """
        def check(tensors: list[Tensor], grads: list[Tensor]):
            for t in tensors:
                if torch.isnan(t).any():
                    grads[0].zero_()
        """,
    "the list grows by what is found": """
        def check(tensors: list[Tensor]):
            for t in tensors:
                if torch.isnan(t).any():
                    tensors.append(t.nan_to_num())
        """,
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
    "read behind the loop": """
        def check(tensors: list[Tensor]):
            for t in tensors:
                if torch.isnan(t).any():
                    break
            return t
        """,
}


@pytest.mark.parametrize(("before", "after"), FIXED.values(), ids=FIXED)
def test_it_becomes(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF203")


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_it_stays(code: str) -> None:
    check_fix(code, "", UNSAFE, code="TPF203")
