"""`torchperf check` on a terminal, interrupted, with broken files, and in installed folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from check_run import check
from flake8_run import flake8
from hangs import HANG
from signals import hear_ctrl_c

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

import pty

from terminal import on_terminal

from flake8_torchperf.cli.report import progress

READ = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""
COMMAND = (sys.executable, "-m", "flake8_torchperf.cli.main", "check", "--isolated", "--no-cache")


def many(folder: Path, files: int = 600, functions: int = 60) -> None:
    """A file that is linted at once, and behind it work for seconds."""
    (folder / "a.py").write_text(READ)
    body = READ.partition("\n\n\n")[2]
    text = "\n\n".join(body.replace("report", f"report_{n}") for n in range(functions))
    for number in range(files):
        (folder / f"b{number:03}.py").write_text(f"import torch\n\n\n{text}")


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_ctrl_c_ends_with_130_and_what_was_found(tmp_path: Path, jobs: str) -> None:
    many(tmp_path)
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [*COMMAND, jobs, "--color=never", "."],
        cwd=tmp_path,
        stdout=theirs,
        stderr=subprocess.PIPE,
        preexec_fn=hear_ctrl_c,
    )
    os.close(theirs)
    output = b""
    while b"a.py:5:13: TPF101" not in output:
        output += os.read(ours, 65536)
    assert started.poll() is None, "the findings came as soon as there were any"
    started.send_signal(signal.SIGINT)
    try:
        while part := os.read(ours, 65536):
            output += part
    except OSError:
        pass  # Linux, where the other end was closed
    assert started.stderr is not None
    errors = started.stderr.read().decode()
    started.stderr.close()
    assert started.wait(timeout=HANG) == 130
    os.close(ours)
    assert "torchperf: check: interrupted; not all files were linted" in errors
    assert "Traceback" not in errors
    assert b"b599.py" not in output


def test_ctrl_c_without_a_terminal_prints_what_was_found(tmp_path: Path) -> None:
    many(tmp_path)
    entries = tmp_path / "cache" / "entries"
    command = [part for part in COMMAND if part != "--no-cache"]
    with subprocess.Popen(
        [*command, "-j1", f"--cache-dir={tmp_path / 'cache'}", "."],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_ctrl_c,
    ) as started:
        while len([*entries.glob("*/*")]) < 5 and started.poll() is None:
            time.sleep(0.02)  # until the first files are done
        started.send_signal(signal.SIGINT)
        output, errors = started.communicate(timeout=HANG)
    assert started.returncode == 130, errors
    assert b"./a.py:5:13: TPF101" in output
    assert b"b599.py" not in output
    assert b"interrupted" in errors


def test_a_terminal_gets_the_same_findings_in_the_same_order(tmp_path: Path) -> None:
    many(tmp_path, files=3, functions=2)
    (tmp_path / "0.py").write_text("import torch\n")
    expected = check("-j2", ".", "./a.py", cwd=tmp_path).output
    options = ("check", "--isolated", "--no-cache", "-j2", "--color=never")
    shown = on_terminal(*options, ".", "./a.py", cwd=tmp_path)
    assert shown.output.startswith(expected)
    assert shown.status == 1


def test_a_bar_appears_after_a_moment(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    many(tmp_path, files=9, functions=2)
    ours, theirs = pty.openpty()
    program = (
        "from flake8_torchperf.cli.report import progress\n"
        "progress.AFTER = 0.0\n"  # a run that takes longer than a person's moment is no test
        "from flake8_torchperf.cli.main import main\nraise SystemExit(main())"
    )
    done = subprocess.Popen(
        [sys.executable, "-c", program, *COMMAND[3:], "-j1", "."],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = b""
    assert done.stdout is not None
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass  # Linux, where the other end was closed
    output = done.stdout.read()
    done.stdout.close()
    assert done.wait(timeout=HANG) == 1
    os.close(ours)
    assert b"linting" in shown
    assert b"/10" in shown
    assert output.decode() == check("-j1", ".", cwd=tmp_path).output


def test_rich_is_not_imported_for_a_short_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(READ)
    code = (
        "import sys; from flake8_torchperf.cli.main import main; "
        "main(['check', '--isolated', '--no-cache', '.']); "
        "print([name for name in sys.modules if name.split('.')[0] in ('rich', 'libcst', 'torch')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert done.stdout.splitlines()[-1] == b"[]"
    assert progress.AFTER >= 1


@pytest.mark.parametrize("text", ["import torch\ndef (\n", "import torch\nx = '\0'\n"])
def test_a_file_that_cannot_be_parsed_makes_the_exit_status_2(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text(READ)
    (tmp_path / "broken.py").write_text(text)
    for options in ([], ["--extend-select=E9"], ["--format=json"]):
        run = check(*options, ".", cwd=tmp_path)
        assert run.status == 2, options
        assert "TPF101" in run.output
        assert check(*options, "--exit-zero-on-errors", ".", cwd=tmp_path).status == 1
        assert check(*options, "--exit-zero", ".", cwd=tmp_path).status == 0
    assert check("--exit-zero-on-errors", "broken.py", cwd=tmp_path).status == 0
    assert check("broken.py", cwd=tmp_path).status == 2
    assert check("--write-baseline=b.json", ".", cwd=tmp_path).status == 2


def test_installed_code_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    for name in (".venv", "venv", ".tox", ".nox", "node_modules", "lib/site-packages"):
        (tmp_path / name / "pkg").mkdir(parents=True)
        (tmp_path / name / "pkg" / "read.py").write_text(READ)
    (tmp_path / "a.py").write_text(READ)
    assert [one.path for one in check(".", cwd=tmp_path).results] == ["./a.py"]
    assert len(flake8("--select=TPF", ".", cwd=tmp_path).results) == 5
    assert len(check("venv", cwd=tmp_path).results) == 1
    assert len(check("lib/site-packages/pkg", cwd=tmp_path).results) == 1
    # Who says what to exclude has said it all.
    assert len(check("--exclude=venv", ".", cwd=tmp_path).results) == 6
