"""Errors that depend on a tensor, tested on the device."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from fixing import SAFE, UNSAFE, check_fix, outcome
from linting import ALL, PRELUDE

from flake8_torchperf.linter import lint

CHANGED = [
    pytest.param(
        """
        def f(a, b):
            assert (a[:, 2:] >= a[:, :2]).all()
            assert not (b[:, 0] == -1).any()
            return torch.min(a[:, None, :2], b[:, :2])
        """,
        """
        def f(a, b):
            torch._assert_async((a[:, 2:] >= a[:, :2]).all())
            torch._assert_async(~(b[:, 0] == -1).any())
            return torch.min(a[:, None, :2], b[:, :2])
        """,
        id="what torch takes later",
    ),
    pytest.param(
        """
        def f(x: Tensor, limit):
            assert (x >= 0).all() and (x <= limit).all()
            return x
        """,
        """
        def f(x: Tensor, limit):
            torch._assert_async((x >= 0).all())
            torch._assert_async((x <= limit).all())
            return x
        """,
        id="two terms",
    ),
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
                    f"{strict=} for all of {x.shape!r} "
                    "must be {numbers}"
                )
            return x + 1
        """,
        """
        def f(x: Tensor, strict: bool):
            if strict:
                torch._assert_async(
                    torch.logical_not(x.isnan().sum()),
                    f"{strict=} for all of {x.shape!r} "
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
            assert x.requires_grad or (lengths > 0).all(), f"{lengths.shape} must not be empty"
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
                torch._assert_async((lengths > 0).all(), f"{lengths.shape} must not be empty")
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
        def f(a):
            assert (a[:, 2:] >= a[:, :2]).all()
            return a[:, None, :2]
        """,
        id="what may be an array",
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
    pytest.param(
        """
        def f(x: Tensor, y: Tensor, a, b, n: int):
            if torch.isnan(x).any():
                raise ValueError(f"{x.sum():.2f} is NaN")
            assert (x > 0).all(), f"in {len(x)} rows"
            assert (y > 0).all(), f"{y.max():.3f}"
            return x + 1
        """,
        id="a tensor in the text, and what may fail",
    ),
    pytest.param(
        """
        def f(x: Tensor, y, other=None):
            flag = x.isnan().any() if x.dim() else False
            if flag:
                raise ValueError("nan")
            assert x.sum() == other
            assert torch.zeros(2).sum() != y
            return x + 1
        """,
        id="perhaps a bool",
    ),
    pytest.param(
        """
        def test_f(x: Tensor):
            assert (x.cuda() > 0).all()

        class TestF:
            def check(self, x: Tensor):
                assert (x.cuda() > 0).all()
        """,
        id="in tests",
    ),
    pytest.param(
        """
        class M(nn.Module):
            def __init__(self, weight: Tensor):
                super().__init__()
                if weight.isnan().any():
                    raise ValueError("nan")
        """,
        id="once",
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


@pytest.mark.parametrize(
    "name", ["test_model.py", "model_test.py", "conftest.py", "tests/model.py"]
)
def test_files_of_tests_keep_their_assertions(name: str, tmp_path: Path) -> None:
    text = PRELUDE + "def f(x: Tensor):\n    assert (x > 0).all()\n"
    told = []
    for path in (tmp_path / name, tmp_path / "model.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        found = lint(text, str(path), ALL, UNSAFE.safeties)
        told.append(any(edit.name == "assert-async" for one in found for edit in one.edits))
    assert told == [False, True]


def test_the_text_has_the_values_of_the_host() -> None:
    torch = pytest.importorskip("torch")
    text = PRELUDE + textwrap.dedent("""
        def f(x: Tensor, limit: int):
            if (x > limit).any():
                raise RuntimeError(f"{limit:>4} is exceeded in {x.shape}")
            return x
    """)
    done = outcome(text, UNSAFE, code="TPF301")
    assert done.changes
    for code in (text, done.text):
        names: dict[str, Any] = {}
        exec(code, names)
        names["f"](torch.ones(2), 1)
        with pytest.raises(RuntimeError, match=r"   0 is exceeded in torch.Size\(\[2\]\)"):
            names["f"](torch.ones(2), 0)
