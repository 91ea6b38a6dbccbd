"""Tensors that are made where they are used: TPF501 and TPF502."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from fixing import UNSAFE, check_fix

MADE = {
    "to a device": ("torch.zeros(n).to(x.device)", "torch.zeros(n, device=x.device)"),
    "by keyword": ("torch.ones(n).to(device=x.device)", "torch.ones(n, device=x.device)"),
    "dtype too": (
        "torch.zeros(n).to(x.device, x.dtype)",
        "torch.zeros(n, device=x.device, dtype=x.dtype)",
    ),
    "like another": (
        "torch.eye(n).to(x)",
        "torch.eye(n, device=x.device, dtype=x.dtype)",
    ),
    "type_as": ("torch.ones(n).type_as(x)", "torch.ones(n, device=x.device, dtype=x.dtype)"),
    "cuda": ("torch.ones(n).cuda()", 'torch.ones(n, device="cuda")'),
    "queued": (
        "torch.zeros(n).to(x.device, non_blocking=True)",
        "torch.zeros(n, device=x.device)",
    ),
    "whole numbers": ("torch.arange(n).to(x.device)", "torch.arange(n, device=x.device)"),
    "from and to": (
        "torch.arange(1, x.shape[0] + 1).to(x.device)",
        "torch.arange(1, x.shape[0] + 1, device=x.device)",
    ),
    "behind an index": (
        "torch.arange(n)[:, None].to(x.device)",
        "torch.arange(n, device=x.device)[:, None]",
    ),
    "behind a view": (
        "torch.zeros(n, 2).view(-1).unsqueeze(0).to(x.device)",
        "torch.zeros(n, 2, device=x.device).view(-1).unsqueeze(0)",
    ),
    "behind a cast": (
        "torch.arange(n).float().to(x.device)",
        "torch.arange(n, device=x.device).float()",
    ),
    "with a dtype": (
        "torch.zeros(n, dtype=torch.half).to(x.device)",
        "torch.zeros(n, dtype=torch.half, device=x.device)",
    ),
    "a full one": ("torch.full((n,), 0.1).to(x.device)", "torch.full((n,), 0.1, device=x.device)"),
    "in brackets": ("(torch.zeros(n).to(x.device))", "(torch.zeros(n, device=x.device))"),
}
STAY = {
    "rounded by each device": "torch.linspace(0, 1, n).to(x.device)",
    "perhaps fractions": "torch.arange(0.0, n, 0.1).to(x.device)",
    "fractions, then cast": "torch.arange(0.0, n, 0.1).long().to(x.device)",
    "rounded twice": "torch.full((n,), 0.1).to(x.device, torch.half)",
    "numbers in another dtype": "torch.arange(n).to(x)",
    "a leaf": "torch.zeros(n, requires_grad=True).to(x.device)",
    "one row many times": "torch.zeros(n).expand(4, -1).to(x.device)",
    "a device that is asked for": "torch.zeros(n).to(pick(x))",
    "two dtypes": "torch.zeros(n, dtype=torch.int).to(x.device, torch.half)",
    "another layout": "torch.zeros(n).to(x.device, memory_format=torch.channels_last)",
}
BODY = """
    def step(x: Tensor, n: int):
        for _ in range(3):
            y = {}
            x = x + y.sum()
        return x
"""


def rows(table: Mapping[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", list(table.values()), ids=list(table))


@rows(MADE)
def test_a_factory_makes_it_there(row: tuple[str, str]) -> None:
    before, after = row
    check_fix(BODY.format(before), BODY.format(after), code="TPF501")


@rows(STAY)
def test_what_might_become_another_tensor_stays(row: str) -> None:
    check_fix(BODY.format(row), "", code="TPF501")


LINES = """
    def step(x: Tensor, n: int):
        for _ in range(3):
            y = torch.zeros(
                n,  # rows
                3,  # columns
            ).to(x.device)
            z = torch.ones(
                n,
                3  # columns
            ).to(x.device)
            w = torch.ones(
                n
            ).to(x.device)
            x = x + y.sum() + z.sum() + w.sum()
        return x
"""
LINES_AFTER = """
    def step(x: Tensor, n: int):
        for _ in range(3):
            y = torch.zeros(
                n,  # rows
                3,  # columns
                device=x.device,
            )
            z = torch.ones(
                n,
                3,  # columns
                device=x.device
            )
            w = torch.ones(
                n,
                device=x.device
            )
            x = x + y.sum() + z.sum() + w.sum()
        return x
"""


def test_arguments_go_on_as_they_stand() -> None:
    check_fix(LINES, LINES_AFTER, code="TPF501")


def test_a_comment_that_would_be_lost_keeps_the_text() -> None:
    body = BODY.format("torch.zeros(n).to(  # here\n                x.device)")
    check_fix(body, "", code="TPF501")


def test_torch_may_be_imported_in_the_function() -> None:
    before = BODY.format("torch.zeros(n).to(x.device)").replace(
        "for _", "import torch\n        for _"
    )
    after = BODY.format("torch.zeros(n, device=x.device)").replace(
        "for _", "import torch\n        for _"
    )
    check_fix(before, after, code="TPF501")


def test_a_name_that_is_torch_no_longer_is_left_alone() -> None:
    before = BODY.format("torch.zeros(n).to(x.device)").replace(
        "for _", "torch = pick()\n        for _"
    )
    check_fix(before, "", code="TPF501")


def test_random_numbers_come_from_another_generator() -> None:
    before = BODY.format("torch.rand(n).to(x.device)")
    check_fix(before, "", code="TPF501")
    check_fix(before, BODY.format("torch.rand(n, device=x.device)"), UNSAFE, code="TPF501")
