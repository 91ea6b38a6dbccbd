"""Loops that set elements to a number become assignments to slices."""

from __future__ import annotations

from fixing import UNSAFE, check_fix, rows

STEP = """
    class M(nn.Module):
        def forward(self, x: Tensor, n: int, other, rows: Tensor):
            x = x.clone()
            {}
            return x
"""
CHANGED = {
    "the first": ("for i in range(n): x[i] = 0", "x[:n] = 0"),
    "from one on": ("for i in range(2, n): x[i, 0] = -1.0", "x[2:n, 0] = -1.0"),
    "of a dimension": (
        "for i in range(x.shape[1]): x[:, i] = n",
        "x[:, : x.shape[1]] = n",
    ),
}
KEPT = {
    "another number for each": "for i in range(n): x[i] = i",
    "perhaps a tensor": "for i in range(n): x[i] = other",
    "at another index": "for i in range(n): x[i + 1] = 0",
    "beside another index": "for i in range(n): x[rows, i] = 0",
    "a diagonal": "for i in range(n): x[i, i] = 0",
    "with steps": "for i in range(0, n, 2): x[i] = 0",
    "counted on": "for i in range(n): x[i] = 0\n            x = x + i",
}


@rows(CHANGED)
def test_a_loop_becomes_a_slice(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(STEP.format(before), STEP.format(after), UNSAFE, code="TPF202")


@rows(KEPT)
def test_other_loops_stay(row: str) -> None:
    check_fix(STEP.format(row), "", UNSAFE, code="TPF202")
