"""The benchmarks' scripts measure what they say, tried on little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
READ = "import torch\n\n\ndef step(x: torch.Tensor):\n    return x.item()\n"
STORED = json.loads((ROOT / "benchmarks" / "ecosystem.json").read_text())


def run(script: str, *arguments: str | Path, status: int = 0, before: Path | None = None) -> str:
    """What a script printed; ``before`` is a folder that Python imports from before all others."""
    env = dict(os.environ) if before is None else {**os.environ, "PYTHONPATH": str(before)}
    env.pop("TORCHPERF_DEBUG", None)  # with it a mistake of ours is a traceback, and no finding
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *map(str, arguments)],
        capture_output=True, text=True, timeout=240, check=False, env=env,
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
    assert len(STORED) == 21
    without = [name for name, one in STORED.items() if one["files"] == one["without_torch"]]
    assert len(without) >= 7
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
    assert "2 files, 11 lines, 1 findings" in run("stages.py", tmp_path)


@pytest.mark.parametrize("shape", ["file", "terms", "loops", "classes"])
def test_growth_is_measured(shape: str) -> None:
    (head, row) = run("growth.py", "--lines", "2000", "--only", shape, "--no-memory").splitlines()
    assert head.split()[:4] == ["shape", "size", "lines", "seconds"]
    assert row.startswith(shape)


def test_each_way_of_running_flake8_is_timed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(READ)
    environment = Path(sys.executable).parent.parent
    table = run("cold.py", tmp_path, "--rounds", "1", "--before", environment).splitlines()
    results = {row[:24].strip(): row.split()[-1] for row in table[2:5]}
    assert results == {"flake8": "0", "flake8 + torchperf": "1", "flake8 + the one before": "1"}


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("cold.py", ["--rounds", "1"]), ("check.py", ["--rounds", "1", "--jobs", "1"])],
)
def test_what_gives_up_is_not_timed(script: str, arguments: list[str], tmp_path: Path) -> None:
    """A plugin that fails on each file is the fastest of all."""
    broken = tmp_path / "broken"
    broken.mkdir()
    spoilt = "import sys\nsys.modules['flake8_torchperf.linter'] = None\n"
    (broken / "sitecustomize.py").write_text(spoilt)
    (tmp_path / "a.py").write_text(READ)
    told = run(script, tmp_path / "a.py", *arguments, status=1, before=broken)
    assert "did not analyse every file" in told
    assert "TPF900" in told
