"""A file that does not parse never passes, whether it mentions torch or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_run import check, torchperf

READS = "import torch\n\n\ndef f(x: torch.Tensor):\n    for _ in range(9):\n        x.item()\n"
BROKEN = "x = 1\ndef f(:\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file with a finding between two that do not parse, one of which mentions torch."""
    (tmp_path / "a.py").write_text(BROKEN)
    (tmp_path / "b.py").write_text(READS)
    (tmp_path / "c.py").write_text("import torch\n" + BROKEN)
    (tmp_path / "d.py").write_text("x = 1\n")
    return tmp_path


def test_check_says_each_file_once_and_lints_the_others(folder: Path, tmp_path: Path) -> None:
    for _ in range(2):
        run = check(".", cwd=folder, cache=tmp_path / "cache")
        assert (run.status, run.codes) == (2, ["TPF101"])
        a, c = run.errors.splitlines()
        assert a.startswith("torchperf: check: ./a.py:2: not analysed: SyntaxError: invalid syntax")
        assert c.startswith("torchperf: check: ./c.py:3: not analysed: SyntaxError: invalid syntax")


def test_fix_says_each_file_once_and_fixes_the_others(folder: Path) -> None:
    run = torchperf("fix", "--isolated", ".", cwd=folder)
    assert run.status == 2
    a, c, summary = run.errors.splitlines()
    assert a.startswith("torchperf: fix: ./a.py:2: not analysed: SyntaxError: invalid syntax")
    assert c.startswith("torchperf: fix: ./c.py:3: not analysed: SyntaxError: invalid syntax")
    assert summary.endswith("1 left")


@pytest.mark.parametrize(
    "source",
    [BROKEN, "x = '\n", "def f():\nreturn 1\n", "x = 1\x00\n", "  x = 1\n", "x = " + "(" * 300],
    ids=["definition", "string", "indentation", "null byte", "first indentation", "brackets"],
)
@pytest.mark.parametrize("head", ["", "import torch\n"])
def test_whatever_keeps_it_from_parsing(tmp_path: Path, head: str, source: str) -> None:
    (tmp_path / "a.py").write_text(head + source)
    run = check("a.py", cwd=tmp_path)
    assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
    assert torchperf("fix", "--isolated", "a.py", cwd=tmp_path).status == 2


def test_what_the_parser_takes_passes_though_the_compiler_would_not(tmp_path: Path) -> None:
    """As for files that mention torch, whose ast flake8 builds."""
    (tmp_path / "a.py").write_text("return 1\nnonlocal x\nfrom a import *\n'\\d'\n")
    run = check("a.py", cwd=tmp_path)
    assert (run.status, run.output, run.errors) == (0, "", "")


@pytest.mark.parametrize("head", ["", "import torch\n"])
def test_what_is_no_text_to_python_does_not_pass(tmp_path: Path, head: str) -> None:
    (tmp_path / "a.py").write_bytes(head.encode() + b"x = 1\n\n" + b"y = '\xff'\n")
    run = check("a.py", cwd=tmp_path)
    assert (run.status, run.errors.count("\n")) == (2, 1)
    assert "a.py: taken for Latin-1, for Python can't read it: 'utf-8' codec" in run.errors
    run = torchperf("fix", "--isolated", "a.py", cwd=tmp_path)
    assert run.status == 2
    assert "a.py: not analysed: Python can't read it: 'utf-8' codec" in run.errors


def test_what_is_known_to_parse_is_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flake8_torchperf.cli import check_files
    from flake8_torchperf.cli.main import main

    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "same.py").write_text("x = 1\n")
    monkeypatch.setenv("TORCHPERF_CACHE_DIR", str(tmp_path / "cache"))
    parsed: list[str] = []
    monkeypatch.setattr(check_files, "require_python", parsed.append)
    arguments = ["check", "--isolated", "-j1", str(tmp_path / "a.py")]
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert main([*arguments[:3], str(tmp_path / "same.py")]) == 0
    assert parsed == ["x = 1\n"]
    (tmp_path / "a.py").write_text("x = 2\n")
    assert main(arguments) == 0
    assert parsed == ["x = 1\n", "x = 2\n"]


def test_check_with_fix_still_reports_the_others(folder: Path) -> None:
    run = check("--fix", ".", cwd=folder)
    assert (run.status, run.codes) == (2, ["TPF101"])


def test_both_exit_zero_options_still_let_it_pass(folder: Path) -> None:
    assert check("--exit-zero", ".", cwd=folder).status == 0
    assert check("--exit-zero-on-errors", "a.py", cwd=folder).status == 0
