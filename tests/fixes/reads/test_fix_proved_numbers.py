"""Numbers that a safe fix may take for ints: what every caller passes, not what is declared."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix, rows

STEP = """
    class Scale(nn.Module):
        def __init__(self, k: int, sizes: list[int]):
            super().__init__()
            self.k = k

        def forward(self, x: Tensor, k: int, sizes: list[int], n=3):
            \"\"\"Scale.

            Args:
                k (int): a factor
            \"\"\"
            {}
            return x * torch.{}
"""
PROVED = {
    "a length": ("", "len(sizes)"),
    "a size": ("", "x.size(0) * 2 - 1"),
    "arithmetic of a shape": ("", "x.shape[-1] // 2 + len(x)"),
    "a name for a size": ("m = x.shape[0]", "m"),
    "an unpacked shape": ("a, b = x.shape", "a * b"),
    "the larger one": ("", "max(x.shape[0], 1)"),
    "made whole": ("", "int(k)"),
    "either": ("", "len(x) if n else 0"),
}
TESTED = {
    "type": "if type(k) is not int: raise TypeError",
    "no bool": "assert isinstance(k, int) and not isinstance(k, bool)",
    "two tests": "if isinstance(k, bool): return x\n            if not isinstance(k, int): return x",
}
NOT_TESTED = {
    "a bool is an int": "assert isinstance(k, int)",
    "a float too": "assert isinstance(k, (int, float)) and not isinstance(k, bool)",
    "bound behind it": "assert type(k) is int\n            k = n",
    "either way": "if type(k) is int: print(x.shape)",
    "another name": "assert type(n) is int",
}
NOT_PROVED = {
    "an annotation": ("", "k"),
    "an attribute": ("", "self.k"),
    "an item of a list": ("", "sizes[0]"),
    "a default": ("", "n"),
    "arithmetic of a parameter": ("", "k * 2"),
    "a name that is also a parameter's": ("n = 3 if x.dim() else k", "n"),
    "added to": ("m = 0\n            m += k", "m"),
    "a division": ("", "len(x) / 2"),
    "more than one size": ("", "x.shape[n]"),
}


def filled(line: str, value: str, typed: bool = True) -> str:
    dtype = ", dtype=torch.int64" if typed else ""
    return STEP.format(line or "pass", f"full((), {value}, device=x.device{dtype})")


def made(line: str, value: str) -> str:
    return STEP.format(line or "pass", f"tensor({value}, device=x.device)")


@rows(PROVED)
def test_what_is_an_int_for_every_caller_is_filled_in(row: tuple[str, str]) -> None:
    check_fix(made(*row), filled(*row), code="TPF502")


@rows(TESTED)
def test_a_test_that_every_path_passes_proves_it(row: str) -> None:
    check_fix(made(row, "k"), filled(row, "k"), code="TPF502")


@rows(NOT_TESTED)
def test_other_tests_prove_nothing(row: str) -> None:
    check_fix(made(row, "k"), "", code="TPF502")


@rows(NOT_PROVED)
def test_what_is_only_declared_is_not_safe(row: tuple[str, str]) -> None:
    check_fix(made(*row), "", code="TPF502")


@pytest.mark.parametrize("value", ["k", "self.k"])
def test_where_it_is_asked_for_the_dtype_follows_the_number(value: str) -> None:
    check_fix(made("", value), filled("", value, typed=False), UNSAFE, code="TPF502")


def test_a_scale_by_a_half_stays_one() -> None:
    torch = pytest.importorskip("torch")
    for factor in (0.5, True, 3):
        before = torch.ones(2) * torch.tensor(factor)
        after = torch.ones(2) * torch.full((), factor)
        assert torch.equal(before, after)
        assert before.dtype == after.dtype


def test_bounds_of_a_range_may_be_fractions() -> None:
    text = """
        def step(x: Tensor, a: int, b: int):
            return x + torch.arange(a, b{}).to(x.device)
    """
    check_fix(text.format(""), "", code="TPF501")
    after = text.format(", device=x.device").replace(".to(x.device)", "")
    check_fix(text.format(""), after, UNSAFE, code="TPF501")
    after = text.format(", dtype=torch.long, device=x.device").replace(".to(x.device)", "")
    check_fix(text.format(", dtype=torch.long"), after, code="TPF501")


def test_numbers_of_a_declared_list_may_be_tensors_of_a_device() -> None:
    text = """
        def step(x: Tensor, sizes: list[int]):
            return x + torch.tensor(sizes, device=x.device)
    """
    check_fix(text, "", code="TPF502")


@pytest.mark.parametrize("use", ["return {}", "flag = {}\n            return flag", "return f({})"])
def test_a_flag_that_leaves_the_function_stays_what_scripting_makes_of_it(use: str) -> None:
    text = """
        def step(x: Tensor, f):
            {}
    """
    check_fix(text.format(use.format("x.isnan().any() or x.isinf().any()")), "", code="TPF304")
