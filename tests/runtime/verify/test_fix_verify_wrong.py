"""Wrong fixes, as tools have made them in real code: ``fix --verify`` must verify none of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hangs import HANG

pytest.importorskip("torch")

from verifying import verdict

from flake8_torchperf.runtime.confirm.sandbox import Sandbox
from flake8_torchperf.runtime.verify.session import WORK

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(timeout=HANG, memory=2048, work=WORK) as opened:
        yield opened


# Of each: the text before, a replacement that makes the text after, and what its page allows.
NUMBER = ("tensor-for-number", "other-error", "other-if-not-finite")
CLAMPED = ("max(d, min(d_hat, d * growth))", "d_hat.clamp(max=d * growth).clamp(min=d)")
WRONG: dict[str, tuple[str, tuple[str, str], tuple[str, ...]]] = {
    "a clamp of a value that is a float without an option": (
        """
        def adapted(grads: list[Tensor], d: float, growth: float, sharded: bool = True):
            weighted = torch.stack([grad.abs().sum() for grad in grads]).sum()
            if sharded:
                d_hat = weighted / 2
            else:
                d_hat = weighted.item() / 2
            return max(d, min(d_hat, d * growth))
        """,
        CLAMPED,
        NUMBER,
    ),
    "a clamp of a value that is a float in a class": (
        """
        class Adapted(torch.optim.Optimizer):
            def __init__(self, params, d=1e-6, growth=float("inf"), fsdp=False):
                super().__init__(params, dict(d=d, growth=growth))
                self.fsdp = fsdp

            @torch.no_grad()
            def step(self):
                group = self.param_groups[0]
                d, growth = group["d"], group["growth"]
                total = 0.0
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    total += (p.grad * p.grad).sum().item()
                if self.fsdp:
                    d_hat = torch.tensor(total).sqrt()
                else:
                    d_hat = total / 2
                group["d"] = max(d, min(d_hat, d * growth))
        """,
        CLAMPED,
        NUMBER,
    ),
    "a total over nothing in a stack": (
        """
        def totals(x: Tensor, layers: nn.Module):
            penalty = 0.0
            for p in layers.parameters():
                penalty += p.abs().sum()
            return x.sum().item(), float(penalty)
        """,
        ("x.sum().item(), float(penalty)", "tuple(torch.stack([x.sum(), penalty]).tolist())"),
        (),
    ),
    "a total over absent gradients in a stack": (
        """
        def totals(x: Tensor, layers: nn.Module):
            norm = 0.0
            for p in layers.parameters():
                if p.grad is not None:
                    norm += p.grad.norm()
            return x.sum().item(), float(norm)
        """,
        ("x.sum().item(), float(norm)", "tuple(torch.stack([x.sum(), norm]).tolist())"),
        (),
    ),
    "a total over an empty module list": (
        """
        class Net(nn.Module):
            def __init__(self, layers: int = 2):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(layers))

            def forward(self, x: Tensor):
                loss = 0.0
                for layer in self.layers:
                    loss = loss + layer(x.reshape(-1)[:4]).sum()
                return x.sum().item(), float(loss)
        """,
        ("x.sum().item(), float(loss)", "tuple(torch.stack([x.sum(), loss]).tolist())"),
        (),
    ),
    "a loss that is 0 for no elements": (
        """
        def losses(x: Tensor, y: Tensor):
            n = x.shape[0]
            loss = x.mean() if n > 0 else 0
            return y.sum().item(), float(loss)
        """,
        ("y.sum().item(), float(loss)", "tuple(torch.stack([y.sum(), loss]).tolist())"),
        (),
    ),
    "a loss that is 0 for a number of 0": (
        """
        def losses(x: Tensor, y: Tensor, n: int):
            loss = x.mean() if n > 0 else 0
            return y.sum().item(), float(loss)
        """,
        ("y.sum().item(), float(loss)", "tuple(torch.stack([y.sum(), loss]).tolist())"),
        (),
    ),
    "a loss that is 0 where no call comes": (
        """
        def losses(x: Tensor, y: Tensor, names: dict):
            loss = x.mean() if names.get("weight of the loss", 1) == 1 else 0
            return y.sum().item(), float(loss)
        """,
        ("y.sum().item(), float(loss)", "tuple(torch.stack([y.sum(), loss]).tolist())"),
        (),
    ),
    "a guard that lets NaN into gradients": (
        """
        def logs(x: Tensor):
            if x[0] > 0:
                return x.log().sum()
            return x[1:].log().sum()
        """,
        (
            "if x[0] > 0:\n                return x.log().sum()\n"
            "            return x[1:].log().sum()",
            "return torch.where(x[0] > 0, x.log().sum(), x[1:].log().sum())",
        ),
        ("other-gradients", "dtype", "other-error"),
    ),
    "a mask against what is not finite": (
        """
        def logs(x: Tensor):
            return x[x.isfinite()].sqrt().log1p().sum()
        """,
        (
            "x[x.isfinite()].sqrt().log1p().sum()",
            "torch.where(x.isfinite(), x.sqrt().log1p(), 0).sum()",
        ),
        ("other-gradients",),
    ),
    "a mask against zeros": (
        "\ndef logs(x: Tensor):\n    return x[x > 0].log().sum()\n",
        ("x[x > 0].log().sum()", "torch.where(x > 0, x.log(), 0).sum()"),
        ("other-gradients",),
    ),
    "a flag from a view of a pinned buffer": (
        """
        class Runner:
            def __init__(self):
                self.buffer = torch.zeros(64).pin_memory()

            def step(self, values: Tensor, device: torch.device):
                self.buffer[: values.shape[0]] = values.cpu()
                moved = self.buffer[: values.shape[0]].to(device)
                self.buffer.zero_()
                return moved
        """,
        (".to(device)", ".to(device, non_blocking=True)"),
        (),
    ),
    "a flag for pinned memory that is written again": (
        """
        def step(values: Tensor, device: torch.device):
            buffer = values.cpu().pin_memory()
            moved = buffer.to(device)
            buffer.zero_()
            return moved
        """,
        (".to(device)", ".to(device, non_blocking=True)"),
        (),
    ),
    "positions of a mask without dimensions": (
        """
        def kept(x: Tensor, y: Tensor, mask: Tensor):
            mask = mask > 0.5
            x = x[mask]
            y = y[mask]
            return x, y
        """,
        (
            "x = x[mask]\n            y = y[mask]",
            "kept = torch.where(mask)\n            x = x[kept]\n            y = y[kept]",
        ),
        ("other-error",),
    ),
    "a mask with fewer dimensions": (
        """
        def kept(x: Tensor, mask: Tensor):
            return x[mask.bool()].sum()
        """,
        ("x[mask.bool()].sum()", "torch.where(mask.bool(), x, 0).sum()"),
        ("other-gradients",),
    ),
    "float64, which an MPS device does not have": (
        """
        def total(losses: list[Tensor]):
            total = 0.0
            for loss in losses:
                total += loss.sum().item()
            return total
        """,
        (
            "total += loss.sum().item()\n            return total",
            "total += loss.detach().sum().double()\n            return float(total)",
        ),
        (),
    ),
    "a number that float32 does not hold": (
        """
        def scaled(x: Tensor, factor: float):
            return torch.tensor(factor).to(x)
        """,
        ("torch.tensor(factor).to(x)", "torch.full((), factor, dtype=x.dtype, device=x.device)"),
        ("dtype",),
    ),
    "a product with a number that float32 does not hold": (
        """
        def scaled(x: Tensor, factor=0.5):
            return x * torch.tensor(factor).to(x)
        """,
        ("torch.tensor(factor).to(x)", "torch.full((), factor, dtype=x.dtype, device=x.device)"),
        ("dtype",),
    ),
    "NaN for an error": (
        """
        import math

        def score(x: Tensor):
            return math.log(x.abs().sum().item() - 3)
        """,
        ("math.log(x.abs().sum().item() - 3)", "torch.log(x.abs().sum() - 3)"),
        ("tensor-for-number", "other-gradients"),
    ),
    "NaN for an error outside of the domain": (
        """
        import math

        def angle(x: Tensor, y: Tensor):
            return math.acos((x * y).sum())
        """,
        ("math.acos", "torch.acos"),
        ("tensor-for-number", "other-gradients"),
    ),
}


# Seconds each: the suite has one of each kind, the thorough tests its like in other code.
ALIKE = (
    "a clamp of a value that is a float in a class",
    "a total over absent gradients in a stack",
    "a loss that is 0 for a number of 0",
    "a mask against zeros",
    "a flag for pinned memory that is written again",
    "a product with a number that float32 does not hold",
    "NaN for an error outside of the domain",
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.thorough) if name in ALIKE else name for name in WRONG],
)
def test_a_wrong_fix_is_never_verified(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    before, (old, new), allows = WRONG[name]
    after = before.replace(old, new)
    assert after != before
    told = verdict(sandbox, tmp_path, before, after, safety="unsafe", allows=allows)
    assert told.status != "verified", told


BUFFER = """
def step(values: Tensor, device: torch.device):
    buffer = values.pin_memory()
    moved = buffer[:2].to(device)
    buffer.zero_()
    return moved
"""


def test_a_race_is_named_where_all_calls_are_alike(sandbox: Sandbox, tmp_path: Path) -> None:
    after = BUFFER.replace(".to(device)", ".to(device, non_blocking=True)")
    told = verdict(sandbox, tmp_path, BUFFER, after, safety="unsafe", code="TPF503")
    assert told.status == "unverified", told
    assert "another write to the memory that is copied may come first" in told.words
    new = BUFFER.replace("buffer[:2]", "torch.stack([values]).pin_memory()")
    after = new.replace(".to(device)", ".to(device, non_blocking=True)")
    told = verdict(sandbox, tmp_path, new, after, safety="unsafe", code="TPF503")
    assert told.status == "verified", told


CHECKED = """
def doubled(x: Tensor) -> Tensor:
    if {test}.any():
        raise ValueError("bad values")
    return x * 2
"""


@pytest.mark.parametrize(
    ("test", "status"), [("(x - x > 5)", "unverified"), ("(x < 0)", "verified")]
)
def test_an_error_that_the_device_raises_has_to_be_seen(
    sandbox: Sandbox, tmp_path: Path, test: str, status: str
) -> None:
    before = CHECKED.format(test=test)
    old = f'    if {test}.any():\n        raise ValueError("bad values")\n'
    after = before.replace(old, f'    torch._assert_async(~{test}.any(), "bad values")\n')
    assert after != before
    allows = ("other-error",)
    told = verdict(sandbox, tmp_path, before, after, safety="unsafe", allows=allows, code="TPF301")
    assert told.status == status, told
    assert ("no call raised the error" in told.words) == (status == "unverified")
