"""A run that lints less than it was given says so, and one that lints nothing has status 2."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from check_run import check, torchperf

from flake8_torchperf.cli import check_options
from flake8_torchperf.cli.main import main
from flake8_torchperf.cli.report import left_out

READ = "import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.item()\n"
NO_FILE = ".: there is no Python file in it that is not excluded"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(READ, encoding="utf-8")
    return tmp_path


def table(project: Path, exclude: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.torchperf]\nexclude = {exclude}\n")


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--exclude=*"], NO_FILE),
        (["--exclude=a.py", "a.py"], "a.py: excluded, and so not linted"),
        (["--exclude=*.py", "a.py", "b.py"], "a.py, b.py: excluded, and so not linted"),
    ],
)
def test_a_run_without_a_file_has_status_2(
    project: Path, command: str, words: list[str], said: str
) -> None:
    run = torchperf(command, "--isolated", *words, cwd=project)
    assert (run.status, run.output) == (2, "")
    assert run.errors.splitlines()[0] == f"torchperf: {command}: {said}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ".: [tool.torchperf] excludes every Python file in it"),
        (["a.py"], "a.py: excluded, and so not linted"),
    ],
)
def test_the_projects_table_excludes_everything(project: Path, words: list[str], said: str) -> None:
    table(project, '["*"]')
    run = check(*words, cwd=project, isolated=False)
    assert (run.status, run.output, run.errors) == (2, "", f"torchperf: check: {said}\n")
    run = check("--exit-zero-on-nothing", *words, cwd=project, isolated=False)
    assert (run.status, run.errors) == (0, f"torchperf: check: {said}\n")


def test_an_excluded_file_beside_others_is_named(project: Path) -> None:
    table(project, '["a.py"]')
    run = check("a.py", "b.py", cwd=project, isolated=False)
    assert (run.status, run.errors) == (1, "torchperf: check: a.py: excluded, and so not linted\n")
    assert [line.split(":")[0] for line in run.output.splitlines()] == ["b.py"]
    run = check(".", cwd=project, isolated=False)
    assert (run.status, run.errors) == (1, "")  # a folder was named, and is linted


def test_many_excluded_files_are_one_line(project: Path) -> None:
    names = [f"c{number}.py" for number in range(5)]
    for name in names:
        (project / name).touch()
    run = check("--exclude=c*", *names, "a.py", cwd=project)
    said = "c0.py, c1.py, c2.py and 2 others: excluded, and so not linted"
    assert (run.status, run.errors) == (1, f"torchperf: check: {said}\n")


@pytest.mark.parametrize("others", [True, False])
def test_notebooks_without_nbformat_are_one_line(
    project: Path,
    others: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in (left_out, check_options):
        monkeypatch.setattr(
            module, "find_spec", lambda name: None if name == "nbformat" else find_spec(name)
        )
    (project / "books" / "kept").mkdir(parents=True)
    (project / "books" / "kept" / "one.ipynb").touch()
    (project / "books" / "two.ipynb").touch()
    monkeypatch.chdir(project)
    status = main(
        ["check", "--no-cache", "--isolated", "--exclude=kept", "." if others else "books"]
    )
    said = capsys.readouterr().err.splitlines()
    name = "./books/two.ipynb" if others else "books/two.ipynb"
    note = f"1 notebook is not linted, as {name}: pip install flake8-torchperf[notebooks]"
    assert said[-1] == f"torchperf: check: {note}"
    assert (status, len(said)) == ((1, 1) if others else (2, 2))


SELECTED = READ.replace("return x.item()", "if x.sum() > 3:\n        return x.item()")


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        ("select = TPF3", {"TPF301"}),
        ("select = E,TPF10", {"TPF101"}),
        ("select = TPF3\nextend-select = TPF10", {"TPF301", "TPF101"}),
        ("select = TPF3\nignore = TPF301", set()),
        ("extend-select = TPF3", {"TPF301", "TPF101"}),
        ("select = E,W", {"TPF301", "TPF101"}),  # of flake8's own checkers
    ],
)
def test_what_flake8s_files_select_is_obeyed(
    tmp_path: Path, settings: str, codes: set[str]
) -> None:
    (tmp_path / "a.py").write_text(SELECTED, encoding="utf-8")
    (tmp_path / "setup.cfg").write_text(f"[flake8]\n{settings}\n")

    ignored = {"TPF301"} if "ignore" in settings else set()

    def found(*words: str) -> set[str]:
        run = check(*words, cwd=tmp_path, isolated=False)
        assert run.errors == ""
        return {line.split()[1] for line in run.output.splitlines()}

    assert found() == codes
    if "extend" not in settings:  # which extends what a command line selects, too
        assert found("--select=TPF101") == {"TPF101"} - ignored
    left = torchperf("fix", "--diff", cwd=tmp_path).errors
    assert left.endswith(f", {len(codes)} left\n")
