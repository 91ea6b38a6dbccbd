"""The table of weights is the one that `tools/fit_worth.py` fits to the committed evidence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hangs import HANG

from flake8_torchperf.judgement.worth.model import TABLE, weights

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "fit_worth.py"
SOURCE = {"source": "owner/name", "version": "1" * 40, "linter": "0" * 16}


def fitted(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the tool and return what it printed."""
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)


def written(file: Path, places: list[tuple[str, list[str]]], per_source: int = 20) -> None:
    """Write made-up places, by verdict and features, as those of several applications."""
    rows: list[dict[str, object]] = []
    for number, (verdict, features) in enumerate(places):
        if number % per_source == 0:
            rows.append({**SOURCE, "source": f"owner/name{number}"})
        rows.append({
            "sample": "made-up", "path": "a.py", "line": number + 1, "code": "TPF101",
            "verdict": verdict, "by_default": True, "match": "exact", "features": features,
        })  # fmt: skip
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_the_table_is_the_fitted_one() -> None:
    found = fitted("fit", "--check", "--picture", ROOT / "docs" / "worth.svg")
    assert found.returncode == 0, found.stderr


def test_weights_have_the_signs_that_reason_demands() -> None:
    of = weights().of
    rows = [name for name in of if name.startswith("left-out:")]
    lowering = ["callers:none", "place:branch", "queue:empty", "queue:little", *rows]
    assert all(of.get(name, 0) <= 0 for name in lowering)
    assert all(of.get(name, 0) >= 0 for name in ("cost:per-element", "rate:own-loop"))
    assert 0 < weights().threshold < 1


def test_evidence_is_weighed_by_the_verdicts(tmp_path: Path) -> None:
    good, bad, odd = ["kind:A"], ["kind:B"], ["kind:A", "queue:empty"]
    places = [("A", good), ("B", bad), ("A", good), ("C", bad), ("A", odd)] * 20
    written(tmp_path / "features.jsonl", places)
    table = tmp_path / "worth.toml"
    found = fitted("--features", tmp_path / "features.jsonl", "fit", "--table", table)
    assert found.returncode == 0, found.stderr
    rows = dict(row.split(" = ") for row in table.read_text().splitlines() if '"' in row[:1])
    assert float(rows['"kind:A"']) > 0 > float(rows['"kind:B"'])
    assert '"queue:empty"' not in rows  # all were worth telling, but it may not raise the worth
    again = fitted("--features", tmp_path / "features.jsonl", "fit", "--table", table, "--check")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no json\n", "features.jsonl:1: "),
        ('{"sample": "a"}\n', "features.jsonl:1: a place without a source above it"),
        (json.dumps(SOURCE) + "\n", "no place told by default is worth telling"),
    ],
)
def test_bad_input_gets_one_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "features.jsonl").write_text(text)
    found = fitted("--features", tmp_path / "features.jsonl", "fit", "--table", tmp_path / "t")
    assert found.returncode == 1
    assert told in found.stderr
    assert found.stderr.count("\n") == 1
    assert TABLE.is_file()
