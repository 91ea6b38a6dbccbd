"""A number that consecutive statements read several times, read once."""

from __future__ import annotations

from fixing import SAFE, check_fix, rows

BODY = """
    def crop(x: Tensor, lengths: Tensor, most: int, f):
{}
        return x
"""
CHANGED = {
    "in consecutive statements, with a comment": (
        "# The shortest.\nlow = int(lengths.min().item() / 2 - 1)\n"
        "high = min(int(lengths.min().item() / 2 - 1), most)\nx = x[low:high]",
        "# The shortest.\nlengths_min_value = lengths.min().item()\n"
        "low = int(lengths_min_value / 2 - 1)\n"
        "high = min(int(lengths_min_value / 2 - 1), most)\nx = x[low:high]",
    ),
    "in one statement": (
        "scale = float(lengths.sum()) * most + (1 - float(lengths.sum())) * 2\nx = x * scale",
        "lengths_sum_value = float(lengths.sum())\n"
        "scale = lengths_sum_value * most + (1 - lengths_sum_value) * 2\nx = x * scale",
    ),
    "bound already": (
        "total = lengths.sum().item()\nx = x / lengths.sum().item()",
        "total = lengths.sum().item()\nx = x / total",
    ),
    "by a function of torch": (
        "low = torch.max(lengths).item() // 2\nhigh = torch.max(lengths).item()\nx = x[low:high]",
        "lengths_max_value = torch.max(lengths).item()\n"
        "low = lengths_max_value // 2\nhigh = lengths_max_value\nx = x[low:high]",
    ),
}
KEPT = {
    "a call between": "low = lengths.min().item() + 1\nhigh = f(low) + lengths.min().item()",
    "changed between": "low = lengths.min().item() + 1\nlengths.add_(1)\nhigh = lengths.min().item()",
    "bound between": (
        "lengths = lengths[: lengths.min().item()]\nhigh = lengths.min().item()\nx = x[:high]"
    ),
    "an element written between": (
        "lengths[0] = lengths.min().item() + 1\nhigh = lengths.min().item()\nx = x[:high]"
    ),
    "random numbers": "low = torch.rand(()).item() + 1\nhigh = torch.rand(()).item() + 2",
    "a property": "low = f.lengths.min().item() + 1\nhigh = f.lengths.min().item() + 2",
    "on one path": (
        "low = 1 if most else lengths.min().item()\nhigh = 2 if most else lengths.min().item()"
    ),
    "behind what may fail": "low = f(most) + lengths.min().item()\nhigh = lengths.min().item()",
    "another statement between": "low = lengths.min().item()\nx = x + 1\nhigh = lengths.max().item()",
}


def body(text: str) -> str:
    return BODY.format("\n".join(f"        {line}" for line in text.splitlines()))


@rows(CHANGED)
def test_equal_reads_become_one(row: tuple[str, str]) -> None:
    check_fix(body(row[0]), body(row[1]), SAFE)


@rows(KEPT)
def test_reads_that_may_differ_stay(row: str) -> None:
    check_fix(body(row), "", SAFE)
