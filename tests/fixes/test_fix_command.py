"""``torchperf fix`` as a user runs it: what it writes, what it leaves alone, what it says."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from check_run import torchperf
from flake8_run import Run

from flake8_torchperf.fixes.engine.source_files import NotWrittenError, read_source, write

BEFORE = """\
import torch


def step(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        y = torch.zeros(4).to(x.device)  # zeros

        x = x + y
    return x
"""
AFTER = BEFORE.replace("torch.zeros(4).to(x.device)", "torch.zeros(4, device=x.device)")
READ = """\
import torch


def total(xs: list[torch.Tensor]) -> float:
    return [x.item() for x in xs]
"""
DIFF = """\
--- model.py
+++ model.py
@@ -3,7 +3,7 @@
 
 def step(x: torch.Tensor) -> torch.Tensor:
     for _ in range(3):
-        y = torch.zeros(4).to(x.device)  # zeros
+        y = torch.zeros(4, device=x.device)  # zeros
 
         x = x + y
     return x
"""  # noqa: W293


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(BEFORE)
    return path


def fix(*arguments: str | Path, cwd: Path, isolated: bool = True) -> Run:
    """``torchperf fix`` in a folder."""
    return torchperf("fix", *(["--isolated"] if isolated else []), *arguments, cwd=cwd)


def test_it_writes_and_a_second_run_changes_nothing(model: Path) -> None:
    run = fix("model.py", cwd=model.parent)
    assert run.output == "model.py:6:13: TPF501 fixed (device-argument, safe)\n"
    assert run.errors == "torchperf: fix: 1 finding fixed in 1 file, 0 left\n"
    assert (run.status, model.read_text()) == (0, AFTER)
    again = fix("model.py", cwd=model.parent)
    assert (again.status, again.output, model.read_text()) == (0, "", AFTER)


def test_a_diff_writes_nothing(model: Path) -> None:
    run = fix("--diff", "model.py", cwd=model.parent)
    assert (run.status, run.output) == (1, DIFF)
    assert run.errors == "torchperf: fix: 1 finding would be fixed in 1 file, 0 left\n"
    assert model.read_text() == BEFORE


def test_what_no_fix_can_change_is_left(model: Path) -> None:
    model.write_text(READ)
    run = fix("model.py", cwd=model.parent)
    assert (run.status, run.output, model.read_text()) == (1, "", READ)
    assert run.errors == "torchperf: fix: 0 findings fixed in 0 files, 1 left\n"


def test_flake8_shows_what_can_be_fixed(model: Path) -> None:
    run = torchperf("check", "--isolated", "--no-cache", "model.py", cwd=model.parent)
    assert run.output.endswith(" [fix]\n")
    model.write_text(READ)
    run = torchperf("check", "--isolated", "--no-cache", "model.py", cwd=model.parent)
    assert run.output
    assert "[fix]" not in run.output


def test_check_can_fix_first(model: Path) -> None:
    (model.parent / "read.py").write_text(READ)
    options = ("--isolated", "--no-cache", "--fix", ".")
    run = torchperf("check", *options, cwd=model.parent)
    assert run.status == 1
    assert "TPF501 fixed" in run.output
    assert "read.py:5:13: TPF101" in run.output
    assert model.read_text() == AFTER


SILENT = {
    "a comment": (BEFORE.replace("# zeros", "# noqa: TPF501"), "", ()),
    "a comment for all": (BEFORE.replace("# zeros", "# noqa"), "", ()),
    "a file's comment": ("# flake8: noqa\n" + BEFORE, "", ()),
    "another code": (BEFORE, "", ("--select=TPF101",)),
    "ignored": (BEFORE, "", ("--extend-ignore=TPF5",)),
    "ignored for the file": (BEFORE, "", ("--per-file-ignores=model.py:TPF501",)),
    "by configuration": (BEFORE, "[flake8]\nper-file-ignores =\n    model.py: TPF5\n", ()),
    "excluded": (BEFORE, "[flake8]\nexclude = model.py\n", ()),
}


@pytest.mark.parametrize(("text", "settings", "options"), SILENT.values(), ids=list(SILENT))
def test_what_is_not_reported_is_not_fixed(
    model: Path, text: str, settings: str, options: tuple[str, ...]
) -> None:
    model.write_text(text)
    (model.parent / "setup.cfg").write_text(settings)
    run = fix(*options, ".", cwd=model.parent, isolated=not settings)
    assert (run.output, model.read_text()) == ("", text)


def test_a_comment_for_another_code_is_none(model: Path) -> None:
    model.write_text(BEFORE.replace("# zeros", "# noqa: TPF101"))
    assert fix("model.py", cwd=model.parent).status == 0
    assert "device=x.device)  # noqa: TPF101\n" in model.read_text()


ENCODED = {
    "mark": b"\xef\xbb\xbf" + BEFORE.encode(),
    "line ends": BEFORE.replace("\n", "\r\n").encode(),
    "mixed line ends": BEFORE.replace("return x\n", "return x\r\n").encode(),
    "latin-1": ("# coding: latin-1\n# é\n" + BEFORE).encode("latin-1"),
    "no line end": BEFORE.rstrip("\n").encode(),
    "tabs": BEFORE.replace("    ", "\t").encode(),
    "form feed": BEFORE.replace("\n\n\n", "\n\x0c\n").encode(),
    "wide characters": BEFORE.replace("y =", 'text = "é\U0001f600"; y =').encode(),
}


@pytest.mark.parametrize("data", ENCODED.values(), ids=list(ENCODED))
def test_everything_else_stays_byte_for_byte(model: Path, data: bytes) -> None:
    model.write_bytes(data)
    fix("model.py", cwd=model.parent)
    wanted = data.replace(b"torch.zeros(4).to(x.device)", b"torch.zeros(4, device=x.device)")
    assert model.read_bytes() == wanted != data


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps no mode bits")
def test_the_mode_stays(model: Path) -> None:
    model.chmod(0o750)
    fix("model.py", cwd=model.parent)
    assert stat.S_IMODE(model.stat().st_mode) == 0o750
    assert model.read_text() == AFTER
    assert os.listdir(model.parent) == ["model.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows asks for a right to make links")
def test_a_symbolic_link_is_named_and_left_alone(model: Path) -> None:
    link = model.parent / "link.py"
    link.symlink_to(model)
    run = fix("link.py", cwd=model.parent)
    assert "fix: link.py: not fixed: it is a symbolic link; name the file" in run.errors
    assert (run.status, run.output) == (1, "")
    assert link.is_symlink()
    assert model.read_text() == BEFORE


def test_a_file_that_changed_meanwhile_is_left_alone(model: Path) -> None:
    source = read_source(str(model))
    model.write_text(READ)
    with pytest.raises(NotWrittenError, match="was changed meanwhile"):
        write(source, AFTER)
    assert model.read_text() == READ
    assert os.listdir(model.parent) == ["model.py"]


def test_a_read_only_file_is_left_alone(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(str(model))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # whoever runs this may be root
    with pytest.raises(NotWrittenError, match="is read-only"):
        write(source, AFTER)
    assert model.read_text() == BEFORE


@pytest.mark.parametrize("words", [[], ["--diff"]])
def test_a_file_that_its_owner_may_not_write_stays_for_root_too(
    model: Path, words: list[str]
) -> None:
    model.chmod(0o464)
    run = fix(*words, "model.py", cwd=model.parent)
    assert (run.status, run.output) == (1, "")
    assert run.errors.splitlines()[0] == "torchperf: fix: model.py: not fixed: it is read-only"
    assert (model.read_text(), model.stat().st_mode & 0o777) == (BEFORE, 0o464)


def test_text_that_the_encoding_cannot_hold_is_not_written(model: Path) -> None:
    model.write_bytes(("# coding: latin-1\n" + BEFORE).encode("latin-1"))
    source = read_source(str(model))
    with pytest.raises(NotWrittenError, match="is no iso-8859-1"):
        write(source, AFTER + "# \u20ac\n")
    assert os.listdir(model.parent) == ["model.py"]


def test_a_file_that_is_no_python_is_named(model: Path) -> None:
    broken = model.parent / "broken.py"
    broken.write_text("import torch\nx = (\n")
    run = fix(".", cwd=model.parent)
    assert "fix: ./broken.py:2: not analysed: " in run.errors
    assert broken.read_text() == "import torch\nx = (\n"
    assert model.read_text() == AFTER


def test_files_are_fixed_in_several_processes(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"m{number}.py").write_text(BEFORE)
    run = fix("-j2", ".", cwd=tmp_path)
    assert (run.status, len(run.output.splitlines())) == (0, 4)
    assert {path.read_text() for path in tmp_path.glob("*.py")} == {AFTER}


MISTAKES = {
    "unknown option": (["--unsave"], "there is no option --unsave; did you mean '--unsafe'?"),
    "standard input": (["-"], "- cannot be fixed; name a file"),
    "missing path": (["nowhere.py"], "nowhere.py: there is no such file or folder"),
}


@pytest.mark.parametrize(("options", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_wrong_command_line_is_one_line(model: Path, options: list[str], message: str) -> None:
    run = fix(*options, cwd=model.parent)
    assert (run.status, run.output) == (2, "")
    assert run.errors.startswith("torchperf")
    assert message in run.errors
    assert run.errors.count("\n") == 1


def test_help_names_its_options(tmp_path: Path) -> None:
    run = fix("--help", cwd=tmp_path)
    assert run.status == 0
    for option in ("--diff", "--unsafe", "--select", "--jobs"):
        assert option in run.output


CALLER = """\
import torch
from pkg.helper import made


def step(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x + made(x)
    return x
"""
HELPER = """\
import torch


def made(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(4).to(x.device)
"""


def test_files_of_one_package_settle_in_one_run(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    for name, text in (("__init__", ""), ("helper", HELPER), ("caller", CALLER)):
        (package / f"{name}.py").write_text(text)
    assert fix("pkg", cwd=tmp_path).status == 0
    texts = {path.name: path.read_text() for path in package.glob("*.py")}
    assert texts["helper.py"] == HELPER.replace(
        ".ones(4).to(x.device)", ".ones(4, device=x.device)"
    )
    assert fix("pkg", cwd=tmp_path).output == ""
    assert {path.name: path.read_text() for path in package.glob("*.py")} == texts
