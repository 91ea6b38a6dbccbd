"""Globs that name no function of what was linted are said once, with the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_run import check
from flake8_run import Run, flake8

ENGINE = """\
import torch


class Base:
    def prefill(self, x: torch.Tensor):
        return x


class Engine(Base):
    def decode_step(self, x: torch.Tensor):
        def inner(y):
            return y

        return inner(x)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package, one file of which says nothing of torch."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "engine.py").write_text(ENGINE)
    (tmp_path / "pkg" / "plain.py").write_text("async def plain(x):\n    return x\n")
    return tmp_path


def said(*words: str, cwd: Path, isolated: bool = True) -> tuple[int, list[str]]:
    """The status, and what is said twice: with an empty cache, and with a full one."""
    runs: list[Run] = [
        check(*words, cwd=cwd, cache=cwd / "cache", isolated=isolated) for _ in range(2)
    ]
    assert runs[0] == runs[1]
    return runs[0].status, runs[0].errors.splitlines()


@pytest.mark.parametrize("spelt", ["--sync-free", "--torchperf-sync-free"])
def test_a_contract_of_the_command_line_that_guards_nothing_fails(folder: Path, spelt: str) -> None:
    status, lines = said(spelt, "Engine.decode_stp,plain", "pkg", cwd=folder)
    assert lines == [
        "torchperf: check: --sync-free: 'Engine.decode_stp' names no function of what was linted; "
        "did you mean 'Engine.decode_step'?"
    ]
    assert status == 2


@pytest.mark.parametrize("name", ["hot", "cold"])
def test_heat_that_names_nothing_is_said(folder: Path, name: str) -> None:
    words = [f"--{name}", "decode_stp", f"--torchperf-{name}=decode_*,inner,plan", "pkg"]
    status, lines = said(*words, cwd=folder)
    assert (status, len(lines)) == (0, 2)
    assert lines[0].startswith(f"torchperf: check: --{name}: 'inner' names no function of what was")
    assert lines[1].endswith("'plan' names no function of what was linted; did you mean 'plain'?")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("setup.cfg", "[flake8]\ntorchperf-{} = nowhere_at_all\n"),
        ("pyproject.toml", '[tool.torchperf]\n{} = ["nowhere_at_all"]\n'),
    ],
)
@pytest.mark.parametrize("name", ["sync-free", "hot", "cold"])
def test_the_configuration_is_said_and_fails_nothing(
    folder: Path, file: str, text: str, name: str
) -> None:
    (folder / file).write_text(text.format(name))
    status, lines = said("pkg", cwd=folder, isolated=False)
    told = f"{name} in the configuration: 'nowhere_at_all' names no function of what was linted"
    assert (status, lines) == (0, [f"torchperf: check: {told}"])


@pytest.mark.parametrize(
    "words",
    [
        ["--sync-free=Engine.decode_*,decode_step,plain,Engine.prefill", "pkg"],
        ["--sync-free=Engine.decode_step", "--hot=plain", "pkg/plain.py"],
        ["--hot=*", "--cold=Base.*", "pkg/engine.py"],
    ],
    ids=["names, globs and a base's method", "in another file of the package", "wild"],
)
def test_what_names_a_function_is_not_said(folder: Path, words: list[str]) -> None:
    assert said(*words, cwd=folder)[1] == []


def test_flake8_refuses_a_contract_of_the_command_line_that_guards_nothing(folder: Path) -> None:
    run = flake8("--select=TPF", "--torchperf-sync-free=Engine.decode_stp,plain", "pkg", cwd=folder)
    told = "'Engine.decode_stp' names no function of what was linted; did you mean"
    error = f"flake8: error: --torchperf-sync-free: {told} 'Engine.decode_step'?\n"
    assert (run.status, run.output, run.errors) == (2, "", error)


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_flake8_says_which_other_globs_name_nothing(folder: Path, jobs: str) -> None:
    run = flake8("--select=TPF", jobs, "--torchperf-hot=plan", "pkg/plain.py", cwd=folder)
    told = "'plan' names no function of what was linted; did you mean 'plain'?"
    assert (run.status, run.errors) == (0, f"flake8: torchperf: --torchperf-hot: {told}\n")


def test_flake8_checks_the_configuration_where_it_lints_a_folder(folder: Path) -> None:
    """Hooks and editors lint single files, which need not define what the settings name."""
    (folder / "setup.cfg").write_text("[flake8]\ntorchperf-sync-free = nowhere_at_all\n")
    told = "sync-free in the configuration: 'nowhere_at_all' names no function of what was linted"
    for paths in ([], ["pkg"], ["pkg/plain.py", "pkg"]):
        run = flake8("--select=TPF", *paths, cwd=folder, isolated=False)
        assert (run.status, run.errors) == (0, f"flake8: torchperf: {told}\n")
    run = flake8("--select=TPF", "pkg/plain.py", cwd=folder, isolated=False)
    assert (run.status, run.errors) == (0, "")


def test_flake8_reads_standard_input_for_the_names_too(folder: Path) -> None:
    words = ["--select=TPF", "--torchperf-sync-free=decode_step", "-"]
    run = flake8(*words, cwd=folder, stdin=ENGINE)
    assert (run.status, run.errors) == (0, "")
