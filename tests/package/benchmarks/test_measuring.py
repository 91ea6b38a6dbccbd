"""The benchmarks' scripts measure what they say, tried on little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hangs import HANG

ROOT = Path(__file__).resolve().parents[3]
READ = "import torch\n\n\ndef step(x: torch.Tensor):\n    return x.item()\n"
STORED = json.loads((ROOT / "benchmarks" / "ecosystem.json").read_text())


def run(script: str, *arguments: str | Path, status: int = 0, before: Path | None = None) -> str:
    """What a script printed; ``before`` is a folder that Python imports from before all others."""
    env = dict(os.environ) if before is None else {**os.environ, "PYTHONPATH": str(before)}
    env.pop("TORCHPERF_DEBUG", None)  # with it a mistake of ours is a traceback, and no finding
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)],
        capture_output=True, text=True, timeout=HANG, check=False, env=env,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


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
    assert len(STORED) == 12
    without = [name for name, one in STORED.items() if one["files"] == one["without_torch"]]
    assert without == ["requests"]
    for name, one in STORED.items():
        assert sum(one["codes"].values()) == len(one["places"])
        assert not (name in without and one["places"])
        assert "TPF900" not in one["codes"]


def test_a_file_is_without_torch_where_the_plugin_passes_it_over(tmp_path: Path) -> None:
    """A tensor's name may come from a module beside it, which alone says torch."""
    says = "from .own import Tensor\n\n\ndef step(x: Tensor):\n    return x\n"
    wheel(tmp_path, "requests", {"requests/a.py": says, "requests/b.py": "x = 1\n"})
    options = ("--only", "requests", "--jobs", "1", "--wheels", tmp_path)
    assert ": 2 files (1 without torch, 0 not Python)" in run("ecosystem.py", *options)
    (tmp_path / "a.py").write_text(
        f"import jax\n{READ.replace('torch.', '')}".replace("torch", "j")
    )
    (tmp_path / "b.py").write_text(READ)
    assert "2 files, 11 lines, 1 findings" in run("perf", "stages", tmp_path)


@pytest.mark.thorough
def test_growth_is_measured() -> None:
    told = run("perf", "growth", "--lines", "200", "--only", "file,terms,loops")
    (head, *rows, memory) = told.splitlines()
    assert head.split()[:4] == ["shape", "size", "lines", "seconds"]
    assert [row.split()[:2] for row in rows] == [
        ["file", "200"],
        ["terms", "3000"],
        ["loops", "200"],
    ]
    assert memory.startswith("memory at 200 lines: ")


@pytest.mark.slow
def test_each_way_of_running_flake8_is_timed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(READ)
    environment = Path(sys.executable).parent.parent
    table = run("perf", "cold", tmp_path, "--rounds", "1", "--before", environment).splitlines()
    results = {row[:24].strip(): row.split()[-1] for row in table[2:5]}
    assert results == {"flake8": "0", "flake8 + torchperf": "1", "flake8 + the one before": "1"}


def test_check_is_timed_empty_and_remembering(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(READ)
    table = run("perf", "check", tmp_path / "a.py", "--rounds", "1", "--jobs", "1").splitlines()
    assert [(row[:24].strip(), row.split()[-1]) for row in table[2:6]] == [
        ("flake8 --select TPF", "1"),
        ("check --no-cache", "1"),
        ("check, first run", "1"),
        ("check, second run", "1"),
    ]


@pytest.mark.thorough
def test_what_counting_costs_is_measured() -> None:
    pytest.importorskip("torch")
    told = run("perf", "counter", "--seconds", "0", "--only", "64-128-128-10")
    (_, head, row) = told.splitlines()
    assert head.split()[:3] == ["us/dispatch", "full", "reads"]
    assert row.split()[0] == "64-128-128-10"
    assert all(float(cell) > 0 for cell in row.split()[1:])


def test_what_cannot_be_measured_is_one_line(tmp_path: Path) -> None:
    told = run("perf", "cold", tmp_path / "nowhere", status=2)
    assert told.splitlines()[-1] == f"perf: error: there is no {tmp_path / 'nowhere'}"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("cold", ["--rounds", "1"]), ("check", ["--rounds", "1", "--jobs", "1"])],
)
def test_what_gives_up_is_not_timed(command: str, arguments: list[str], tmp_path: Path) -> None:
    """A plugin that fails on each file is the fastest of all."""
    broken = tmp_path / "broken"
    broken.mkdir()
    spoilt = "import sys\nsys.modules['flake8_torchperf.linter'] = None\n"
    (broken / "sitecustomize.py").write_text(spoilt)
    (tmp_path / "a.py").write_text(READ)
    told = run("perf", command, tmp_path / "a.py", *arguments, status=1, before=broken)
    assert "did not analyse every file" in told
    assert "TPF900" in told
