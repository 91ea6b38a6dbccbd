"""Totals of losses on which the function that made them has run backward (TPF507)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import HOT, check, expected, program, table

from flake8_torchperf.linter import lint

STEP = """
from dataclasses import dataclass

@dataclass
class Out:
    loss: Tensor
    n: int = 0

def step(model, x, opt):
    loss = F.mse_loss(model(x), x)
    {backward}
    opt.step()
    return {result}

def train(model: nn.Module, loader, opt):
    total = 0
    kept = []
    for x in loader:
        {target} = step(model, x, opt)
        {use}
    return total, kept
"""
PLAIN = ("loss.backward()", "loss", "loss", "total += loss  # TPF507")
CASES = {
    "the loss itself": PLAIN,
    "kept in a list": (*PLAIN[:3], "kept.append(loss)  # TPF507"),
    "added": (*PLAIN[:3], "total = total + loss  # TPF507"),
    "in a dict": ("loss.backward()", '{"loss": loss}', "out", 'total += out["loss"]  # TPF507'),
    "in a dataclass": ("loss.backward()", "Out(loss)", "out", "total += out.loss  # TPF507"),
    "by its name": ("loss.backward()", "Out(loss=loss)", "out", "total += out.loss  # TPF507"),
    "one of several": ("loss.backward()", "x, loss", "y, loss", "total += loss  # TPF507"),
    "scaled": ("scaler.scale(loss).backward()", "loss", "loss", "total += loss  # TPF507"),
    "by a trainer": ("accelerator.backward(loss)", "loss", "loss", "total += loss  # TPF507"),
    "detached there": ("loss.backward()", "loss.detach()", "loss", "total += loss"),
    "detached here": ("loss.backward()", "loss", "loss", "total += loss.detach()"),
    "not that one": ("loss.backward()", "x, loss", "y, loss", "total += y"),
    "another key": ("loss.backward()", '{"loss": loss, "x": x}', "out", 'total += out["x"]'),
    "kept for later": ("loss.backward(retain_graph=True)", "loss", "loss", "total += loss"),
    "no backward": ("loss.mean()", "loss", "loss", "total += loss"),
    "perhaps": ("if opt: loss.backward()", "loss", "loss", "total += loss"),
}


@pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
def test_losses_handed_back(case: tuple[str, str, str, str]) -> None:
    backward, result, target, use = case
    code = STEP.format(backward=backward, result=result, target=target, use=use)
    check(code, HOT, only=frozenset(("TPF507",)))


METHODS = {
    "a method": """
        class Trainer:
            def step(self, x):
                loss = self.model(x).mean()
                loss.backward()
                self.opt.step()
                return loss
            def train(self, loader):
                for x in loader:
                    loss = self.step(x)
                    self.total += loss  # TPF507
        """,
}


@table(METHODS)
def test_losses_handed_back_by_methods(code: str) -> None:
    check(code, HOT, only=frozenset(("TPF507",)))


def test_losses_from_another_module(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    step = program(
        """
        def step(model, x, opt):
            out = model(x)
            out.loss.backward()
            opt.step()
            return out
        """
    )
    (folder / "steps.py").write_text(step)
    train = textwrap.dedent(
        """
        import torch
        from .steps import step

        def train(model: torch.nn.Module, loader, opt):
            total = 0
            for x in loader:
                out = step(model, x, opt)
                total += out.loss  # TPF507
            return total
        """
    )
    (folder / "train.py").write_text(train)
    found = lint(train, str(folder / "train.py"), HOT)
    assert [(f.line, f.code) for f in found] == expected(train)
