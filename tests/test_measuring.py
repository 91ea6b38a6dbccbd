"""`benchmarks/ecosystem.py` and `benchmarks/growth.py` measure what they say, tried on little."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
READ = "import torch\n\n\ndef step(x: torch.Tensor):\n    return x.item()\n"
STORED = json.loads((ROOT / "benchmarks" / "ecosystem.json").read_text())


def run(script: str, *arguments: str | Path, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def wheel(folder: Path, name: str, files: dict[str, str]) -> None:
    """A wheel as the script looks for it, with the version that is stored."""
    path = folder / f"{name}-{STORED[name]['version']}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)


def test_what_came_and_what_went_is_printed(tmp_path: Path) -> None:
    wheel(tmp_path, "requests", {"requests/a.py": READ, "requests/b.py": "x = 1\n", "c.txt": READ})
    printed = run(
        "ecosystem.py",
        "--check",
        "--only",
        "requests",
        "--jobs",
        "1",
        "--wheels",
        tmp_path,
        status=1,
    )
    version = STORED["requests"]["version"]
    assert (
        f"requests {version}: 2 files (1 without torch, 0 not Python), 6 lines: TPF101 1" in printed
    )
    assert "+ requests: requests/a.py:5:12: TPF101" in printed
    assert f"! requests: files {STORED['requests']['files']} -> 2" in printed


def test_what_is_stored_says_nothing_of_code_without_torch() -> None:
    assert len(STORED) == 21
    without = [name for name, one in STORED.items() if one["files"] == one["without_torch"]]
    assert len(without) >= 8
    for name, one in STORED.items():
        assert sum(one["codes"].values()) == len(one["places"])
        assert not (name in without and one["places"])
        assert "TPF900" not in one["codes"]


@pytest.mark.parametrize("shape", ["file", "terms", "loops", "classes"])
def test_growth_is_measured(shape: str) -> None:
    (head, row) = run("growth.py", "--lines", "2000", "--only", shape, "--no-memory").splitlines()
    assert head.split()[:4] == ["shape", "size", "lines", "seconds"]
    assert row.startswith(shape)
