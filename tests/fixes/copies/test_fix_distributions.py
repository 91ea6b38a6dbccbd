"""Distributions that are made without tests of their arguments."""

from __future__ import annotations

import pytest
from fixing import SHOWN, UNSAFE, check_fix

HEAD = """
from torch.distributions import Beta, Normal

def step(x: Tensor, scale: Tensor):
"""
CASES = {
    "where it is made": (
        "return Beta(x, scale).sample()",
        "return Beta(x, scale, validate_args=False).sample()",
    ),
    "one argument a line": (
        "return Normal(\n        x,\n        scale,\n    ).rsample()",
        "return Normal(\n        x,\n        scale,\n        validate_args=False,\n    ).rsample()",
    ),
    "asked later": (
        "made = Normal(0.0, scale)\n    return made.log_prob(x)",
        "made = Normal(0.0, scale, validate_args=False)\n    return made.log_prob(x)",
    ),
    "asked at once": (
        "return Normal(0.0, scale).log_prob(x)",
        "return Normal(0.0, scale, validate_args=False).log_prob(x)",
    ),
    "tested on purpose": ("return Normal(x, scale, validate_args=True).sample()", ""),
    "options from elsewhere": ("return Normal(x, **scale).sample()", ""),
    "made elsewhere": ("return x.made.log_prob(x)", ""),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_arguments_are_not_tested_on_request(before: str, after: str) -> None:
    wanted = f"{HEAD}    {after}\n" if after else ""
    check_fix(f"{HEAD}    {before}\n", wanted, SHOWN, code="TPF108")


def test_arguments_stay_tested_unless_a_person_says_otherwise() -> None:
    check_fix(f"{HEAD}    return Normal(x, scale).sample()\n", "", UNSAFE, code="TPF108")


def test_valid_arguments_give_the_same() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.5, 1.5])
    made = (torch.distributions.Normal(x, 1.0, validate_args=on) for on in (True, False))
    one, other = (each.log_prob(x) for each in made)
    assert torch.equal(one, other)
