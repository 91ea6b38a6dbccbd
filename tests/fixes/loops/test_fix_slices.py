"""Lists of indices become slices."""

from __future__ import annotations

from fixing import UNSAFE, check_fix, rows

STEP = """
    class M(nn.Module):
        def forward(self, x: Tensor, stage: int, other, rows: Tensor):
            return {}
"""
CHANGED = {
    "the last": ("x[..., [-1]]", "x[..., -1:]"),
    "the last two": ("x[[-2, -1]]", "x[-2:]"),
    "the first": ("x[:, [0]]", "x[:, :1]"),
    "one": ("x[:, [2], :]", "x[:, 2:3, :]"),
    "one from the end": ("x[[-3]]", "x[-3:-2]"),
    "some that follow each other": ("x[:, [1, 2, 3]]", "x[:, 1:4]"),
    "a variable": ("x[:, [stage], :]", "x[:, stage : stage + 1, :]"),
    "the counter of a comprehension": (
        "[x[[i], :] for i in range(stage)]",
        "[x[i : i + 1, :] for i in range(stage)]",
    ),
}
KEPT = {
    "in another order": "x[..., [2, 0, 1]]",
    "across the end": "x[[-1, 0]]",
    "with gaps": "x[:, [0, 2]]",
    "beside another index": "x[rows, [1]]",
    "beside a number": "x[0, :, [1]]",
    "perhaps a list": "x[[other]]",
    "a mask": "x[[True]]",
}


@rows(CHANGED)
def test_a_list_becomes_a_slice(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(STEP.format(before), STEP.format(after), UNSAFE, code="TPF406")


@rows(KEPT)
def test_other_lists_stay(row: str) -> None:
    check_fix(STEP.format(row), "", UNSAFE, code="TPF406")


def test_a_slice_is_written_to() -> None:
    written = STEP.replace("return {}", "x[:, {}] = rows\n            return x")
    after = written.format("stage : stage + 1")
    check_fix(written.format("[stage]"), after, UNSAFE, code="TPF406")
