"""What a function waits for of one mask is one finding, as long as nothing changes the mask."""

from __future__ import annotations

import textwrap

import pytest

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

HEAD = """\
import torch
from torch import Tensor, nn


class Layer(nn.Module):
    def forward(self, x: Tensor, y: Tensor, z: Tensor, flag: bool):
        valid = x > 0
"""
# The body of a step, and the lines of each row of indexes in it, counted from its first line.
CASES = {
    "one after another": ("a = x[valid]\nb = y[valid]\nreturn a, b", [[1, 2]]),
    "in one statement": ("return x[valid] + y[valid] + z[valid]", [[1, 1, 1]]),
    "other work in between": (
        "a = x[valid]\ny = nn.functional.relu(y @ z)\nreturn a, y[valid]",
        [[1, 3]],
    ),
    "a comparison": ("return x[z != 0], y[z != 0]", [[1, 1]]),
    "an attribute": (
        "self.valid = x > 0\na = x[self.valid]\nreturn a, y[self.valid]",
        [[2, 3]],
    ),
    "a branch behind it": ("a = x[valid]\nif flag:\n    a = a + y[valid]\nreturn a", [[1, 3]]),
    "other masks": ("return x[valid], y[~valid]", [[1], [1]]),
    "bound anew": ("a = x[valid]\nvalid = y > 0\nreturn a, y[valid]", [[1], [3]]),
    "changed in place": ("a = x[valid]\nvalid[0] = True\nreturn a, y[valid]", [[1], [3]]),
    "changed by a method": (
        "a = x[valid]\nvalid.logical_and_(z > 0)\nreturn a, y[valid]",
        [[1], [3]],
    ),
    "a part of it bound anew": ("a = x[z != 0]\nz = z + 1\nreturn a, y[z != 0]", [[1], [3]]),
    "the first in a branch": ("if flag:\n    x = x[valid]\nreturn x, y[valid]", [[2], [3]]),
    "two branches": ("if flag:\n    return x[valid]\nelse:\n    return y[valid]", [[2], [4]]),
    "the second in a loop": (
        "a = x[valid]\nfor i in range(9):\n    y = y * a.sum()\n    z = z[valid]\nreturn z",
        [[1], [4]],
    ),
    "both in a loop": (
        "for i in range(9):\n    y = y + x[valid].sum() + z[valid].sum()\nreturn y",
        [[2, 2]],
    ),
    "selected too": ("a = torch.masked_select(x, valid)\nreturn a, y[valid]", [[1, 2]]),
    "selected by a method": ("a = x.masked_select(valid)\nreturn a, y[valid]", [[1, 2]]),
    "in another shape": (
        "wide = valid.unsqueeze(-1).repeat(1, 4)\na = torch.masked_select(x, wide)\n"
        "return a, y[valid], torch.masked_select(z, valid.view(-1))",
        [[2, 3, 3]],
    ),
    "in another shape, of the mask before": (
        "wide = valid.repeat(1, 4)\na = x[valid]\nvalid = y > 0\n"
        "return a, torch.masked_select(y, wide)",
        [[2], [4]],
    ),
    "a shape of what is no name": (
        "flat = (y > 0).view(-1)\na = x[flat]\ny = y + 1\nreturn a, y[flat]",
        [[2, 4]],
    ),
    "an element of a mask": ("return x[0][valid[0]], y[0][valid[0]]", [[1, 1]]),
    "an element bound anew": (
        "a = x[0][valid[0]]\nvalid[0] = y[0] > 0\nreturn a, y[0][valid[0]]",
        [[1], [3]],
    ),
    "made by a call": (
        "return x[torch.isfinite(z)], y[torch.isfinite(z)]",
        [[1], [1]],
    ),
}


def lines_in_rows(body: str) -> list[list[int]]:
    """Return the lines of each row that is found in the body of a step, from its first line."""
    code = HEAD + textwrap.indent(body, " " * 8) + "\n"
    first = HEAD.count("\n")
    found: dict[str, list[int]] = {}
    for finding in lint(code, "model.py", Options(min_worth=0.0)):
        place = finding.row or f"{finding.line}:{finding.column}"
        found.setdefault(place, []).append(finding.line - first)
    return sorted(found.values())


@pytest.mark.parametrize(("body", "rows"), CASES.values(), ids=list(CASES))
def test_rows_of_masks(body: str, rows: list[list[int]]) -> None:
    assert lines_in_rows(body) == sorted(rows)


def test_the_message_names_the_others() -> None:
    code = HEAD + "        return x[valid], y[valid], z[valid]\n"
    lead = lint(code, "model.py", Options(min_worth=0.0))[0].lead
    assert "`x[valid]` waits for its size per step" in lead
    assert lead.endswith("; index by its nonzero() once")


# The body of a step, and the lines of each row of a test of a mask and indexes by it.
TESTS = {
    "how many": ("if valid.sum() > 0:\n    x = x[valid]\nreturn x", [[1, 2]]),
    "if any is set": ("if valid.any():\n    x = x[valid] + y[valid]\nreturn x", [[1, 2, 2]]),
    "none is set": ("if not valid.any():\n    return x\nreturn x[valid]", [[1, 3]]),
    "in another shape": (
        "wide = valid.unsqueeze(-1)\nif valid.any():\n    x = torch.masked_select(x, wide)\nreturn x",
        [[2, 3]],
    ),
    "behind the index": ("x = x[valid]\nif valid.any():\n    x = x + 1\nreturn x", [[1], [2]]),
    "another mask": ("if valid.any():\n    x = x[y > 0]\nreturn x", [[1], [2]]),
    "bound anew": ("if valid.any():\n    valid = y > 0\n    x = x[valid]\nreturn x", [[1], [3]]),
    "another question": ("if valid.all():\n    x = x[valid]\nreturn x", [[1], [2]]),
    "no index": (
        "if valid.any():\n    x = x + 1\nif valid.any():\n    x = x + 2\nreturn x",
        [[1], [3]],
    ),
}


@pytest.mark.parametrize(("body", "rows"), TESTS.values(), ids=list(TESTS))
def test_a_test_of_the_mask_leads(body: str, rows: list[list[int]]) -> None:
    assert lines_in_rows(body) == sorted(rows)
