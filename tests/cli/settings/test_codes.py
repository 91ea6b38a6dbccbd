"""Codes that `check` and `fix` are given: one that no rule has ends the run, with the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_run import torchperf
from documents import HOUSE_RULE
from flake8_run import Run

READS = "import torch\n\n\ndef f(x: torch.Tensor):\n    for _ in range(9):\n        x.item()\n"
COMMANDS = pytest.mark.parametrize("command", ["check", "fix"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(READS)
    return tmp_path


def run(command: str, *words: str, cwd: Path) -> Run:
    return torchperf(command, "--no-cache", *words, "a.py", cwd=cwd)


@COMMANDS
@pytest.mark.parametrize(
    "option",
    [
        "--select=TPF20l",
        "--ignore=TPF20l",
        "--extend-select=TPF101,TPF20l",
        "--extend-ignore=TPF20l",
        "--per-file-ignores=b.py:TPF101 a.py:TPF101,TPF20l",
    ],
)
def test_an_unknown_code_on_the_command_line(folder: Path, command: str, option: str) -> None:
    told = run(command, option, cwd=folder)
    name = option.partition("=")[0]
    assert (told.status, told.output) == (2, "")
    assert told.errors == (
        f"torchperf: {command}: {name}: no rule has the code TPF20l; did you mean TPF201?\n"
    )


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("TPF2O1", "did you mean TPF201?"),
        ("tpf101", "did you mean TPF101?"),
        ("TFP101", "did you mean TPF101?"),
        ("TPF199", "did you mean TPF1"),
        ("TPF1011", "did you mean TPF101?"),
        ("read-of-a-tensor-value", "did you mean TPF101?"),
        ("F401", "torchperf rules lists them"),
        ("X", "torchperf rules lists them"),
    ],
)
def test_the_nearest_code(folder: Path, word: str, advice: str) -> None:
    told = run("check", f"--select={word}", cwd=folder)
    assert told.status == 2
    assert f"--select: no rule has the code {word}; {advice}" in told.errors


@pytest.mark.parametrize(
    ("command", "option", "code", "file"),
    [
        ("check", "select", "TPF20l", "setup.cfg"),
        ("check", "ignore", "TPF20l", ".flake8"),
        ("check", "ignore", "TPF299", "tox.ini"),
        ("check", "extend-select", "TPF299", "setup.cfg"),
        ("check", "extend_ignore", "TPF299", "setup.cfg"),
        ("check", "per-file-ignores", "TPF20l", "setup.cfg"),
        ("fix", "per-file-ignores", "TPF299", "setup.cfg"),
        ("fix", "select", "TPF299", "setup.cfg"),
    ],
)
def test_an_unknown_code_of_ours_in_the_configuration(
    folder: Path, command: str, option: str, code: str, file: str
) -> None:
    before = "b.py: E501\n    a.py: W5," if option == "per-file-ignores" else "E203, "
    (folder / file).write_text(f"[flake8]\n{option} = {before}{code}\n")
    told = run(command, cwd=folder)
    assert (told.status, told.output) == (2, "")
    assert told.errors.count("\n") == 1
    name = option.replace("_", "-")
    said = f"torchperf: {command}: flake8's configuration: {name}: no rule has the code {code}; "
    assert told.errors.startswith(f"{said}did you mean TPF2")


@COMMANDS
def test_codes_of_other_plugins_in_the_configuration(folder: Path, command: str) -> None:
    (folder / "tox.ini").write_text(
        "[flake8]\nselect = E, W503, B950, TPF\nignore = E203\nextend-ignore = D\n"
        "per-file-ignores =\n    x.py: E501\n    TPF.py, TPFtests/*: F401, TPF1\n"
    )
    told = run(command, cwd=folder)
    assert told.status == 1
    assert "no rule" not in told.errors


@pytest.mark.parametrize(
    "words",
    [
        ["--select=TPF900"],
        ["--select=TPF", "--ignore=TPF6,TPF10"],
        ["--select=E9"],
        ["--extend-select=E999,E902"],
        ["--select="],
        ["--per-file-ignores=b.py,C:TPF101,TPF2 c.py:T"],
    ],
)
def test_known_codes_and_prefixes(folder: Path, words: list[str]) -> None:
    assert "no rule" not in run("check", *words, cwd=folder).errors


def test_codes_of_pages_of_ones_own_are_known(folder: Path) -> None:
    (folder / "rules").mkdir()
    (folder / "rules" / "TPF701-house-rule.md").write_text(HOUSE_RULE)
    words = ["--rules=rules", "--select=TPF7", "--ignore=TPF701"]
    assert run("check", *words, cwd=folder).errors == ""
    assert "no rule has the code TPF7;" in run("check", *words[1:], cwd=folder).errors
