"""``fix --verify`` runs functions as their project does: its calls, classes and constructors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hangs import HANG

pytest.importorskip("torch")

from verifying import verdict

from flake8_torchperf.runtime.confirm.sandbox import Sandbox
from flake8_torchperf.runtime.verify.session import WORK
from flake8_torchperf.runtime.verify.verdict import FixVerdict

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

HOST, DEVICE = "torch.ones(4).to(x.device)", "torch.ones(4, device=x.device)"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(timeout=HANG, memory=2048, work=WORK) as opened:
        yield opened


def told(sandbox: Sandbox, folder: Path, before: str, *, test: str = "") -> FixVerdict:
    """Return the verdict on the device argument in a project, of which ``test`` is a test."""
    (folder / "setup.py").write_text("")
    (folder / "test_verified.py").write_text(textwrap.dedent(test))
    return verdict(sandbox, folder, before, before.replace(HOST, DEVICE), code="TPF501")


def test_a_dataclass_is_made_from_its_fields(sandbox: Sandbox, tmp_path: Path) -> None:
    found = told(
        sandbox,
        tmp_path,
        """
        from dataclasses import dataclass, field

        @dataclass
        class Batch:
            features: Tensor
            sizes: list[int]
            names: list[str] = field(default_factory=list)

        def step(batch: Batch, x: Tensor) -> Tensor:
            if not isinstance(batch, Batch) or batch.names or not isinstance(batch.sizes[0], int):
                raise TypeError("no batch")
            return batch.features.sum() * torch.ones(4).to(x.device)
        """,
    )
    assert found.status == "verified", found


SHAPED = """
def step(x: Tensor, width: int) -> Tensor:
    batch, channels, length = x.shape
    if (channels, length, width) != (6, 10, 3):
        raise ValueError("another shape")
    return torch.ones(4).to(x.device) * x.sum()
"""


@pytest.mark.parametrize(
    "call",
    [
        "verified.step(torch.randn(2, 6, 10), 3)",
        "verified.step(width=3, x=torch.zeros((2, 6, 10), device='cpu').float())",
        "N, C = 2, 6\n    x = torch.randn(N, C, C + 4)\n    verified.step(x, C // 2)",
        "for size in [(2, 6, 10), (3, 6, 10)]:\n        verified.step(torch.rand(size), 3)",
    ],
)
def test_callers_say_which_shapes(sandbox: Sandbox, tmp_path: Path, call: str) -> None:
    test = f"import torch\nimport verified\n\n\ndef test_step():\n    {call}\n"
    found = told(sandbox, tmp_path, SHAPED, test=test)
    assert found.status == "verified", found
    (tmp_path / "test_verified.py").write_text("")
    assert told(sandbox, tmp_path, SHAPED).status == "unverified"


def test_callers_say_how_an_object_is_made(sandbox: Sandbox, tmp_path: Path) -> None:
    found = told(
        sandbox,
        tmp_path,
        """
        class Net(nn.Module):
            def __init__(self, kind: str, sizes: list[int]):
                super().__init__()
                self.layer = {"linear": nn.Linear}[kind](sizes[0], 4)

            def forward(self, x: Tensor) -> Tensor:
                return self.layer(x) + torch.ones(4).to(x.device)
        """,
        test="""
        import torch
        from verified import Net

        def test_net():
            net = Net("linear", [24, 8]).to("cpu")
            assert net(torch.randn(2, 24)).shape == (2, 4)
        """,
    )
    assert found.status == "verified", found


def test_errors_say_which_sizes_a_layer_takes(sandbox: Sandbox, tmp_path: Path) -> None:
    found = told(
        sandbox,
        tmp_path,
        """
        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Conv1d(80, 32, 3, padding=1)
                self.last = nn.Linear(32, 4)

            def forward(self, x: Tensor) -> Tensor:
                y = self.first(x)
                return self.last(y.transpose(1, 2)) + torch.ones(4).to(x.device)
        """,
    )
    assert found.status == "verified", found


ABSENT = """
import no_such_module
from no_such_package.parts import Base, attention

class Part(Base):
    def forward(self, x: Tensor) -> Tensor:
        return no_such_module.attend(x)

def step(x: Tensor, fast: bool = False) -> Tensor:
    if fast:
        return attention(x)
    return torch.ones(4).to(x.device) * x.sum()
"""


def test_what_is_not_installed_and_not_needed_is_stood_in_for(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    found = told(sandbox, tmp_path, ABSENT)
    assert found.status == "verified", found
    needed = ABSENT.replace("if fast:\n        return attention(x)", "x = attention(x)")
    found = told(sandbox, tmp_path, needed)
    assert found.status == "unverified", found
    assert "No module named 'no_such_module'" in found.words


def test_an_import_that_is_guarded_still_fails(sandbox: Sandbox, tmp_path: Path) -> None:
    found = told(
        sandbox,
        tmp_path,
        """
        try:
            import no_such_module
        except ImportError:
            no_such_module = None

        def step(x: Tensor) -> Tensor:
            if no_such_module is not None:
                raise RuntimeError("it is there")
            return torch.ones(4).to(x.device) * x.sum()
        """,
    )
    assert found.status == "verified", found


TRACED = """
import sys

def step(x: Tensor) -> Tensor:
    if "torch._dynamo" not in sys.modules:
        raise RuntimeError("the tracer is not imported")
    return torch.ones(4).to(x.device) * x.sum()
"""
OPTIMIZER = """
class Scaled(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.add_(torch.ones(4).to(p.device).sum())
"""


def test_the_tracer_is_imported_once_for_all_jobs_that_follow(tmp_path: Path) -> None:
    """To make an optimizer imports it in each fork, which takes longer than the calls."""
    with Sandbox(timeout=HANG, memory=2048, work=WORK) as sandbox:
        assert told(sandbox, tmp_path, TRACED).status == "unverified"
        found = verdict(
            sandbox, tmp_path, OPTIMIZER, OPTIMIZER.replace(".to(p.device)", "").replace(
                "torch.ones(4)", "torch.ones(4, device=p.device)"), code="TPF501",
        )  # fmt: skip
        assert found.status == "verified", found
        assert told(sandbox, tmp_path, TRACED).status == "verified"
