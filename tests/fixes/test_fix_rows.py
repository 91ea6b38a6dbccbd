"""Reads in a row that become one."""

from __future__ import annotations

import textwrap

import pytest
from fixing import UNSAFE, outcome
from linting import HOT, PRELUDE

CHANGED = [
    pytest.param(
        """
        def forward(x: Tensor, n: Tensor):
            a, b = x.mean(), x.std()
            for _ in range(3):
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
        None,
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
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_reads_in_a_row_become_one(before: str, after: str | None) -> None:
    text = PRELUDE + textwrap.dedent(before)
    done = outcome(text, UNSAFE, HOT, "TPF101")
    assert done.first
    assert done.text == (text if after is None else PRELUDE + textwrap.dedent(after))
    assert not outcome(done.text, UNSAFE, HOT, "TPF101").changes
