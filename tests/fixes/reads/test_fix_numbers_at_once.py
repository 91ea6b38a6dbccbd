"""A tensor whose elements are used as numbers is read once."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, check_fix

FIXED = {
    "indices of a list": (
        """
        def pick(found: list[str], inds: Tensor):
            inds = inds.argsort()
            return [found[i] for i in inds]
        """,
        """
        def pick(found: list[str], inds: Tensor):
            inds = inds.argsort()
            return [found[i] for i in inds.tolist()]
        """,
    ),
    "read one by one": (
        """
        def numbers(x: Tensor):
            return [int(i.item()) for i in x.view(-1) if i != 0]
        """,
        """
        def numbers(x: Tensor):
            return [int(i) for i in x.view(-1).tolist() if i != 0]
        """,
    ),
    "the first that is not done": (
        """
        def count(converged: Tensor):
            converged = converged.abs() < 1
            n = 0
            for b in converged:
                if not b:
                    break
                n += 1
            return n
        """,
        """
        def count(converged: Tensor):
            converged = converged.abs() < 1
            n = 0
            for b in converged.tolist():
                if not b:
                    break
                n += 1
            return n
        """,
    ),
}
REFUSED = {
    "an element that is kept": """
        def rows(x: Tensor, names: list[str]):
            return [(names[i], i) for i in x.exp()]
        """,
    "a comparison that is kept": """
        def rows(x: Tensor):
            return [i == 0 for i in x.exp()]
        """,
    "rows": """
        def rows(x: Tensor, names: list[str]):
            return [names[i] for i in x.new_zeros(3, 4)]
        """,
    "numbers that are rounded otherwise": """
        def count(x: Tensor):
            n = 0
            for v in x.exp():
                if v == 0.1:
                    n += 1
            return n
        """,
    "an element that is changed": """
        def rows(x: Tensor, names: list[str]):
            for i in x.exp():
                i += 1
                print(names[i])
        """,
}


@pytest.mark.parametrize(("before", "after"), FIXED.values(), ids=FIXED)
def test_it_becomes(before: str, after: str) -> None:
    check_fix(before, after, UNSAFE, code="TPF201")


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_it_stays(code: str) -> None:
    check_fix(code, "", UNSAFE, code="TPF201")
