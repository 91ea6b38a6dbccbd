"""Pipes, devices and sockets that a run finds by itself: named in one line, and never read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from check_run import check, torchperf

from flake8_torchperf.cache.entries import Store
from flake8_torchperf.server.marks import settings_file

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")

READ = "import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.item()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(READ, encoding="utf-8")
    return tmp_path


def test_special_files_in_a_folder_are_skipped_with_a_line_each(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)  # the path of a socket must be short
    os.mkfifo(project / "pipe.py")
    os.mkfifo(project / "pipe.ipynb")
    (project / "endless.py").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket.py")
        for command in (["check", "--no-cache", "-j2"], ["fix", "--diff"]):
            run = torchperf(*command, "--isolated", cwd=project)
            assert run.status == 1
            name = command[0]
            assert sorted(run.errors.splitlines())[:4] == [
                f"torchperf: {name}: ./endless.py: skipped: it is a device, not a file",
                f"torchperf: {name}: ./pipe.ipynb: skipped: it is a pipe, not a file",
                f"torchperf: {name}: ./pipe.py: skipped: it is a pipe, not a file",
                f"torchperf: {name}: ./socket.py: skipped: it is a socket, not a file",
            ]
            found = run.output if name == "check" else run.errors
            assert ("./model.py:5:12: TPF101" if name == "check" else "1 left") in found


@pytest.mark.parametrize("command", ["check", "fix"])
def test_a_device_that_is_named_is_refused(project: Path, command: str) -> None:
    (project / "endless.py").symlink_to("/dev/zero")
    run = torchperf(command, "--isolated", "endless.py", cwd=project)
    assert (run.status, run.output) == (2, "")
    assert run.errors.startswith(f"torchperf: {command}: endless.py: is a device; write")
    assert run.errors.count("\n") == 1


def test_confirm_passes_over_a_pipe_in_a_folder(project: Path) -> None:
    (project / "model.py").write_text("", encoding="utf-8")
    os.mkfifo(project / "pipe.py")
    run = torchperf("confirm", ".", cwd=project)
    said = "torchperf: passed over: pipe.py cannot be read: it is a pipe, not a file"
    assert run.errors.splitlines()[0] == said


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.cfg", "tox.ini", ".flake8"])
def test_a_pipe_in_place_of_a_configuration_is_one_line(project: Path, name: str) -> None:
    os.mkfifo(project / name)
    said = f"{project / name}: it is a pipe, not a file\n"
    assert check(cwd=project, isolated=False).errors == f"torchperf: check: {said}"
    assert torchperf("why", "model.py:5", cwd=project).errors == f"torchperf: why: {said}"
    assert check(cwd=project).status == 1  # isolated: no configuration is read


def test_init_reads_no_pipe(project: Path) -> None:
    os.mkfifo(project / ".pre-commit-config.yaml")
    run = torchperf("init", cwd=project)
    said = "torchperf: init: .pre-commit-config.yaml cannot be read: it is a pipe, not a file\n"
    assert (run.status, run.errors) == (2, said)


@pytest.mark.parametrize("option", ["--baseline", "--profile", "--write-baseline"])
def test_a_pipe_in_place_of_a_data_file_is_one_line(project: Path, option: str) -> None:
    os.mkfifo(project / "data.json")
    run = check(option, "data.json", cwd=project)
    assert (run.status, run.output) == (2, "")
    assert run.errors.endswith("it is a pipe, not a file\n")
    assert run.errors.count("\n") == 1


@pytest.mark.parametrize("name", ["TPF701-mine.md", "conventions.toml"])
def test_a_pipe_in_place_of_a_rule_page_is_one_line(project: Path, name: str) -> None:
    (project / "rules").mkdir()
    os.mkfifo(project / "rules" / name)
    run = check("--rules", "rules", cwd=project)
    assert (run.status, run.output) == (2, "")
    assert run.errors.endswith("cannot be read: it is a pipe, not a file\n")
    assert run.errors.count("\n") == 1


def test_a_search_for_named_functions_reads_no_pipe_of_the_package(project: Path) -> None:
    (project / "__init__.py").touch()
    os.mkfifo(project / "pipe.py")
    run = check("--hot=nothing_like_it", "model.py", cwd=project)
    assert "'nothing_like_it' names no function" in run.errors


def test_the_cache_reads_no_pipe(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    key = "ab" * 16
    store.put(key, "value")
    (entry,) = tmp_path.rglob(key)
    entry.unlink()
    os.mkfifo(entry)
    assert store.get(key) is None


def test_the_server_reads_no_pipe_for_settings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    assert settings_file(str(tmp_path)) == str(tmp_path / "pyproject.toml")
