"""Comments that silence findings: written for all of them, and reported where they silence none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from check_run import check, torchperf
from linting import PRELUDE, program

CODE = """
    def train(model, loader):
        for x in loader:
            loss = model(x).sum()
            loss.backward()
            a = loss.item(){first}
            b = float(
                loss{second}
            )
            print(a, b, len(loader)){third}
    """


def written(folder: Path, first: str = "", second: str = "", third: str = "") -> Path:
    path = folder / "model.py"
    path.write_text(program(CODE.format(first=first, second=second, third=third)))
    return path


def test_each_finding_of_a_row_gets_its_comment(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = path.read_text()
    run = check("--add-noqa", "--reason", "the log needs it", "model.py", cwd=tmp_path)
    assert (run.status, run.output) == (0, "")
    assert run.errors == "torchperf: check: # noqa added to 2 lines in 1 file\n"
    changed = [line for line in path.read_text().splitlines() if "noqa" in line]
    assert changed == [
        "        a = loss.item()  # noqa: TPF101 - the log needs it",
        "        b = float(  # noqa: TPF101 - the log needs it",
    ]
    assert check("--unused-noqa", "model.py", cwd=tmp_path).status == 0
    again = path.read_text()
    assert check("--add-noqa", "model.py", cwd=tmp_path).errors.endswith("0 lines in 0 files\n")
    assert path.read_text() == again != before


def test_line_ends_and_mode_survive(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    path.chmod(0o751)
    check("--add-noqa", "model.py", cwd=tmp_path)
    lines = path.read_bytes().split(b"\n")
    assert path.stat().st_mode & 0o777 == 0o751
    assert all(line.endswith(b"\r") for line in lines[:-1])
    assert sum(b"noqa: TPF101" in line for line in lines) == 2


def test_old_findings_need_no_comment(tmp_path: Path) -> None:
    path = written(tmp_path)
    check("--write-baseline", "old.json", "model.py", cwd=tmp_path)
    before = path.read_text()
    run = check("--baseline", "old.json", "--add-noqa", "model.py", cwd=tmp_path)
    assert (run.status, path.read_text()) == (0, before)


def test_an_old_finding_is_silenced_by_its_comment(tmp_path: Path) -> None:
    written(tmp_path)
    check("--write-baseline", "old.json", "model.py", cwd=tmp_path)
    written(tmp_path, first="  # noqa: TPF101")
    run = check("--baseline", "old.json", "--unused-noqa", "model.py", cwd=tmp_path)
    assert (run.status, run.output) == (0, "")


UNUSED = {
    "none here": (("", "", "  # noqa: TPF101"), ["15:35: TPF902 `# noqa: TPF101` silences nothing; remove it"]),
    "another code": (("  # noqa: TPF102", "", ""), ["11:26: TPF902 `# noqa: TPF102` silences nothing; remove it"]),
    "one of two": (("  # noqa: TPF101,TPF106 - log", "", ""), ["11:26: TPF902 `# noqa: TPF106` silences nothing; remove it"]),
    "two": (("", "", "  # noqa: TPF1,TPF2"), ["15:35: TPF902 `# noqa: TPF1, TPF2` silences nothing; remove them"]),
    "used": (("  # noqa: TPF101", "", ""), []),
    "used by a prefix": (("  # noqa: TPF1", "", ""), []),
    "a letter in a code": (("  # noqa: TPF10l", "", ""), ["11:26: TPF902 `# noqa: TPF10l`: no rule has this code; did you mean TPF101?"]),
    "after others": (("  # noqa: E501,TPF101, TPF2O1 - log", "", ""), ["11:26: TPF902 `# noqa: TPF2O1`: no rule has this code; did you mean TPF201?"]),
    "glued to its reason": (("  # noqa: TPF101-log", "", ""), []),
    "no digit": (("", "", "  # noqa: TPF-101"), ["15:35: TPF902 `# noqa: TPF-101`: no rule has this code; did you mean TPF101?"]),
    "letters alone": (("", "", "  # noqa:TPFlol"), ["15:35: TPF902 `# noqa: TPFlol`: no rule has this code; did you mean TPF101?"]),
    "small letters": (("  # noqa: tpf101", "", ""), ["11:26: TPF902 `# noqa: tpf101`: no rule has this code; did you mean TPF101?"]),
    "a code that no rule has": (("  # noqa: TPF199", "", ""), ["11:26: TPF902 `# noqa: TPF199` silences nothing; remove it"]),
    "another plugin's, misspelt": (("  # noqa: E50l", "", ""), []),
    "a reason": (("  # noqa: TPF101 TPFs are known", "", ""), []),
    "another plugin's": (("", "", "  # noqa: E501"), []),
    "for everything": (("", "", "  # noqa"), []),
    "a string": (("", "", "; '# noqa: TPF101'"), []),
}  # fmt: skip


@pytest.mark.parametrize(("comments", "told"), UNUSED.values(), ids=UNUSED)
def test_comments_that_silence_nothing(
    tmp_path: Path, comments: tuple[str, str, str], told: list[str]
) -> None:
    written(tmp_path, *comments)
    run = check("--unused-noqa", "model.py", cwd=tmp_path)
    found = [line.removeprefix("model.py:") for line in run.output.splitlines() if "TPF902" in line]
    assert found == told
    assert run.status == (1 if run.output else 0)
    assert "TPF902" not in check("model.py", cwd=tmp_path).output


def test_a_file_without_findings_is_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1  # noqa: TPF101\n")
    run = check("--unused-noqa", "plain.py", cwd=tmp_path)
    assert run.output == "plain.py:1:8: TPF902 `# noqa: TPF101` silences nothing; remove it\n"


def test_codes_that_are_not_selected_are_not_judged(tmp_path: Path) -> None:
    written(tmp_path, third="  # noqa: TPF301")
    run = check("--unused-noqa", "--select", "TPF101", "model.py", cwd=tmp_path)
    assert "TPF902" not in run.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--reason", "x"), "--reason needs --add-noqa"),
        (("--add-noqa", "--write-baseline", "b.json"), "exclude each other"),
        (("--add-noqa", "-"), "--add-noqa needs files to write to"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    run = torchperf("check", *options, cwd=tmp_path)
    assert run.status == 2
    assert words in run.errors
    assert run.errors.count("\n") == 1


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "link.py").symlink_to(path)
    run = check("--add-noqa", "link.py", cwd=tmp_path)
    assert run.status == 1
    assert "link.py: no comment added: is a symbolic link" in run.errors
    assert PRELUDE in path.read_text()
    assert "noqa" not in path.read_text()


RUFF = '[tool.ruff.lint]\nselect = ["E", "RUF"]\n'
SAID = 'ruff check --fix deletes `# noqa: TPF...`: set external = ["TPF"] in'


@pytest.mark.parametrize(
    ("name", "text", "table"),
    [
        ("pyproject.toml", RUFF, "tool.ruff.lint"),
        ("pyproject.toml", '[tool.ruff]\nlint.extend-select = ["RUF1"]\n', "tool.ruff.lint"),
        ("ruff.toml", '[lint]\nselect = ["ALL"]\nexternal = ["ABC"]\n', "lint"),
        (".ruff.toml", 'select = ["RUF102"]\n', "lint"),
    ],
)
def test_comments_that_ruff_deletes_are_said_once(
    tmp_path: Path, name: str, text: str, table: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "src").mkdir()
    written(tmp_path / "src", first="  # noqa: TPF101 - the log needs it", second="  # noqa:TPF1")
    said = f"torchperf: check: {name}: {SAID} [{table}], as torchperf init does\n"
    for _ in range(2):  # the second run takes its findings from the cache
        run = check("src", cwd=tmp_path, cache=tmp_path / "cache", isolated=False)
        assert run.errors == said
    assert torchperf("init", cwd=tmp_path).status == 0
    assert check("src", cwd=tmp_path, isolated=False).errors == ""
    ruff = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--select=RUF102", "src"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ruff.returncode, ruff.stdout) == (0, "All checks passed!\n"), ruff.stderr


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        (RUFF, ""),
        (RUFF, "  # noqa: E501"),
        (RUFF + 'external = ["TPF"]\n', "  # noqa: TPF101"),
        (RUFF + 'ignore = ["RUF102"]\n', "  # noqa: TPF101"),
        ('[tool.ruff]\nextend = "base.toml"\n' + RUFF, "  # noqa: TPF101"),
        ("[tool.ruff.lint]\nselect = ['E']\n", "  # noqa: TPF101"),
        ("[tool.black]\n", "  # noqa: TPF101"),
    ],
    ids=["no comment", "another's", "known", "ignored", "in another file", "not chosen", "no ruff"],
)
def test_what_ruff_keeps_is_not_said(tmp_path: Path, text: str, comment: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    written(tmp_path, first=comment)
    assert check(cwd=tmp_path, isolated=False).errors == ""


def test_comments_that_are_written_for_ruff_to_delete_are_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(RUFF)
    written(tmp_path)
    run = check("--add-noqa", cwd=tmp_path, isolated=False)
    assert run.errors.splitlines()[0] == "torchperf: check: # noqa added to 2 lines in 1 file"
    assert run.errors.splitlines()[1].startswith(f"torchperf: check: pyproject.toml: {SAID}")
    assert run.errors.count("\n") == 2
