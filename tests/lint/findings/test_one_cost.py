"""One statement, one code, one cost: what a finding is called does not depend on who asks."""

from __future__ import annotations

import pytest
from linting import HOT, program

from flake8_torchperf.linter import lint

# A program, with the code and the cost of its only finding.
COSTS = {
    "a total over batches": (
        """
        def train(model, loader, opt):
            total = 0.0
            for x in loader:
                loss = model(x).sum()
                loss.backward()
                opt.step()
                total += loss.item()
        """,
        "TPF206",
        "per step",
    ),
    "a total over rows": (
        """
        def train_step(x: Tensor):
            total = 0.0
            for i in range(len(x)):
                total += x[i].item()
        """,
        "TPF206",
        "per element",
    ),
    "a total over parameters": (
        """
        def train_step(model: nn.Module):
            total = 0.0
            for p in model.parameters():
                total += p.grad.norm().item()
        """,
        "TPF206",
        "per element",
    ),
    "a read over parameters": (
        """
        def train_step(model: nn.Module):
            for p in model.parameters():
                print(p.grad.max().item())
        """,
        "TPF101",
        "per element",
    ),
    "an update that reads": (
        """
        def train_step(ema_model: nn.Module, model: nn.Module, d: float):
            for ema, p in zip(ema_model.parameters(), model.parameters()):
                ema.mul_(d).add_(float(p), alpha=1 - d)
        """,
        "TPF101",
        "per element",
    ),
    "operations in one another": (
        """
        def train_step(ema_model: nn.Module, model: nn.Module, d: float):
            for ema, p in zip(ema_model.parameters(), model.parameters()):
                ema.mul_(d).add_(p, alpha=1 - d)
        """,
        "TPF204",
        "per element",
    ),
}


@pytest.mark.parametrize(("code", "rule", "cost"), COSTS.values(), ids=COSTS)
def test_a_statement_has_one_finding_with_one_cost(code: str, rule: str, cost: str) -> None:
    (found,) = [one for one in lint(program(code), "model.py", HOT) if one.code not in LOOPS]
    assert (found.code, found.site.heat.cost.value) == (rule, cost)
    assert cost in found.message


# What is said of a loop itself, beside what stands in it.
LOOPS = ("TPF201", "TPF202")
CONTRACTS = {
    "no loop": """
        def check(x: Tensor):{contract}
            if torch.isinf(x).any():
                return 1
            if x.sum() > 0:
                return 2
        """,
    "a loop": """
        def check_step(xs: list[Tensor]):{contract}
            for x in xs:
                if torch.isinf(x).any():
                    return 1
        """,
}


@pytest.mark.parametrize("code", CONTRACTS.values(), ids=CONTRACTS)
def test_a_contract_changes_no_code(code: str) -> None:
    plain, promised = (
        lint(program(code.format(contract=comment)), "model.py", HOT)
        for comment in ("", "  # torchperf: sync-free")
    )
    assert plain
    assert [(f.line, f.code) for f in promised] == [(f.line, f.code) for f in plain]
    assert all("on the way from" in f.message for f in promised)
