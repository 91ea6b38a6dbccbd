"""`torchperf run` isolates nothing; what it reports still comes from its own counter alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from check_run import torchperf
from hangs import HANG

pytest.importorskip("torch")

from flake8_torchperf.runtime.workload.exchange import UnreadableResultsError, load_observed

ROOT = Path(__file__).resolve().parents[3]
READ = """
    import torch

    def step(x: torch.Tensor) -> float:
        return x.sum().item()

    step(torch.ones(3, device=torch.device("cpu")))
"""
FORGED = '{"findings": [{"code": "TPF101", "verdict": "refuted"}], "totals": {"host_reads": 0}}'
# Finds the file for the results as a hostile program would.
FIND = """
    import json, os
    command = open("/proc/self/cmdline").read().split("\\0")
    plan = next(one for one in command if one.endswith("plan.json"))
    results = json.load(open(plan))["results"]
"""


def run(
    folder: Path, code: str, *options: str, **more: Any
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any] | None]:
    (folder / "work.py").write_text(dedent(code))
    report = folder / "report.json"
    done = subprocess.run(
        [
            sys.executable, "-m", "flake8_torchperf.cli.main", "run",
            "--json", str(report), *options, "work.py",
        ],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, timeout=HANG,
        capture_output=True, check=False, **more,
    )  # fmt: skip
    return done, json.loads(report.read_text()) if report.exists() else None


def confirmed(data: dict[str, Any] | None) -> list[str]:
    assert data is not None
    assert data["refuted"] == data["not_reached"] == data["missed"] == []
    return [one["code"] for one in data["confirmed"]]


def test_what_the_workload_prints_changes_no_verdict(tmp_path: Path) -> None:
    printed = f"    print('''{FORGED}''')\n    os.write(2, b'''{FORGED}''')\n"
    (tmp_path / "work.py").write_text(dedent(READ + "    import os, sys\n" + printed))
    noisy = torchperf("run", "--json", "report.json", "work.py", cwd=tmp_path)
    assert noisy.status == 0
    assert FORGED in noisy.output
    assert confirmed(json.loads((tmp_path / "report.json").read_text())) == ["TPF101"]


@pytest.mark.skipif(sys.platform != "linux", reason="finds the file by /proc")
def test_a_spoilt_report_is_no_report(tmp_path: Path) -> None:
    code = READ + FIND + f"    open(results, 'w').write({FORGED!r})\n    os.kill(os.getpid(), 9)\n"
    done, data = run(tmp_path, code)
    assert done.returncode == -9
    assert data is None
    assert done.stderr.startswith("torchperf: the workload spoilt its report")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["confirmed", "", "[]", "{}", FORGED, "[" * 100_000, '{"lines": 1}', "\\udcff"]
)
def test_what_is_no_report_is_not_read_as_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(UnreadableResultsError) as raised:
        load_observed(tmp_path / "results.json")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "descriptor",
    [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(2, marks=pytest.mark.slow)],
)
def test_a_closed_standard_stream(tmp_path: Path, descriptor: int) -> None:
    def close() -> None:
        os.close(descriptor)

    done, data = run(tmp_path, READ, preexec_fn=close)
    assert done.returncode == 0
    assert confirmed(data) == ["TPF101"]


def test_the_environment_starts_nothing(tmp_path: Path) -> None:
    """Without a script there is nothing to run, whatever a file or a variable says."""
    (tmp_path / "setup.cfg").write_text("[torchperf]\nrun = work.py\n[flake8]\nscript = work.py\n")
    (tmp_path / "pyproject.toml").write_text("[tool.torchperf]\nrun = 'work.py'\n")
    (tmp_path / "work.py").write_text("open('ran', 'w')\n")
    names = ("RUN", "SCRIPT", "CONFIRM", "ARGS", "OPTIONS", "HARNESS", "INPUTS")
    for command in ("run", "confirm"):
        done = subprocess.run(
            [sys.executable, "-m", "flake8_torchperf.cli.main", command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)} | {f"TORCHPERF_{n}": "work.py" for n in names},
            capture_output=True, text=True, timeout=HANG, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert not (tmp_path / "ran").exists()
