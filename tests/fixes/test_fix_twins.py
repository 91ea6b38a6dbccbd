"""Rows that stand in parallel are rewritten together or not at all; one edit has one fix."""

from __future__ import annotations

import ast
import textwrap

import pytest
from fixing import UNSAFE, check_fix, rows
from linting import ALL, PRELUDE

from flake8_torchperf.findings.rule import SAFETIES
from flake8_torchperf.linter import lint

LEFT = {
    "an assignment of three": """
        def f(x: Tensor):
            o = torch.tensor([0.0, 0.0, 0.0], device=x.device)
            h = torch.tensor([1.0, 0.0, -0.5], device=x.device)
            k = torch.tensor([0.0, 1.0, 0.0], device=x.device)
            return o, h, k
    """,
    "an item beside one that stays": """
        def f(x: Tensor, pick):
            for _ in range(3):
                pick(torch.tensor(0.0, device="cuda"), torch.tensor(0.5, device="cpu"))
    """,
}


@rows(LEFT)
def test_a_row_of_which_another_item_stays_is_left(row: str) -> None:
    check_fix(row, "", code="TPF502")


def test_parts_of_one_tensor_are_filled_in_one_way() -> None:
    check_fix(
        """
        def positions(x: Tensor, chosen: Tensor, ids: Tensor, lens: Tensor, row):
            rejected = ids[:, 0] > 0
            x[chosen] = row(chosen)
            x[rejected] = (ids - lens)[rejected]
            return x
        """,
        "",
        UNSAFE,
    )


def test_all_rows_change_together() -> None:
    check_fix(
        """
        def f(x: Tensor):
            adv = torch.tensor(0., device=x.device)
            feat = torch.tensor(1., device=x.device)
            both = [torch.tensor(0., device=x.device), torch.tensor(2., device=x.device)]
            return adv, feat, both
        """,
        """
        def f(x: Tensor):
            adv = torch.zeros((), device=x.device)
            feat = torch.ones((), device=x.device)
            both = [torch.zeros((), device=x.device), torch.full((), 2., device=x.device)]
            return adv, feat, both
        """,
        code="TPF502",
    )


def test_a_safe_and_an_unsafe_fix_complete_one_row() -> None:
    check_fix(
        """
        def f(x: Tensor, low: float):
            a = torch.tensor(0., device=x.device)
            b = torch.tensor(low, device=x.device)
            return a, b
        """,
        """
        def f(x: Tensor, low: float):
            a = torch.zeros((), device=x.device)
            b = torch.full((), low, device=x.device)
            return a, b
        """,
        UNSAFE,
        code="TPF502",
    )


TWINS = {
    "pinned in the same expression": "return torch.stack([x.cpu()]).pin_memory().to(x.device)",
    "a number": "return x + torch.tensor(0.5, device=x.device)",
}


@pytest.mark.parametrize("line", TWINS.values(), ids=TWINS)
def test_no_two_fixes_rewrite_the_same_code(line: str) -> None:
    text = PRELUDE + textwrap.dedent(f"""
        def f(x: Tensor):
            {line}
    """)
    found = lint(text, "model.py", ALL, frozenset(SAFETIES))
    edits = [edit for one in found for edit in one.edits]
    assert edits
    assert len({tuple(map(ast.dump, edit.nodes)) for edit in edits}) == len(edits)
