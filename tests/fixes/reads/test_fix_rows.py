"""Reads in a row that become one."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from fixing import UNSAFE, outcome
from linting import HOT, PRELUDE

from flake8_torchperf.fixes.engine.lines.width import wrapped

CHANGED = [
    pytest.param(
        """
        def forward(x: Tensor, n: Tensor):
            a, b = x.mean(), x.std()
            while len(x):
                # both
                low = a.item()
                high = float(b.detach())  # up
                print(low, high)
        """,
        None,
        id="a comment would be lost",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, x: Tensor, values):
                a, b = x.mean(), x.std()
                # both
                low = a.item()
                high = b.detach().item()
                y = x @ x.T
                c, d = y.min(), y.max()
                return x * low + high, x * c.item() + (d.item() + values)
        """,
        """
        class M(nn.Module):
            def forward(self, x: Tensor, values):
                a, b = x.mean(), x.std()
                # both
                low, high = torch.stack([a, b.detach()]).tolist()
                y = x @ x.T
                c, d = y.min(), y.max()
                c_value, d_value = torch.stack([c, d]).tolist()
                return x * low + high, x * c_value + (d_value + values)
        """,
        id="lines, and one statement",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor, g):
                a, b = (x > 0).sum(), x.float().std()
                low = a.item()
                high = b.item()
                c, d = y.sum(), y.sum() * 2
                return low, high, c.item(), g() and d.item()
        """,
        None,
        id="other types, and what may not be read",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor, n: Tensor):
                loss = F.cross_entropy(x, y)
                a = loss.mean().item()
                b = n.sum().item()
                return {"loss": x.mean().item(), "count": n.sum().item(), "most": y.max().item()}
        """,
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor, n: Tensor):
                loss = F.cross_entropy(x, y)
                a, loss_value = torch.stack([loss.mean(), x.mean()]).tolist()
                b = n.sum().item()
                return {"loss": loss_value, "count": n.sum().item(), "most": y.max().item()}
        """,
        id="a float and what may be a count",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor):
                loss, kept = F.cross_entropy(x, y), (x > 0).sum()
                best, norm = x.argmax(), x.norm()
                return {"loss": loss.item(), "kept": kept.item(), "best": best.item(), "norm": norm.item()}
        """,
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor):
                loss, kept = F.cross_entropy(x, y), (x > 0).sum()
                best, norm = x.argmax(), x.norm()
                loss_value, norm_value = torch.stack([loss, norm]).tolist()
                kept_value, best_value = torch.stack([kept, best]).tolist()
                return {"loss": loss_value, "kept": kept_value, "best": best_value, "norm": norm_value}
        """,
        id="a dict in two groups",
    ),
    pytest.param(
        """
        def forward(x: Tensor, lengths: Tensor, top: int):
            start = int(lengths.min().item() / 2 - 1)
            most = min(int(lengths.min().item() / 2 - 1), top)
            return x[start:most]
        """,
        """
        def forward(x: Tensor, lengths: Tensor, top: int):
            lengths_min_value = lengths.min().item()
            start = int(lengths_min_value / 2 - 1)
            most = min(int(lengths_min_value / 2 - 1), top)
            return x[start:most]
        """,
        id="one value, read twice",
    ),
    pytest.param(
        """
        def forward(x: Tensor, y: Tensor, top: int):
            start = int(x.sum().item() / 2 - 1)
            y.add_(x)
            x = y
            most = min(int(x.sum().item() / 2 - 1), top)
            return x[start:most]
        """,
        None,
        id="one text, of two values",
    ),
    pytest.param(
        """
        def forward(batches: list[Tensor], other: list):
            means, tops = [], []
            for x in batches:
                means.append(x.mean().item())
                tops.append(x.float().max().item())
            for x in batches:
                other.append(x.mean().item())
                other.append(x.float().max().item())
            return means, tops
        """,
        """
        def forward(batches: list[Tensor], other: list):
            means, tops = [], []
            for x in batches:
                x_mean_value, x_max_value = torch.stack([x.mean(), x.float().max()]).tolist()
                means.append(x_mean_value)
                tops.append(x_max_value)
            for x in batches:
                other.append(x.mean().item())
                other.append(x.float().max().item())
            return means, tops
        """,
        id="appended to lists that are made here",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, a: Tensor, b: Tensor):
                metrics = {}
                metrics["rewards/chosen"] = a.nansum().item()
                metrics["rewards/rejected"] = b.nansum().item()
                return metrics
        """,
        """
        class M(nn.Module):
            def forward(self, a: Tensor, b: Tensor):
                metrics = {}
                rewards_chosen_value, rewards_rejected_value = torch.stack([a.nansum(), b.nansum()]).tolist()
                metrics["rewards/chosen"] = rewards_chosen_value
                metrics["rewards/rejected"] = rewards_rejected_value
                return metrics
        """,
        id="sums without NaN, named by their keys",
    ),
    pytest.param(
        """
        def forward(x: Tensor, y: Tensor, metrics: dict, prefix: str):
            loss = F.cross_entropy(x, y)
            while len(x):
                metrics["loss"] = loss.item()
                # how sure it is
                metrics[f"{prefix}_top"] = torch.max(x.float()).detach().item()
                norm = x.norm().item()
                wandb.log({"norm": norm, "std": x.std().item()})
        """,
        """
        def forward(x: Tensor, y: Tensor, metrics: dict, prefix: str):
            loss = F.cross_entropy(x, y)
            while len(x):
                loss_value, top_value, norm, std_value = torch.stack([loss, torch.max(x.float()).detach(), x.norm(), x.std()]).tolist()
                metrics["loss"] = loss_value
                # how sure it is
                metrics[f"{prefix}_top"] = top_value
                wandb.log({"norm": norm, "std": std_value})
        """,
        id="entries, a name and a call, with work between the reads",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor, scores):
                best = torch.tensor([0.0], device=x.device)
                worst = torch.tensor([0.5], device=x.device)
                logs = dict(best=best.item(), worst=worst.item())
                return logs

            def training_step(self, x: Tensor):
                a, b = x.sum(), x[0].max()
                return {"a": float(a.item()), "b": float(b.item())}
        """,
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor, scores):
                best = torch.tensor([0.0], device=x.device)
                worst = torch.tensor([0.5], device=x.device)
                best_value, worst_value = torch.cat([best, worst]).tolist()
                logs = dict(best=best_value, worst=worst_value)
                return logs

            def training_step(self, x: Tensor):
                a, b = x.sum(), x[0].max()
                a_value, b_value = torch.stack([a.double(), b.double()]).tolist()
                return {"a": float(a_value), "b": float(b_value)}
        """,
        id="one element, and floats of any dtype",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, x: Tensor, y: Tensor):
                best, worst = x[:1, :1].mean(0), y[:1, :1].mean(0)
                logs = dict(best=best.item(), worst=worst.item())
                return logs
        """,
        None,
        id="one element in dimensions that nothing shows",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def forward(self, x: Tensor, step):
                a, b = x.mean(), x.std()
                logs = {"a": a.item(), "step": step.update(b), "b": b.item()}
                logs["c"] = self.step(x).mean().item()
                logs["d"] = self.step(x).mean().item()
                rows = {"a": a.item(), "rows": [a.item() for a in x.unbind()]}
                x[0] = a.item()
                return logs, x.mean().item()
        """,
        None,
        id="what may change a tensor between them",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_reads_in_a_row_become_one(before: str, after: str | None) -> None:
    text = PRELUDE + textwrap.dedent(before)
    done = outcome(text, UNSAFE, HOT, "TPF101")
    assert done.first
    wanted = text if after is None else PRELUDE + textwrap.dedent(after)
    assert done.text == wrapped(text, wanted)[0]
    assert not outcome(done.text, UNSAFE, HOT, "TPF101").changes


def test_numbers_are_those_of_each_read() -> None:
    torch = pytest.importorskip("torch")
    text = PRELUDE + textwrap.dedent("""
        def training_step(x: Tensor, y: Tensor, n: Tensor):
            metrics: dict = {}
            for _ in range(2):
                metrics["mean"] = x.mean().item()
                metrics["kept"] = (n > 0).sum().item()
                metrics["any"] = (x > 1).any().item()
                metrics["norm"] = float(y.norm())
                metrics["best"] = n.argmax().item()
                metrics["all"] = bool((x > 1).all())
                metrics["sum"] = float(n.sum())
            return metrics
    """)
    done = outcome(text, UNSAFE, HOT, "TPF101")
    assert done.text.count(".tolist()") == 3  # floats, ints and bools
    assert ".item()" not in done.text
    large = torch.tensor([16_777_216, 1, 2**53])
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        for other in (dtype, torch.float32, torch.float64):
            x, y = torch.full((3,), 1.1, dtype=dtype), torch.full((3,), 1 / 3, dtype=other)
            told = []
            for code in (text, done.text):
                names: dict[str, Any] = {}
                exec(code, names)
                told.append(names["training_step"](x, y, large))
            assert list(told[0].items()) == list(told[1].items())
            assert [type(one) for one in told[0].values()] == [
                type(one) for one in told[1].values()
            ]
