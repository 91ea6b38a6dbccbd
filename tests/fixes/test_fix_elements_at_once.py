"""A loop that sets element by element becomes one assignment."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

BODY = """
def fill(x: Tensor, y: Tensor, w: Tensor, n: int):
    for i in range(x.shape[0]):  # each
        {}
    return y
"""
FIXED = {
    "arithmetic": ("y[i] = (x[i] * 2 - 1) / x[i]", "y[: len(x)] = (x * 2 - 1) / x"),
    "the first": ("y[i] = x[i] - x[0]", "y[: len(x)] = x - x[:1]"),
    "functions": ("y[i] = -torch.exp(x[i].abs())", "y[: len(x)] = -torch.exp(x.abs())"),
}
REFUSED = {
    "a tensor of another shape": "y[i] = x[i] * w[i]",
    "another tensor for all": "y[i] = x[i] * w",
    "another one": "y[i] = x[i] - x[1]",
    "a sum": "y[i] = x[i].sum()",
    "the row before": "y[i] = x[i] - x[i - 1]",
    "onto itself": "x[i] = x[i] - x[0]",
    "added up": "y[i] += x[i]",
    "the index itself": "y[i] = x[i] * i",
}


@pytest.mark.parametrize(("before", "after"), FIXED.values(), ids=FIXED)
def test_it_becomes(before: str, after: str) -> None:
    head, tail = BODY.split("    for ")[0], "    return y\n"
    wanted = f"{head}    # each\n    {after}\n{tail}"
    check_fix(BODY.format(before), wanted, UNSAFE, code="TPF202")


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_it_stays(body: str) -> None:
    check_fix(BODY.format(body), "", UNSAFE, code="TPF202")
