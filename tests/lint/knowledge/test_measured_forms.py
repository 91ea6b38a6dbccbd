"""Assignments, indexes and copies that an H100 was asked about: what waited is reported, no more.

Each form stands in a loop of a function that makes what it names on the device, or on the host.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linting import ALL, PRELUDE

from flake8_torchperf.linter import lint

DATA = Path(__file__).parents[2] / "data"
ISSUE = json.loads((DATA / "assignments-h100.json").read_bytes())
AGAIN = json.loads((DATA / "forms-h100.json").read_bytes())

# Spelt in the measurement for people.
SPELT = {
    "v[0] = h0 (host 0-d)": "v[0] = h0",
    "v[0] = s (device 0-d)": "v[0] = s",
    "v[1:6] = hv (host)": "v[1:6] = hv",
    "v * h0 (host 0-d)": "v * h0",
    "F.pad": "F.pad(x, (1, 1))",
    "torch.nn.utils.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_([x], 1.0)",
    "print": "print(v)",
    "float16 cast": "v.to(torch.float16)",
}
WAITS = {SPELT.get(text, text): waited for text, waited in ISSUE["forms"].items()} | {
    text: by != "none" for text, by in AGAIN["forms"].items()
}

PROGRAM = """
def run(d: torch.device, n: int):
    v = torch.rand(64, device="cuda")
    x = torch.rand(64, 64, device="cuda")
    b = torch.zeros(64, dtype=torch.bool, device="cuda")
    li = torch.arange(64, device="cuda")
    m = torch.arange(64, device="cuda") % 2 == 0
    mm = x > 0.5
    ids = torch.arange(3, device="cuda")
    i2 = torch.arange(3, device="cuda") + 1
    s = torch.rand((), device="cuda")
    h0 = torch.ones(())
    hv = torch.ones(5)
    hids = torch.arange(3)
    for _ in range(9):
        {form}
"""


def test_every_form_of_the_issue_is_asked_about() -> None:
    assert len(ISSUE["forms"]) == 81
    assert len(WAITS) > 127


@pytest.mark.parametrize("form", WAITS)
def test_what_waited_is_reported_and_nothing_else(form: str) -> None:
    source = PRELUDE + PROGRAM.format(form=form)
    found = lint(source, "model.py", ALL)
    line = source[: source.index(f"        {form}\n")].count("\n") + 1
    told = [f"{f.code} {f.message}" for f in found if f.line == line]
    assert bool(told) == WAITS[form], told
    assert [f.line for f in found if f.line != line] == []
