"""All parts of a run's report say the same of a line: verdicts, headline, profile and contracts."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_run import check, torchperf

pytest.importorskip("torch")

PROGRAM = """
    import torch

    def one(x):
        return x.sum().item()

    def other(x):
        return x.sum().item()

    for step, part in enumerate(torch.nn.Parameter(torch.ones(50, 3)).split(1)):
        for call, x in ((one, torch.ones(3)), (other, part * step)):
            call(x)
    """
HOST, DEVICE = 5, 8


def run(folder: Path, name: str, program: str) -> tuple[dict[str, Any], dict[int, int], str]:
    """Return the report, the waits of each line in the profile, and the last line of the text."""
    (folder / name).write_text(dedent(program), encoding="utf-8")
    options = (
        "--contracts",
        "--sync-free",
        "o*",
        "--save-profile",
        "profile.json",
        "--json",
        "run.json",
    )
    done = torchperf("run", *options, name, cwd=folder)
    data = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    profile = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
    waits = {one["line"]: one["waits"] for one in profile["files"][name]}
    return data, waits, done.errors.splitlines()[-1]


def test_what_lies_on_the_host_waits_nowhere(tmp_path: Path) -> None:
    data, waits, headline = run(tmp_path, "decode.py", PROGRAM)
    assert [row["line"] for row in data["refuted"]] == [HOST]
    assert {row["line"]: row["count"] for row in data["confirmed"]} == {DEVICE: 50}
    assert (waits[HOST], waits[DEVICE]) == (0, 50)
    assert [row["line"] for row in data["broken_contracts"]] == [DEVICE]
    assert ", 50 host reads, " in headline
    told = check("--profile", "profile.json", "decode.py", cwd=tmp_path).results
    assert [row.line for row in told] == [DEVICE]


def test_a_test_stands_in_for_callers_with_a_device(tmp_path: Path) -> None:
    """Its tensors are made without a device, as those of the program are not."""
    program = """
        import torch

        def decode(x):
            return x.sum().item()

        decode(torch.ones(3))
        """
    data, waits, _ = run(tmp_path, "test_decode.py", program)
    assert data["refuted"] == []
    assert data["totals"]["host_reads"] == waits[5] == 1


def test_a_copy_to_the_host_counts_although_its_result_lies_there(tmp_path: Path) -> None:
    program = """
        import torch

        def decode(x):
            return (x * 2).cpu().tolist()

        decode(torch.nn.Parameter(torch.ones(3)).detach())
        """
    data, waits, _ = run(tmp_path, "decode.py", program)
    assert data["totals"]["host_reads"] == waits[5] == 1
