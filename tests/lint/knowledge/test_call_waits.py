"""Calls that wait in torch's own code: the generated table, against torch, and what it reports."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hangs import HANG
from linting import ALL, HOT, expected, lint, program

from flake8_torchperf.knowledge import call_waits
from flake8_torchperf.knowledge.call_waits import Asked, CallWaits, Parameter

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "tools" / "generate_call_waits.py"

PRELUDE = """\
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Normal, StudentT
from torch.nn.utils import clip_grad_norm_, get_total_norm
"""

PROGRAMS = {
    "gradients are clipped with a check": """
        def train(model: nn.Module, loader, optimizer):
            for batch in loader:
                model(batch).sum().backward()
                clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # TPF108
                clip_grad_norm_(model.parameters(), 1.0, 2.0, True)  # TPF108
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=False)
                get_total_norm(model.parameters(), 2.0, False)
                optimizer.step()
    """,
    "the caller's option is off by default": """
        def train(model: nn.Module, loader, optimizer, strict: bool = False):
            for batch in loader:
                model(batch).sum().backward()
                clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=strict)
                optimizer.step()
    """,
    "the scale is read in each step": """
        def train(model: nn.Module, loader, optimizer):
            scaler = torch.amp.GradScaler("cuda")
            old = torch.cuda.amp.GradScaler(enabled=True)
            off = torch.amp.GradScaler("cuda", enabled=False)
            for batch in loader:
                scaler.scale(model(batch).sum()).backward()
                scales = [scaler.get_scale()]  # TPF108
                scales.append(old.get_scale())  # TPF108
                scales.append(off.get_scale())
                scaler.step(optimizer)
    """,
    "a scaler that the object keeps": """
        class Engine:
            def __init__(self, use_amp: bool):
                self.scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
                self.first = self.scaler.get_scale()

            def training_step(self, loss: Tensor):
                self.scaler.scale(loss).backward()
                return self.scaler.get_scale()  # TPF108
    """,
    "the plateau is asked per batch": """
        def train(model: nn.Module, loader, optimizer):
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
            for batch in loader:
                loss = model(batch).sum()
                loss.backward()
                optimizer.step()
                plateau.step(loss)  # TPF108
                plateau.step(0.5)
    """,
    "the plateau is asked per epoch": """
        def train(model: nn.Module, loader, optimizer):
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
            for epoch in range(10):
                total = 0.0
                for batch in loader:
                    loss = model(batch).sum()
                    loss.backward()
                    optimizer.step()
                plateau.step(total)
    """,
    "distributions are made and asked in each step": """
        class Policy(nn.Module):
            def forward(self, mean: Tensor, actions: Tensor):
                checked = Normal(mean, 1.0)  # TPF108
                quiet = Normal(mean, 1.0, validate_args=False)
                named = Categorical(logits=mean)  # TPF108
                inner = StudentT(mean, validate_args=False)  # TPF108
                first = checked.log_prob(actions)  # TPF108
                return first + quiet.log_prob(actions) + named.entropy() + inner.rsample()
    """,
    "a declared distribution may be told not to check": """
        def score(policy: Normal, actions: Tensor):
            return policy.log_prob(actions.float())
    """,
    "either of two modules": """
        class Head(nn.Module):
            def __init__(self, adaptive: bool):
                super().__init__()
                if adaptive:
                    self.proj = nn.AdaptiveLogSoftmaxWithLoss(8, 100, [10])
                else:
                    self.proj = nn.Linear(8, 100)

            def forward(self, x: Tensor, y: Tensor):
                rows = torch.nonzero(x)
                if y is None:
                    return self.proj(x)
                return self.proj(x, y)  # TPF108
    """,
    "distributions of numbers lie on the host": """
        class Policy(nn.Module):
            def forward(self, x: Tensor):
                return x + Normal(0.0, 1.0).sample()
    """,
    "distributions made once": """
        class Prior(nn.Module):
            def __init__(self, mean: Tensor):
                super().__init__()
                self.prior = Normal(mean, 1.0)
                self.quiet = Normal(mean, 1.0, validate_args=False)

            def forward(self, x: Tensor):
                return self.quiet.log_prob(x)
    """,
    "a mask that torch checks": """
        class Layer(nn.Module):
            def forward(self, x: Tensor, n: int):
                torch._check_tensor_all(x > 0)  # TPF108
                torch._check_tensor_all_with(ValueError, x > 0, lambda: "negative")  # TPF108
                torch._check_tensor_all(torch.arange(n) < 3)
                torch._check(n > 3)
                return x
    """,
    "whoever hands on the option decides": """
        class Head(nn.Module):
            def forward(self, mean: Tensor, validate_args=None):
                return Normal(mean, 1.0, validate_args=validate_args)  # TPF108
    """,
}


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS)
def test_programs(code: str) -> None:
    source = program(code, PRELUDE)
    found = [(f.line, f.code) for f in lint(source, "model.py", HOT) if f.code == "TPF108"]
    assert found == expected(source)


def test_once_made_is_told_in_scope_all_only() -> None:
    source = program(PROGRAMS["distributions made once"], PRELUDE)
    found = [f for f in lint(source, "model.py", ALL) if f.code == "TPF108"]
    assert [source.splitlines()[f.line - 1].strip() for f in found] == [
        "self.prior = Normal(mean, 1.0)"
    ]


def test_one_finding_for_one_call() -> None:
    """A tensor for a number is told by the table of signatures; torch's `float` in it is the same."""
    source = program(
        """
        def clipped(weight: Tensor, limit: Tensor):
            return clip_grad_norm_([weight], limit, error_if_nonfinite=True)
        """,
        PRELUDE,
    )
    assert len(lint(source, "model.py", ALL)) == 1


def test_the_reason_names_the_line_in_torch() -> None:
    source = program(PROGRAMS["the plateau is asked per batch"], PRELUDE)
    finding = next(f for f in lint(source, "model.py", HOT) if f.code == "TPF108")
    assert "torch/optim/lr_scheduler.py:" in finding.site.operand.reason.fact  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def table() -> CallWaits:
    return call_waits.load()


def test_what_an_entry_says(table: CallWaits) -> None:
    (way,) = (w for w in table.function("torch.nn.utils.clip_grad_norm_") if "if" in w.operation)
    option = Asked(Parameter("error_if_nonfinite", 3), "on", absent=False, none=False, own=False)
    assert way.where.startswith("nn/utils/clip_grad.py:")
    assert (way.holding, way.asked) == ((Parameter("parameters", 0, required=True),), (option,))
    assert option.holds_for(True)
    assert not option.holds_for(False)
    assert not option.holds_for(None)


def test_methods_are_inherited_and_ask_the_constructor(table: CallWaits) -> None:
    lineage = ("torch.distributions.LogNormal", "torch.distributions.TransformedDistribution")
    (way,) = table.method(lineage, "log_prob")
    (asked,) = way.asked
    assert (asked.own, asked.absent, asked.holds_for(None)) == (True, True, True)
    assert not asked.holds_for(False)
    assert asked.parameter in table.options(lineage)
    assert table.method(lineage, "sample") == ()


def test_loading_does_not_import_torch() -> None:
    code = (
        "import sys; from flake8_torchperf.knowledge import call_waits; call_waits.load();"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.thorough
def test_the_committed_table_is_what_the_installed_torch_gives(table: CallWaits) -> None:
    try:
        installed = importlib.metadata.version("torch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("torch is not installed")
    if installed != table.torch_version:
        pytest.skip(f"the table describes torch {table.torch_version}, installed is {installed}")
    result = subprocess.run(
        [sys.executable, str(GENERATOR), "--check"],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
