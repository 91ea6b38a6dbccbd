"""Loops over parameters become foreach operations, and norms of norms."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from fixing import UNSAFE, check_fix, outcome
from linting import PRELUDE

FOREACH = {
    "gradients of some": (
        """
        def scale(model: nn.Module, c: float):
            # divided once
            for p in model.parameters():
                if p.grad is None:
                    continue
                p.grad.div_(c)  # in place
        """,
        """
        def scale(model: nn.Module, c: float):
            # divided once
            # in place
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            if grads:
                torch._foreach_div_(grads, c)
        """,
    ),
    "two lists": (
        """
        @torch.no_grad()
        def step(params: list[nn.Parameter], lr: float):
            for p in params:
                p.add_(p.grad, alpha=-lr)
        """,
        """
        @torch.no_grad()
        def step(params: list[nn.Parameter], lr: float):
            if params:
                torch._foreach_add_(params, [p.grad for p in params], alpha=-lr)
        """,
    ),
    "an average that moves": (
        """
        class Ema(nn.Module):
            @torch.no_grad()
            def update(self, model: nn.Module, decay: float):
                for i, p in enumerate(model.parameters()):
                    p.data.mul_(decay).add_(p.grad, alpha=1 - decay)
        """,
        """
        class Ema(nn.Module):
            @torch.no_grad()
            def update(self, model: nn.Module, decay: float):
                tensors = [p.data for i, p in enumerate(model.parameters())]
                if tensors:
                    torch._foreach_mul_(tensors, decay)
                    torch._foreach_add_(tensors, [p.grad for i, p in enumerate(model.parameters())], alpha=1 - decay)
        """,
    ),
    "an augmented assignment": (
        """
        def scale(model: nn.Module, c: float):
            for p in model.parameters():
                if p.grad is not None:
                    p.grad *= c
        """,
        """
        def scale(model: nn.Module, c: float):
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            if grads:
                torch._foreach_mul_(grads, c)
        """,
    ),
    "between two bounds": (
        """
        def clip(params: list[nn.Parameter], c: float):
            for p in params:
                p.data.clamp_(min=-c, max=c)
        """,
        """
        def clip(params: list[nn.Parameter], c: float):
            tensors = [p.data for p in params]
            if tensors:
                torch._foreach_clamp_min_(tensors, -c)
                torch._foreach_clamp_max_(tensors, c)
        """,
    ),
    "a name that is bound again before it is read": (
        """
        def scale(model: nn.Module, c: float, batches: list[Tensor]):
            for batch in batches:
                p = model(batch)
                print(p.shape)
                for p in model.parameters():
                    if p.grad is not None:
                        p.grad *= c
        """,
        """
        def scale(model: nn.Module, c: float, batches: list[Tensor]):
            for batch in batches:
                p = model(batch)
                print(p.shape)
                grads = [p.grad for p in model.parameters() if p.grad is not None]
                if grads:
                    torch._foreach_mul_(grads, c)
        """,
    ),
    "the entries of another state dict": (
        """
        class Ema(nn.Module):
            @torch.no_grad()
            def update(self, model: nn.Module, d: float):
                state = model.state_dict()
                for k, v in self.module.state_dict().items():
                    if v.dtype.is_floating_point:
                        v *= d
                        v += (1 - d) * state[k].detach()
        """,
        """
        class Ema(nn.Module):
            @torch.no_grad()
            def update(self, model: nn.Module, d: float):
                state = model.state_dict()
                tensors = [v for k, v in self.module.state_dict().items() if v.dtype.is_floating_point]
                if tensors:
                    torch._foreach_mul_(tensors, d)
                    torch._foreach_add_(
                        tensors,
                        [state[k].detach() for k, v in self.module.state_dict().items() if v.dtype.is_floating_point],
                        alpha=1 - d,
                    )
        """,
    ),
}
FOREACH_REFUSED = {
    "a generator is gone through once": """
        @torch.no_grad()
        def step(params: "Iterable[nn.Parameter]", lr: float):
            for p in params:
                p.add_(p.grad, alpha=-lr)
        """,
    "another number for each": """
        @torch.no_grad()
        def step(params: list[nn.Parameter], lr: list[float]):
            for i, p in enumerate(params):
                p.mul_(lr[i])
        """,
    "work that has no foreach form": """
        @torch.no_grad()
        def step(params: list[nn.Parameter], lr: float):
            for p in params:
                p.mul_(lr)
                print(p.shape)
        """,
    "a parameter is read behind the loop": """
        @torch.no_grad()
        def step(params: list[nn.Parameter], lr: float):
            for p in params:
                p.mul_(lr)
            return p
        """,
    "a parameter is read in the next round": """
        def scale(model: nn.Module, c: float, batches: list[Tensor]):
            p = None
            for batch in batches:
                print(p)
                for p in model.parameters():
                    if p.grad is not None:
                        p.grad *= c
        """,
    "a factor for each": """
        @torch.no_grad()
        def step(params: dict[str, nn.Parameter], rates: dict[str, float], more: dict[str, Tensor]):
            for k, p in params.items():
                p += rates[k] * more[k]
        """,
    "a branch for some": """
        def add(params: list[nn.Parameter], more: list[Tensor]):
            for p, x in zip(params, more):
                if p.grad is None:
                    p.grad = x
                else:
                    p.grad += x
        """,
}
NORMS = {
    "its square root": (
        """
        def norm(params: list[nn.Parameter]):
            total = 0.0  # a number
            for p in params:
                if p.grad is not None:
                    one = p.grad.detach().data.norm(2)  # of one
                    total += one.item() ** 2
            return_value = total
            total = total ** 0.5
            return total
        """,
        "",
    ),
    "of some, with comments": (
        """
        def norm(params: list[nn.Parameter]):
            total = 0.0  # a number
            for p in params:
                if p.grad is not None:
                    one = p.grad.detach().data.norm(2)  # of one
                    total += one.item() ** 2
            total = total ** 0.5
            return total
        """,
        """
        def norm(params: list[nn.Parameter]):
            # a number
            # of one
            total = 0.0
            tensors = [p.grad.detach().data for p in params if p.grad is not None]
            if tensors:
                norms = torch._foreach_norm(tensors)
                norms = torch.stack([norm.to(norms[0].device) for norm in norms])
                total = torch.linalg.vector_norm(norms.double()).item()
            return total
        """,
    ),
    "under a key": (
        """
        def norms(modules: dict[str, nn.Module]):
            totals = {}
            for key in modules:
                totals[key] = 0
                params = [p for p in modules[key].parameters() if p.grad is not None]
                for p in params:
                    one = p.grad.detach().norm(2)
                    totals[key] += one.item() ** 2
                totals[key] = totals[key] ** 0.5
            return totals
        """,
        """
        def norms(modules: dict[str, nn.Module]):
            totals = {}
            for key in modules:
                totals[key] = 0.0
                params = [p for p in modules[key].parameters() if p.grad is not None]
                tensors = [p.grad.detach() for p in params]
                if tensors:
                    norms = torch._foreach_norm(tensors)
                    norms = torch.stack([norm.to(norms[0].device) for norm in norms])
                    totals[key] = torch.linalg.vector_norm(norms.double()).item()
            return totals
        """,
    ),
    "under a key that the loop binds": (
        """
        def norms(modules: dict[str, nn.Module], totals: dict[str, float]):
            totals["x"] = 0.0
            for key, p in modules.named_parameters():
                totals[key] += p.grad.norm(2).item() ** 2
            totals["x"] = totals["x"] ** 0.5
        """,
        "",
    ),
    "the total is read before the loop": (
        """
        def norm(params: list[nn.Parameter]):
            total = 0.0
            start = total + 1
            for p in params:
                total += p.grad.norm(2).item() ** 2
            total = total ** 0.5
            return total, start
        """,
        "",
    ),
    "a sum of squares": (
        """
        def norm(model: nn.Module):
            total = sum(p.grad.data.norm(p=2).pow(2) for p in model.parameters() if p.grad is not None)
            return total.sqrt()
        """,
        """
        def norm(model: nn.Module):
            grads = [p.grad.data for p in model.parameters() if p.grad is not None]
            total = torch.stack(torch._foreach_norm(grads)).pow(2).sum() if grads else 0
            return total.sqrt()
        """,
    ),
    "a sum of norms along a dimension": (
        """
        def norm(params: list[nn.Parameter]):
            total = sum(p.grad.norm(dim=1) for p in params)
            return total
        """,
        "",
    ),
    "a matrix norm": (
        """
        def norm(params: list[nn.Parameter]):
            total = 0.0
            for p in params:
                total += torch.linalg.norm(p.grad, 2).item() ** 2
            total = total ** 0.5
            return total
        """,
        "",
    ),
    "left a tensor": (
        """
        def norm(params: list[nn.Parameter], n: float):
            total = 0.0
            for p in params:
                total += torch.norm(p.grad, n) ** n
            total = total ** (1 / n)
            return total
        """,
        """
        def norm(params: list[nn.Parameter], n: float):
            total = 0.0
            tensors = [p.grad for p in params]
            if tensors:
                norms = torch._foreach_norm(tensors, n)
                norms = torch.stack([norm.to(norms[0].device) for norm in norms])
                total = torch.linalg.vector_norm(norms, n)
            return total
        """,
    ),
    "another order than the root's": (
        """
        def norm(params: list[nn.Parameter]):
            total = 0.0
            for p in params:
                one = p.grad.norm(3)
                total += one.item() ** 3
            total = total ** 0.5
            return total
        """,
        "",
    ),
}


@pytest.mark.parametrize(("before", "after"), FOREACH.values(), ids=FOREACH)
def test_a_loop_becomes_foreach(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF204")


@pytest.mark.parametrize("code", FOREACH_REFUSED.values(), ids=FOREACH_REFUSED)
def test_a_loop_stays(code: str) -> None:
    check_fix(code, "", UNSAFE, code="TPF204")


@pytest.mark.parametrize(("before", "after"), NORMS.values(), ids=NORMS)
def test_norms_become_one(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF204")


def test_a_norm_is_that_of_python() -> None:
    torch = pytest.importorskip("torch")
    text = PRELUDE + textwrap.dedent("""
        def norm(params: list[nn.Parameter]):
            total = 0.0
            for p in params:
                total += p.grad.norm(2).item() ** 2
            total = total ** 0.5
            return total
    """)
    done = outcome(text, UNSAFE)
    assert done.changes
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        params = [torch.nn.Parameter(torch.zeros(4, dtype=dtype)) for _ in range(9)]
        for scale in (0.001, 1, 30_000):  # the norm of all is too large for float16
            for p in params:
                p.grad = torch.full_like(p, scale)
            told = []
            for code in (text, done.text):
                names: dict[str, Any] = {}
                exec(code, names)
                told.append(names["norm"](params))
                assert names["norm"]([]) == 0.0
            assert type(told[0]) is type(told[1])
            assert told[1] == pytest.approx(told[0], rel=1e-12)
