"""`check --diff-base`: only what changed since a commit is reported."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from linting import TRAINING_STEP as STEP

from flake8_torchperf.cli.main import main

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder: Path, *words: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, in which one line waits."""
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text(STEP)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The files and lines that are reported."""
    main(["check", "--no-cache", *words])
    out, err = capsys.readouterr()
    assert err == ""
    return [":".join(line.split(":")[:2]).removeprefix("./") for line in out.splitlines()]


def test_only_changed_lines_are_reported(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines(capsys, ".") == ["a.py:9"]
    assert lines(capsys, "--diff-base", "HEAD", ".") == []
    changed = STEP.replace("        opt.step()\n", "        opt.step()\n        x.max().item()\n")
    (repository / "a.py").write_text(changed)
    assert lines(capsys, "--diff-base", "HEAD", ".") == ["a.py:9"]
    (repository / "b.py").write_text(STEP)  # not tracked yet
    assert lines(capsys, "--diff-base", "HEAD", ".") == ["a.py:9", "b.py:9"]
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "second")
    assert lines(capsys, "--diff-base", "HEAD", ".") == []
    assert lines(capsys, "--diff-base", "HEAD~1", ".") == ["a.py:9", "b.py:9"]


def test_new_code_has_no_callers_yet(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "train.py").write_text(f'{STEP}\n\nif __name__ == "__main__":\n    train()\n')
    new = "import torch\n\n\ndef read(x: torch.Tensor):\n    return x.mean().item()\n"
    (repository / "new.py").write_text(new)
    assert "new.py:5" not in lines(capsys, ".")
    assert "new.py:5" in lines(capsys, "--diff-base", "HEAD", ".")


def test_a_folder_below_the_top_and_a_name_with_spaces(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = repository / "ä b"
    inside.mkdir()
    (inside / "c d.py").write_text("")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "second")
    (inside / "c d.py").write_text(STEP)
    monkeypatch.chdir(inside)
    assert lines(capsys, "--diff-base", "HEAD", ".") == ["c d.py:9"]


@pytest.mark.parametrize("base", ["nowhere", "--output=x"])
def test_an_unknown_commit_is_one_line(
    base: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", f"--diff-base={base}", "."])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"torchperf: check: --diff-base: git knows no commit {base}\n"


def test_without_a_repository_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(SystemExit):
        main(["check", "--diff-base", "HEAD", "."])
    err = capsys.readouterr().err
    assert "not a git repository" in err
    assert err.count("\n") == 1


def test_files_of_other_repositories_are_named(
    repository: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Git does not compare them, so without a word a run would look as if they were clean."""
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "b.py").write_text(STEP)
    outside = tmp_path_factory.mktemp("outside") / "c.py"
    outside.write_text(STEP)
    (repository / "new.py").write_text(STEP)
    nested = (
        "torchperf: check: inner: another git repository: --diff-base leaves out its findings; "
        "run torchperf check there\n"
    )
    words = ["check", "--no-cache", "--diff-base", "HEAD"]
    assert main([*words, "."]) == 1
    out, err = capsys.readouterr()
    assert ([line.split(":")[0] for line in out.splitlines()], err) == (["./new.py"], nested)
    assert main([*words, "inner"]) == 2
    assert capsys.readouterr() == ("", nested)
    assert main([*words, str(outside)]) == 2
    said = f"{outside}: in no git repository: --diff-base leaves out its findings"
    assert capsys.readouterr() == ("", f"torchperf: check: {said}\n")
