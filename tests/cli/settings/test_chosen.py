"""`select`, `ignore`, `exclude` and their like in [tool.torchperf], as ruff's users expect them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from linting import TRAINING_STEP

from flake8_torchperf.cli.main import main
from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.chosen import GROUPS, Chosen

STEP = (
    TRAINING_STEP
    + """\
        if loss > 3:
            loss.item()
"""
)
NOTHING = "src: [tool.torchperf] excludes every Python file in it"
READ, TEXT, BRANCH = "TPF101", "TPF104", "TPF301"


def checked(
    folder: Path,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *words: str,
) -> list[str]:
    """The codes that `torchperf check` tells in src/a.py, with this table."""
    (folder / "pyproject.toml").write_text(f"[tool.torchperf]\nscope = 'all'\n{table}\n")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "a.py").write_text(STEP)
    monkeypatch.chdir(folder)
    main(["check", "--no-cache", *words, "src"])
    out, err = capsys.readouterr()
    assert err == ("" if out else f"torchperf: check: {NOTHING}\n")
    return [line.split()[1] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("", [TEXT, BRANCH, READ]),
        ('select = ["reads"]', [TEXT, READ]),
        ('select = ["TPF3"]', [BRANCH]),
        ('select = ["TPF3"]\nextend-select = ["TPF101"]', [BRANCH, READ]),
        ('select = ["reads"]\nignore = ["TPF104"]', [READ]),
        ('ignore = ["reads"]', [BRANCH]),
        ('ignore = ["reads"]\nselect = ["TPF101"]', [READ]),
        ('ignore = ["TPF104"]\nextend-ignore = ["branches"]', [READ]),
        ('exclude = ["a.py"]', []),
        ('exclude = ["src"]', []),
        ('extend-exclude = ["src/*.py"]', []),
        ('exclude = ["other/*.py", "b.py"]', [TEXT, BRANCH, READ]),
        ('per-file-ignores = { "src/*" = ["TPF1"] }', [BRANCH]),
        ('per-file-ignores = { "a.py" = ["branches"] }', [TEXT, READ]),
        ('per-file-ignores = { "tests/*" = ["TPF1"] }', [TEXT, BRANCH, READ]),
    ],
)
def test_a_table_chooses(
    table: str,
    told: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert checked(tmp_path, table, monkeypatch, capsys) == told


def test_the_command_line_overrules_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = 'select = ["reads"]'
    assert checked(tmp_path, table, monkeypatch, capsys, "--select=TPF301") == [BRANCH]
    assert checked(tmp_path, table, monkeypatch, capsys, "--select=TPF") == [TEXT, READ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--select=reads",), [TEXT, READ]),
        (("--select", "branches,TPF104"), [TEXT, BRANCH]),
        (("--select=TPF", "--extend-ignore", "reads"), [BRANCH]),
    ],
)
def test_the_command_line_takes_groups(
    words: tuple[str, ...],
    told: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert checked(tmp_path, "", monkeypatch, capsys, *words) == told


def test_flake8_reads_the_table_too(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.torchperf]\nselect = ["branches"]\n')
    (tmp_path / "a.py").write_text(STEP)
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--select=TPF", "a.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, [line.split()[1] for line in done.stdout.splitlines()]) == ("", [BRANCH])


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('select = ["TPF30l"]', "select: no rule has the code TPF30l; did you mean TPF30"),
        ('ignore = ["raeds"]', "ignore: no rule has the code raeds"),
        ('select = "reads"', "select: 'reads' is no list of texts"),
        (
            'per-file-ignores = ["a.py"]',
            "per-file-ignores: ['a.py'] is no table; write for example",
        ),
        ('selct = ["reads"]', "has no setting 'selct'; did you mean 'select'?"),
    ],
)
def test_a_mistake_is_one_line(
    table: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.torchperf]\n{table}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["check", "."])
    err = capsys.readouterr().err
    assert problem in err
    assert err.count("\n") == 1


def test_the_groups_are_the_families() -> None:
    families = {rule.code[:4]: rule.family for rule in load_catalogue().rules}
    assert sorted(GROUPS.values()) == sorted(families)


def test_the_linter_s_own_mistakes_are_told_whatever_is_selected() -> None:
    assert Chosen(select=("TPF1",)).tells("TPF900", "a.py")
    assert not Chosen(ignore=("TPF900",)).tells("TPF900", "a.py")
