"""Four times as many findings take four times the steps, from the source to what is printed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from weighing import weighed

from flake8_torchperf.findings.rule import SAFETIES
from flake8_torchperf.linter import MARKED
from flake8_torchperf.options import Options
from flake8_torchperf.pipeline import LintText, found_in

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

from finding_shapes import FINDINGS

# Each counts the steps of many modules.
pytestmark = pytest.mark.slow

# Other tests of a process may leave settings of the plugin behind.
OPTIONS = Options()
# What an editor and `check --format json` plan.
EVERY_FIX = frozenset(SAFETIES)
FEW, SMALL = 2, 12
# How much more than in proportion. A read looks at some reads behind it, of which the last in a
# function have fewer: what plans all fixes is allowed more.
AT_MOST = {MARKED: 1.02, EVERY_FIX: 1.25}


def steps(folder: Path, texts: dict[str, str], safeties: frozenset[str]) -> tuple[int, int]:
    """Return the lines that Python runs for the last file of a package, and its findings.

    Lines, since a search in a comprehension calls nothing: each time round is a line again.
    """
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    path, text = folder / name, text
    lines = text.splitlines(keepends=True)
    source = LintText(lines, str(path), lambda line: None, ast.parse(text))
    spent = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal spent
        spent += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        found = found_in(source, OPTIONS, safeties=safeties).records
    finally:
        sys.settrace(before)
    return spent, len(found)


@pytest.mark.parametrize(
    ("name", "safeties"),
    [
        *((name, MARKED) for name in FINDINGS),
        *((name, EVERY_FIX) for name in FINDINGS if "in one function" in name),
    ],
)
def test_steps_grow_with_the_findings(name: str, safeties: frozenset[str], tmp_path: Path) -> None:
    make = FINDINGS[name]
    measured = []
    # The first of all loads what is loaded once.
    for turn, count in enumerate((FEW, FEW, SMALL, 4 * SMALL)):
        folder = tmp_path / str(turn) / "package"
        folder.mkdir(parents=True)
        measured.append(steps(folder, make(count), safeties))
    _, (fixed, few), (one, some), (four, many) = measured
    assert (some, many) == tuple(few * count // FEW for count in (SMALL, 4 * SMALL))
    in_proportion = (one - fixed) * (4 * SMALL - FEW) / (SMALL - FEW)
    assert four - fixed < AT_MOST[safeties] * in_proportion, f"{fixed:,}, {one:,}, {four:,} steps"


def test_steps_grow_with_what_stands_behind_other_waits(tmp_path: Path) -> None:
    """Each wait stands behind the one before, and the first behind one that stays."""
    measured = []
    for turn, count in enumerate((FEW, FEW, SMALL, 4 * SMALL)):
        folder = tmp_path / str(turn) / "package"
        folder.mkdir(parents=True)
        behind = "".join(f"        if x.sum() > {i}:\n            n += 1\n" for i in range(count))
        text = (
            "import torch\n\n\ndef matched(x: torch.Tensor):\n    return sorted(x.cpu())\n\n\n"
            "class Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n"
            f"        n, found = 0, matched(x)\n{behind}        return found, n\n"
        )
        with weighed({}, threshold=0.4):
            measured.append(steps(folder, {"net.py": text}, MARKED))
    _, (fixed, few), (one, some), (four, many) = measured
    assert few == some == many == 1  # in `matched`
    in_proportion = (one - fixed) * (4 * SMALL - FEW) / (SMALL - FEW)
    assert four - fixed < AT_MOST[MARKED] * in_proportion, f"{fixed:,}, {one:,}, {four:,} steps"
