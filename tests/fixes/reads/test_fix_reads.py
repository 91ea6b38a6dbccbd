"""One read or one flag in the place of two, and comparisons that take a tensor: TPF1xx, 2xx, 3xx."""

from __future__ import annotations

import itertools

import pytest
from fixing import UNSAFE, check_fix, rows

FLAGS = {
    "non-finite, read": (
        "torch.isinf(t).any().item() is True or torch.isnan(t).any().item() is True",
        "bool((torch.isinf(t) | torch.isnan(t)).any())",
    ),
    "non-finite, as tensors": (
        "torch.isinf(t).any() or torch.isnan(t).any()",
        "(torch.isinf(t) | torch.isnan(t)).any()",
    ),
    "by methods": ("t.isinf().any() or t.isnan().any()", "(t.isinf() | t.isnan()).any()"),
    "by functions": (
        "torch.any(torch.isnan(t)) or torch.any(torch.isinf(t))",
        "(torch.isnan(t) | torch.isinf(t)).any()",
    ),
    "all": ("t.isfinite().all() and (t != 0).all()", "(t.isfinite() & (t != 0)).all()"),
    "extremes": ("t.min() < 0 or t.max() > 1", "(t.min() < 0) | (t.max() > 1)"),
    "bool": ("bool(t.isnan().any()) or bool(t.isinf().any())",
             "bool((t.isnan() | t.isinf()).any())"),
    "any of both": ("t.isnan().any() and t.isinf().any()", "t.isnan().any() & t.isinf().any()"),
    "three": (
        "t.isnan().any() or t.isinf().any() or (t == 0).any()",
        "(t.isnan() | t.isinf() | (t == 0)).any()",
    ),
}  # fmt: skip
NO_FLAGS = {
    "of two tensors": "t.isnan().any() or u.isnan().any()",
    "the second fails without elements": "t.isnan().any() or t.max() > 1",
    "the second fails for complex numbers": "t.isnan().any() or (t < 0).any()",
    "the first tells whether there is one": "t is not None and t.isnan().any()",
    "of what a call returns": "pick(t).isnan().any() or pick(t).isinf().any()",
    "a tensor and a bool": "t.isnan().any() or t.isinf().any().item()",
}
TEST = """
    def step(t: Tensor, u: Tensor):
        count = 0
        for _ in range(3):
            if {}:
                count += 1
        return count
"""


@rows(FLAGS)
def test_two_flags_of_one_tensor_become_one(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(TEST.format(before), TEST.format(after))


@rows(NO_FLAGS)
def test_flags_that_might_differ_stay(row: str) -> None:
    check_fix(TEST.format(row), "")


@rows(FLAGS)
def test_one_flag_says_the_same(row: tuple[str, str]) -> None:
    torch = pytest.importorskip("torch")
    inf, nan = float("inf"), float("nan")
    numbers = (0.5, -1.0, 2.0, 0.0, inf, nan)
    for count in range(3):
        for chosen in itertools.product(numbers, repeat=count):
            told = []
            for code in row:
                try:
                    found = eval(code, {"torch": torch, "t": torch.tensor(chosen)})
                except (RuntimeError, IndexError) as error:
                    found = type(error).__name__
                told.append((str(type(found)), str(found)))
            assert told[0] == told[1], chosen


def test_flags_in_brackets_keep_them() -> None:
    check_fix(
        TEST.format("not (t.min() < 0 or t.max() > 1) and u is None"),
        TEST.format("not ((t.min() < 0) | (t.max() > 1)) and u is None"),
    )


def test_a_comment_within_stays_where_it_is() -> None:
    before = TEST.format("(\n                t.min() < 0  # low\n                or t.max() > 1)")
    check_fix(before, "")


PINNED = """
    def step(rows: list[Tensor], batch: Tensor):
        for _ in range(3):
            x = {}
"""


def test_what_was_pinned_here_is_copied_without_waiting() -> None:
    before = PINNED.format('torch.stack(rows).pin_memory().to("cuda")')
    after = PINNED.format('torch.stack(rows).pin_memory().to("cuda", non_blocking=True)')
    check_fix(before, after, code="TPF503")


def test_what_others_hold_is_not() -> None:
    """``pin_memory`` of a tensor that is pinned is that tensor, which may be written next."""
    check_fix(PINNED.format('batch.pin_memory().to("cuda")'), "", code="TPF503")


PERHAPS_NUMBERS = {
    "a choice": "a = t.mean() if t.numel() else 0",
    "a start": "a = 0.0\n            if t.numel():\n                a = t.mean()",
    "the other side of or": "a = t.numel() and t.mean() or 0.0",
}


@rows(PERHAPS_NUMBERS)
def test_a_read_of_what_may_be_a_number_is_not_stacked(row: str) -> None:
    code = """
        def step(t: Tensor, u: Tensor):
            {}
            b = u.mean()
            return float(a), float(b)
    """
    check_fix(code.format(row), "", UNSAFE)
    check_fix(
        code.format("a = t.mean()"),
        """
        def step(t: Tensor, u: Tensor):
            a = t.mean()
            b = u.mean()
            a_value, b_value = torch.stack([a, b]).tolist()
            return a_value, b_value
        """,
        UNSAFE,
    )
