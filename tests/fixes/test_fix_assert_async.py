"""Errors that depend on a tensor, tested on the device."""

from __future__ import annotations

import pytest
from fixing import SAFE, UNSAFE, check_fix

CHANGED = [
    pytest.param(
        """
        def f(x: Tensor):
            # why
            if torch.isnan(x).any():
                raise ValueError("x has NaN")  # bad data
            return x + 1
        """,
        """
        def f(x: Tensor):
            # why
            torch._assert_async(~torch.isnan(x).any(), "x has NaN")  # bad data
            return x + 1
        """,
        id="if",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            if not (x > 0).all():  # positive
                # says more
                raise RuntimeError
            return x + 1
        """,
        """
        def f(x: Tensor):
            # positive
            # says more
            torch._assert_async((x > 0).all())
            return x + 1
        """,
        id="negated, with comments",
    ),
    pytest.param(
        """
        def f(x: Tensor, n: int):
            if x.sum() != n: raise ValueError() from None
            if x.max() > n:
                raise ValueError
            return x + 1
        """,
        """
        def f(x: Tensor, n: int):
            torch._assert_async(x.sum() == n)
            torch._assert_async(~(x.max() > n))
            return x + 1
        """,
        id="comparisons",
    ),
    pytest.param(
        """
        def f(x: Tensor, strict: bool):
            if strict and x.isnan().sum():
                raise ValueError(
                    f"all {len(x)} items of {x[0]!r} "
                    "must be {numbers}"
                )
            return x + 1
        """,
        """
        def f(x: Tensor, strict: bool):
            if strict:
                torch._assert_async(
                    torch.logical_not(x.isnan().sum()),
                    "all {len(x)} items of {x[0]} "
                    "must be {numbers}"
                )
            return x + 1
        """,
        id="under what else was asked, over several lines",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            if torch.isnan(x).any():
                raise ValueError(  # as elsewhere
                    "x has NaN"
                )
            if (x.sum(dim=-1) < 0).any():
                raise ValueError("the sum over the last dimension must not be negative")
            return x + 1
        """,
        """
        def f(x: Tensor):
            torch._assert_async(  # as elsewhere
                ~torch.isnan(x).any(),
                "x has NaN"
            )
            torch._assert_async(
                ~(x.sum(dim=-1) < 0).any(),
                "the sum over the last dimension must not be negative",
            )
            return x + 1
        """,
        id="long lines",
    ),
    pytest.param(
        """
        def f(x: Tensor, n: int):
            if n < 0 or (x > n).any():
                raise ValueError("large")
            if x.isnan().any() and not n:
                raise ValueError("nan")
            return x + 1
        """,
        """
        def f(x: Tensor, n: int):
            if n < 0:
                raise ValueError("large")
            torch._assert_async(~(x > n).any(), "large")
            if not n:
                torch._assert_async(~x.isnan().any(), "nan")
            return x + 1
        """,
        id="or, and",
    ),
    pytest.param(
        """
        def f(x: Tensor, lengths: Tensor):
            assert (x >= 0).all() and x.sum() == 1, "no distribution"  # really
            assert x.dim() == 1 and not torch.isinf(x).any() and x.shape[0] > 1
            assert x.requires_grad or (lengths > 0).all(), f"{lengths} must not be empty"
            return x + 1
        """,
        """
        def f(x: Tensor, lengths: Tensor):
            torch._assert_async((x >= 0).all(), "no distribution")
            torch._assert_async(x.sum() == 1, "no distribution")  # really
            assert x.dim() == 1
            torch._assert_async(~torch.isinf(x).any())
            assert x.shape[0] > 1
            if not x.requires_grad:
                torch._assert_async((lengths > 0).all(), "{lengths} must not be empty")
            return x + 1
        """,
        id="assert",
    ),
]

KEPT = [
    pytest.param(
        """
        def f(x: Tensor):
            try:
                if x.isnan().any():
                    raise ValueError("nan")
            except ValueError:
                x = x.nan_to_num()
            return x
        """,
        id="handled here",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            if x.isnan().any():
                raise StopIteration
            return x
        """,
        id="no mistake",
    ),
    pytest.param(
        """
        def f(x: Tensor, message):
            if x.isnan().any():
                raise ValueError(message)
            return x
        """,
        id="a text that is made elsewhere",
    ),
    pytest.param(
        """
        def f(x: Tensor):
            if x.isnan().any():
                print("nan")
                raise ValueError("nan")
            return x
        """,
        id="more than the error",
    ),
    pytest.param(
        """
        def f(x: Tensor, n):
            if n:
                x = x + 1
            elif x.isnan().any():
                raise ValueError("nan")
            if x.isinf().any():
                raise ValueError("inf")
            else:
                x = x * 2
            return x
        """,
        id="elif and else",
    ),
    pytest.param(
        """
        def f(x: Tensor, g):
            if x.isnan().any() and g():
                raise ValueError("nan")
            return x
        """,
        id="asks for more behind it",
    ),
    pytest.param(
        """
        def f(x: Tensor, torch):
            if x.isnan().any():
                raise ValueError("nan")
            return x
        """,
        id="torch is something else",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_device_tests_the_condition(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE)


@pytest.mark.parametrize("before", KEPT)
def test_other_errors_stay(before: str) -> None:
    check_fix(before, "", UNSAFE)


def test_it_is_asked_for() -> None:
    check_fix("def f(x: Tensor):\n    assert (x > 0).all()\n", "", SAFE)
