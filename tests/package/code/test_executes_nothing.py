"""Linting executes nothing of what it lints: a project that would leave a mark wherever it is run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from hangs import HANG
from marking import marked_environment, marks_of, project_in

DRIVER = Path(__file__).with_name("audited.py")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project's folder; beside it lies the folder for marks."""
    return project_in(tmp_path)


def script(name: str) -> str:
    """The installed command: unlike ``python -m``, it does not put the folder on the path."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found, f"{name} is not installed beside {sys.executable}"
    return found


def run(project: Path, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=project, env=marked_environment(), input=text, capture_output=True, text=True,
        timeout=HANG, check=False,
    )  # fmt: skip


def test_the_marks_work(project: Path) -> None:
    """Were it run, it would show: so the absence of marks means something."""
    run(project, sys.executable, "-c", "import package.inner")
    run(project, sys.executable, "-c", "import helper")
    # helper ends where the project's own torch.py has no Tensor, after its first mark.
    assert marks_of(project) == ["helper", "inner", "inner-class", "package", "torch.py"]


def with_slow(cases: Mapping[str, list[str]], *quick: str) -> list[ParameterSet]:
    """Return the cases for ``parametrize``; those that `quick` does not name are slow tests."""
    return [
        pytest.param(case, id=name, marks=[] if name in quick else [pytest.mark.slow])
        for name, case in cases.items()
    ]


LINTING = {
    "a file": ["model.py"],
    "the folder": ["."],
    "the folder by eight": ["-j8", "."],
    "cold code too": ["--torchperf-scope=all", "--torchperf-explain", "model.py", "helper.py"],
    "with flake8's own checks": ["--select=E,F,W,C,TPF", "--doctests", "--max-complexity=3", "."],
    "with the source": ["--show-source", "--statistics", "--benchmark", "."],
}  # fmt: skip


@pytest.mark.parametrize("arguments", with_slow(LINTING, "the folder", "cold code too"))
def test_flake8_leaves_no_mark(project: Path, arguments: list[str]) -> None:
    done = run(project, script("flake8"), *arguments)
    assert done.returncode == 1
    assert "model.py" in done.stdout
    assert "TPF" in done.stdout
    assert "TPF701" in done.stdout, "the project's own page was read"
    assert marks_of(project) == []


def test_flake8_on_standard_input_leaves_no_mark(project: Path) -> None:
    text = (project / "model.py").read_text()
    done = run(project, script("flake8"), "--stdin-display-name=model.py", "-", text=text)
    assert "TPF" in done.stdout
    assert marks_of(project) == []


CHECKING = {
    "once": ["."],
    "with four processes": ["-j4", "."],
    "cold code too": ["--torchperf-scope=all", "--torchperf-explain", "."],
    "without memory": ["--no-cache", "model.py"],
}


@pytest.mark.parametrize("arguments", with_slow(CHECKING, "once", "with four processes"))
def test_torchperf_check_leaves_no_mark(project: Path, arguments: list[str]) -> None:
    """Twice: the second time from what is remembered."""
    folder = project.parent / "memory"
    memory = [] if "--no-cache" in arguments else ["--cache-dir", str(folder)]
    first, second = (run(project, script("torchperf"), "check", *memory, *arguments) for _ in "12")
    assert "TPF701" in first.stdout
    assert (first.stdout, first.returncode) == (second.stdout, second.returncode)
    assert marks_of(project) == []
    assert folder.exists() == bool(memory)


TELLING = {
    "explain": ["explain", "TPF203"],
    "explain as json": ["explain", "TPF203", "--format", "json"],
    "why": ["why", "model.py:3"],
    "rules": ["rules"],
    "rules as json": ["rules", "--format", "json"],
    "skill": ["skill"],
    "help": ["--help"],
    "an unknown command": ["chekc", "model.py"],
    "confirm without a path": ["confirm"],
    "run without a script": ["run"],
}  # fmt: skip


@pytest.mark.parametrize("arguments", list(TELLING.values()), ids=list(TELLING))
def test_torchperf_leaves_no_mark(project: Path, arguments: list[str]) -> None:
    done = run(project, script("torchperf"), *arguments)
    assert done.stdout or done.stderr
    assert "Traceback" not in done.stderr
    assert marks_of(project) == []


def audited(project: Path, *command: str) -> dict[str, object]:
    report = project.parent / "report.json"
    done = run(project, sys.executable, str(DRIVER), str(project), str(report), *command)
    assert report.exists(), done.stderr
    found: dict[str, object] = json.loads(report.read_text())
    assert "Traceback" not in done.stderr, done.stderr
    return found


# Findings, pages, and a command line without what there is to run.
STATUS = {
    "flake8 -j1": 1, "torchperf explain": 0, "torchperf rules": 0, "torchperf confirm": 2,
    "torchperf run": 2, "torchperf check": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ["flake8", "-j1", "."],
        ["flake8", "-j1", "--torchperf-scope=all", "--torchperf-explain", "model.py"],
        ["torchperf", "check", "--no-cache", "-j1", "."],
        ["torchperf", "explain", "TPF203"],
        ["torchperf", "rules"],
        ["torchperf", "confirm"],
        ["torchperf", "run"],
    ],
    ids=" ".join,
)
def test_no_process_no_socket_no_file_written(project: Path, command: list[str]) -> None:
    found = audited(project, *command)
    assert found["status"] == STATUS[" ".join(command[:2])]
    assert found["events"] == []
    assert found["loaded"] == [], "neither torch nor anything of the project is imported"
    assert marks_of(project) == []


def test_the_audit_sees_what_it_looks_for(project: Path) -> None:
    """`confirm` with a path starts a process: that this shows is what makes the rest worth it."""
    if find_spec("torch") is None:
        pytest.skip("confirm needs torch")
    (project / "cold.py").write_text("import torch\n\n\ndef step(x: torch.Tensor):\n    x.item()\n")
    found = audited(project, "torchperf", "confirm", "cold.py")
    assert "subprocess.Popen" in str(found["events"])
