"""Which of several fixes for one finding is made."""

from __future__ import annotations

from fixing import SAFE, UNSAFE, outcome, unmarked
from linting import PRELUDE

SOURCE = unmarked(
    PRELUDE
    + """
def unscale(grads: list[Tensor], found: Tensor, scale: Tensor):
    for grad in grads:
        if torch.isinf(grad).any().item() or torch.isnan(grad).any().item():
            found.fill_(1.0)
        else:
            grad.mul_(scale.item())
"""
)


def test_a_fix_of_the_loop_goes_before_one_inside_it() -> None:
    assert "_foreach_mul_" in outcome(SOURCE, UNSAFE).text


def test_without_unsafe_the_safe_one_is_made() -> None:
    text = outcome(SOURCE, SAFE).text
    assert "torch.isinf(grad) | torch.isnan(grad)" in text
    assert "for grad in grads" in text
