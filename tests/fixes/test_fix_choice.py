"""Which of several fixes for one finding is made."""

from __future__ import annotations

from fixing import SAFE, UNSAFE, outcome
from linting import PRELUDE

SOURCE = (
    PRELUDE
    + """
def step(x: Tensor):
    if x.isnan().any() or x.isinf().any():
        raise ValueError("not finite")
    return x * 2
"""
)


def test_a_fix_of_the_statement_goes_before_one_inside_it() -> None:
    done = outcome(SOURCE, UNSAFE)
    assert {change.edit.name for change in done.changes} == {"assert-async"}


def test_without_unsafe_the_safe_one_is_made() -> None:
    assert "if (x.isnan() | x.isinf()).any():" in outcome(SOURCE, SAFE).text
