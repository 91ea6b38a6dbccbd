"""Fixes keep the width of their file: what gets too long is wrapped, and not written if it can't be."""

from __future__ import annotations

import pytest
from fixing import UNSAFE, outcome
from linting import HOT, program

from flake8_torchperf.fixes.engine.lines.width import width_of, wrapped

FILLED = "x = 1\n" * 80
WIDTHS = {
    "a short file": ("x = 1\n", 100),
    "short lines": (FILLED, 100),
    "of black": (FILLED + "y = '" + "a" * 82 + "'\n", 88),
    "of pycodestyle": (FILLED + "y = '" + "a" * 72 + "'\n", 79),
    "wide": (FILLED + "y = '" + "a" * 110 + "'\n", 120),
    "with an address": ("x = 1\n" * 70 + "y = '" + "a" * 72 + "'\n# https://" + "a" * 80, 79),
    "with one line of data": (
        FILLED * 2 + "y = '" + "a" * 500 + "'\n" + "z = 1  # " + "a" * 70,
        79,
    ),
}


@pytest.mark.parametrize(("text", "width"), WIDTHS.values(), ids=WIDTHS)
def test_the_width_is_that_of_the_file(text: str, width: int) -> None:
    assert width_of(text) == width


LONG = "an_argument_of_a_long_name"
WRAPPED = {
    "a call": (
        f"y = f({LONG}, {LONG}, {LONG}, {LONG})\n",
        f"y = f(\n    {LONG}, {LONG}, {LONG}\n)\n".replace(f"{LONG}, {LONG}, {LONG}", f"{LONG},\n    {LONG},\n    {LONG},\n    {LONG},"),
    ),
    "the last of two": (
        f"y = g({LONG}).to({LONG}, {LONG}, non_blocking=True)\n",
        f"y = g({LONG}).to(\n    {LONG}, {LONG}, non_blocking=True\n)\n",
    ),
    "a comprehension": (
        f"y = [{LONG}({LONG}) for {LONG} in {LONG}.values() if {LONG}]\n",
        f"y = [\n    {LONG}({LONG})\n    for {LONG} in {LONG}.values()\n    if {LONG}\n]\n",
    ),
    "a subscript behind it": (
        f"y = g({LONG}).to({LONG}, {LONG}, non_blocking=True)[None, :]\n",
        f"y = g({LONG}).to(\n    {LONG}, {LONG}, non_blocking=True\n)[None, :]\n",
    ),
    "with a comment": (
        f"y = g({LONG}).to({LONG}, {LONG}, non_blocking=True)  # up\n",
        f"y = g({LONG}).to(  # up\n    {LONG}, {LONG}, non_blocking=True\n)\n",
    ),
    "in a block, with other line ends": (
        f"if 1:\r\n    y = g({LONG}).to({LONG}, {LONG}, device=True)\r\n",
        f"if 1:\r\n    y = g({LONG}).to(\r\n        {LONG}, {LONG}, device=True\r\n    )\r\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), WRAPPED.values(), ids=WRAPPED)
def test_a_long_line_is_wrapped_within_its_last_brackets(line: str, expected: str) -> None:
    before = FILLED + "y = '" + "a" * 72 + "'\n"
    assert wrapped(before, before + line) == (before + expected, True)


def test_old_lines_stay() -> None:
    before = FILLED + "y = '" + "a" * 72 + "'\n" + f"y = f({LONG}, {LONG}, {LONG}, {LONG})\n"
    assert wrapped(before, before + "z = 2\n") == (before + "z = 2\n", True)


def test_what_cannot_be_wrapped_is_not_written() -> None:
    name = "a_mask_of_a_very_long_name_that_says_what_is_selected_and_why_it_has_to_be_selected"
    source = program(f"""
        def step(x: Tensor, y: Tensor, {name}: Tensor):
            total = 0.0
            while x.sum() > {name}.sum():
                total = total + 1
            return total * torch.zeros(4).to(x.device)
        """)
    done = outcome(source, UNSAFE, HOT)
    width = width_of(source)
    assert all(len(line) <= width for line in done.text.splitlines())
    assert "torch.zeros(4, device=x.device)" in done.text


def test_a_line_that_was_too_long_before_stays_in_one_line() -> None:
    head = FILLED + "y = '" + "a" * 72 + "'\n"
    line = f"y = f({LONG}, {LONG}, {LONG}, {{}})\n"
    assert wrapped(head + line.format("z"), head + line.format("float(z)"))[0].endswith(
        line.format("float(z)")
    )
