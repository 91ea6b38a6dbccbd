"""``for row in t`` becomes the statements of its body, about ``t``."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

FIXED = {
    "in place": (
        """
        def scale(x: Tensor, c: float):
            for row in x:  # TPF201
                row *= c
                row.clamp_(-1, 1)
        """,
        """
        def scale(x: Tensor, c: float):
            x *= c
            x.clamp_(-1, 1)
        """,
    ),
    "a check of what rows share": (
        """
        def scale(self, x: Tensor, c: float):
            # first the checks
            for row in x:  # slow
                if row.device != self.device:
                    raise ValueError(f"on {row.device}")  # not moved
                row.data.mul_(self.factor)
        """,
        """
        def scale(self, x: Tensor, c: float):
            # first the checks
            # slow
            if x.device != self.device:
                raise ValueError(f"on {x.device}")  # not moved
            x.data.mul_(self.factor)
        """,
    ),
    "a condition that leaves the function": (
        """
        def check(x: Tensor):
            for row in x:
                if (row.abs() > 1e4).any() or torch.isnan(row).any():
                    return True
            return False
        """,
        """
        def check(x: Tensor):
            if (x.abs() > 1e4).any() or torch.isnan(x).any():
                return True
            return False
        """,
    ),
    "an attribute of the row's name": (
        """
        def scale(self, x: Tensor):
            for row in x:
                row *= self.row
                row.clamp_(max=1)
        """,
        """
        def scale(self, x: Tensor):
            x *= self.row
            x.clamp_(max=1)
        """,
    ),
}
REFUSED = {
    "another factor for each row": """
        def scale(x: Tensor, cs):
            i = 0
            for row in x:
                row *= cs[i]
                i += 1
        """,
    "a factor that the loop changes": """
        def scale(x: Tensor):
            for row in x:
                row -= x[0]
        """,
    "the row is kept": """
        def scale(x: Tensor, c: float):
            for row in x:
                row *= c
            return row
        """,
    "a condition for all": """
        def check(x: Tensor):
            for row in x:
                if torch.isinf(row).all():
                    return True
            return False
        """,
    "rows that are skipped": """
        def scale(x: Tensor, c: float):
            for row in x:
                if torch.isinf(row).any():
                    continue
                row *= c
        """,
    "which row it was": """
        def check(x: Tensor):
            for row in x:
                if torch.isinf(row).any():
                    raise ValueError(row.sum())
        """,
    "by row and not by element": """
        def check(x: Tensor):
            for row in x:
                if row.softmax(-1).any():
                    return True
                row.cumsum_(0)
        """,
    "only checks": """
        def check(x: Tensor, d):
            for row in x:
                if row.device != d:
                    raise ValueError
        """,
}


@pytest.mark.parametrize(("before", "after"), FIXED.values(), ids=FIXED)
def test_it_becomes(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF201")


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_it_stays(code: str) -> None:
    check_fix(code, "", UNSAFE, code="TPF201")
