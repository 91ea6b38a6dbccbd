"""The plugin in the programs people meet it through, each the real one, from the package index.

pre-commit, python-lsp-server, nbQA, flake8-nb and Flake8-pyproject run for real; of the editors,
which can't be installed here, the very command lines they start.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from documents import TEXT
from environments import (
    ROOT,
    attempt,
    call,
    clean_environment,
    copy_checkout,
)
from language_server import LanguageServer
from marking import marked_environment, marks_of, project_in

NOTEBOOKS = ROOT / "tests" / "notebooks"
READS_IN_A_LOOP = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""
SILENT = READS_IN_A_LOOP.replace("value.item()", "value.detach()")
LINE, COLUMN = 5, 13
FIXABLE = """\
import torch


def started(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(3).to(x.device)
"""
FIXED = FIXABLE.replace("3).to(x.device)", "3, device=x.device)")

pytestmark = pytest.mark.slow


def shown(language: str, holding: str) -> str:
    """The one block of README.md or docs/ in this language that holds these words."""
    blocks = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    (block,) = [block for block in blocks if holding in block]
    return str(block)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository as one would push it, and its commit: pre-commit clones and installs it."""
    folder = copy_checkout(tmp_path_factory.mktemp("hooks"))
    return folder, commit_all(folder)


class TestPreCommit:
    """A new repository, the hook of this checkout, and commits that it stops or lets pass."""

    @pytest.fixture
    def repository(
        self, hooks: tuple[Path, str], clients: Path, tmp_path: Path
    ) -> tuple[Path, dict[str, str]]:
        folder, revision = hooks
        config = shown("yaml", "id: torchperf-fix").replace("rev: v0.1.0", f"rev: {revision}")
        config = config.replace("URL-OF-THIS-REPOSITORY", str(folder))
        config += f"default_language_version:\n  python: {sys.executable}\n"
        project = tmp_path / "project"
        project.mkdir()
        (project / ".pre-commit-config.yaml").write_text(config, encoding="utf-8")
        commit_all(project)
        # Where pre-commit keeps the environments it makes: shared by all tests.
        env = clean_environment(clients) | {"PRE_COMMIT_HOME": str(folder.parent / "pre-commit")}
        call(clients, "-m", "pre_commit", "install", cwd=project, env=env)
        return project, env

    def test_a_commit_is_stopped_and_then_passes(
        self, repository: tuple[Path, dict[str, str]]
    ) -> None:
        project, env = repository
        (project / "model.py").write_text(READS_IN_A_LOOP, encoding="utf-8")
        (project / "not_staged.py").write_text(READS_IN_A_LOOP, encoding="utf-8")
        (project / "notes.md").write_text("loss.item()\n", encoding="utf-8")
        call("git", "add", "model.py", "notes.md", cwd=project)
        stopped = attempt(*COMMIT, "first", cwd=project, env=env)
        said = stopped.stdout + stopped.stderr
        assert stopped.returncode == 1, said
        assert "hook id: torchperf" in said
        assert f"model.py:{LINE}:{COLUMN}: TPF101 `value.item()` waits" in said
        assert "not_staged.py" not in said

        (project / "model.py").write_text(SILENT, encoding="utf-8")
        call("git", "add", "model.py", cwd=project)
        passed = attempt(*COMMIT, "second", cwd=project, env=env)
        said = passed.stdout + passed.stderr
        assert passed.returncode == 0, said
        assert re.search(r"flake8-torchperf\.+Passed", said)

    def test_a_commit_without_python_runs_nothing(
        self, repository: tuple[Path, dict[str, str]]
    ) -> None:
        project, env = repository
        (project / "notes.md").write_text("loss.item()\n", encoding="utf-8")
        call("git", "add", "notes.md", cwd=project)
        done = attempt(*COMMIT, "notes", cwd=project, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"flake8-torchperf\.+.*Skipped", done.stdout + done.stderr)

    def test_safe_fixes_are_made_by_hand(self, repository: tuple[Path, dict[str, str]]) -> None:
        project, env = repository
        (command,) = re.findall(r"`(pre-commit run [^`]*)`", TEXT)
        (project / "model.py").write_text(FIXABLE, encoding="utf-8")
        call("git", "add", "model.py", cwd=project)
        fixing = attempt(*command.split(), cwd=project, env=env)
        said = fixing.stdout + fixing.stderr
        assert fixing.returncode == 1, said
        assert "files were modified by this hook" in said
        assert (project / "model.py").read_text(encoding="utf-8") == FIXED
        assert attempt(*command.split(), cwd=project, env=env).returncode == 0


GIT = ("git", "-c", "user.name=Test", "-c", "user.email=test@example.org")
COMMIT = (*GIT, "commit", "-m")


def commit_all(folder: Path) -> str:
    """Make a repository of a folder; returns its only commit."""
    call("git", "init", "--quiet", "--initial-branch=main", cwd=folder)
    call("git", "add", "--all", cwd=folder)
    call(*COMMIT, "all", "--quiet", "--no-verify", cwd=folder)
    return call("git", "rev-parse", "HEAD", cwd=folder).strip()


class TestLanguageServer:
    """python-lsp-server with the settings of docs/editors-and-notebooks.md."""

    def test_an_unsaved_buffer_gets_codes_and_ranges(self, clients: Path, tmp_path: Path) -> None:
        file = tmp_path / "model.py"
        file.write_text(SILENT, encoding="utf-8")
        uri = file.as_uri()
        settings = json.loads(shown("json", '"pylsp"'))
        command = [clients, "-m", "pylsp"]
        with LanguageServer(command, tmp_path, clean_environment(clients)) as server:
            server.notify("workspace/didChangeConfiguration", {"settings": settings})
            opened = {"uri": uri, "languageId": "python", "version": 1, "text": READS_IN_A_LOOP}
            server.notify("textDocument/didOpen", {"textDocument": opened})
            (diagnostic,) = server.diagnostics(uri, 1)
            assert diagnostic["code"] == "TPF101"
            assert diagnostic["message"].startswith("TPF101 `value.item()` waits per step")
            assert underlined(READS_IN_A_LOOP, diagnostic["range"]).startswith("value.item()")

            change(server, uri, 2, SILENT)
            assert server.diagnostics(uri, 2) == []
            moved = READS_IN_A_LOOP.replace("\n\n\n", "\n\n# Größe ☃\n\n\n")
            change(server, uri, 3, moved)
            (diagnostic,) = server.diagnostics(uri, 3)
            assert underlined(moved, diagnostic["range"]).startswith("value.item()")

    def test_half_a_line_is_a_syntax_error_and_no_more(self, clients: Path, tmp_path: Path) -> None:
        uri = (tmp_path / "new.py").as_uri()
        settings = json.loads(shown("json", '"pylsp"'))
        command = [clients, "-m", "pylsp"]
        with LanguageServer(command, tmp_path, clean_environment(clients)) as server:
            server.notify("workspace/didChangeConfiguration", {"settings": settings})
            text = READS_IN_A_LOOP.replace(" for value in values]", " for")
            opened = {"uri": uri, "languageId": "python", "version": 1, "text": text}
            server.notify("textDocument/didOpen", {"textDocument": opened})
            assert {d["code"] for d in server.diagnostics(uri, 1)} == {"E999"}


def change(server: LanguageServer, uri: str, version: int, text: str) -> None:
    document = {"uri": uri, "version": version}
    changes = {"textDocument": document, "contentChanges": [{"text": text}]}
    server.notify("textDocument/didChange", changes)


def underlined(text: str, place: dict[str, Any]) -> str:
    """The part of a line that a range marks; a range over several lines is none of ours."""
    assert place["start"]["line"] == place["end"]["line"]
    line = text.splitlines()[place["start"]["line"]]
    return line[place["start"]["character"] : place["end"]["character"]]


def test_an_editor_leaves_no_mark(clients: Path, tmp_path: Path) -> None:
    """python-lsp-server, over standard input and output, on a buffer that is not saved."""
    project = project_in(tmp_path)
    path = project / "model.py"
    plugins = {
        "flake8": {"enabled": True, "executable": str(clients.parent / "flake8")},
        **{name: {"enabled": False} for name in ("pycodestyle", "pyflakes", "mccabe", "jedi")},
    }
    settings = {"pylsp": {"plugins": plugins, "configurationSources": ["flake8"]}}
    with LanguageServer([clients.parent / "pylsp"], project, marked_environment()) as server:
        server.notify("workspace/didChangeConfiguration", {"settings": settings})
        opened = {"uri": path.as_uri(), "languageId": "python", "version": 1}
        document = {"textDocument": {**opened, "text": path.read_text(encoding="utf-8")}}
        server.notify("textDocument/didOpen", document)
        codes = {diagnostic["code"] for diagnostic in server.diagnostics(path.as_uri(), 1)}
    assert any(code.startswith("TPF") for code in codes)
    assert marks_of(project) == []


# Cell, line, column and code.
IN_TRAINING = ((2, 7, 9, "TPF206"), (3, 5, 13, "TPF101"))
IN_OTHER_LANGUAGES = ((3, 7, 9, "TPF206"), (5, 5, 13, "TPF101"))


def places(pattern: str, output: str) -> tuple[tuple[int, int, int, str], ...]:
    found = re.findall(pattern, output, re.MULTILINE)
    return tuple((int(cell), int(line), int(col), code) for cell, line, col, code in found)


class TestNotebooks:
    """Two notebooks: one with magics of every kind, one with cells in other languages as well."""

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("training.ipynb", IN_TRAINING), ("other_languages.ipynb", IN_OTHER_LANGUAGES)],
    )
    def test_nbqa(
        self,
        name: str,
        expected: tuple[tuple[int, int, int, str], ...],
        clients: Path,
        tmp_path: Path,
    ) -> None:
        shutil.copy(NOTEBOOKS / name, tmp_path)
        env = clean_environment(clients)
        done = attempt(clients, "-m", "nbqa", "flake8", name, "--select=TPF", cwd=tmp_path, env=env)
        assert (done.returncode, done.stderr) == (1, "")
        assert places(rf"^{name}:cell_(\d+):(\d+):(\d+): (\w+) ", done.stdout) == expected
        assert done.stdout.count(name) == len(expected)

    @pytest.mark.thorough
    def test_flake8_nb(self, flake8_nb: Path, tmp_path: Path) -> None:
        shutil.copy(NOTEBOOKS / "training.ipynb", tmp_path)
        said = call(flake8_nb, "-m", "flake8", "--version", cwd=tmp_path)
        assert said.startswith("5.0.4 ")
        done = attempt(
            flake8_nb, "-m", "flake8_nb", "--select", "TPF", "training.ipynb", cwd=tmp_path
        )
        found = places(r"ipynb#In\[(\d+)\]:(\d+):(\d+): (\w+) ", done.stdout)
        assert found == IN_TRAINING, done.stderr
        assert done.returncode == 1

    @pytest.mark.thorough
    def test_flake8_nb_reads_no_other_languages(self, flake8_nb: Path, tmp_path: Path) -> None:
        """As docs/ says. Once this fails, flake8-nb has learnt it, and the page is to say so."""
        shutil.copy(NOTEBOOKS / "other_languages.ipynb", tmp_path)
        done = attempt(flake8_nb, "-m", "flake8_nb", "--select", "TPF,E9", ".", cwd=tmp_path)
        assert re.findall(r"ipynb#In\[\d+\]:\d+:\d+: (\w+) ", done.stdout) == ["E999"]


def test_flake8_pyproject(clients: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(shown("toml", "[tool.flake8]"), encoding="utf-8")
    source = 'import torch\n\nSTATE = torch.zeros((), device="cuda")\n\n\ndef execute_model():\n'
    (tmp_path / "engine.py").write_text(source + "    return STATE.item()\n", encoding="utf-8")
    done = attempt(clients, "-m", "flake8", "engine.py", cwd=tmp_path)
    assert re.fullmatch(
        r"engine\.py:7:12: TPF101 `STATE\.item\(\)` .*\(reason: .*\)\n", done.stdout
    ), done.stdout + done.stderr
    check = ("-m", "flake8_torchperf.cli.main", "check", "--no-cache", "engine.py")
    assert attempt(clients, *check, cwd=tmp_path).stdout == done.stdout
    (tmp_path / "pyproject.toml").unlink()
    assert attempt(clients, "-m", "flake8", "engine.py", cwd=tmp_path).stdout == ""


def test_flake8_pyproject_with_a_mistake(clients: Path, tmp_path: Path) -> None:
    text = shown("toml", "[tool.flake8]").replace("torchperf-explain = true", "torchperf-scope = 3")
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    done = attempt(clients, "-m", "flake8", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--torchperf-scope: '3' is not one of loop, hot, all" in done.stderr


# How each editor starts flake8, read from its plugin's source, and how it reads the answer.
# "{file}" is the file on disk; with "-" the buffer is written to standard input.
DEFAULT_FORMAT = r"(?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+): (?P<code>[A-Z]+\d+) (?P<text>.+)"
STDIN = ("--stdin-display-name", "{file}", "-")
EDITORS = {
    "VS Code": (
        ("--format='%(row)d,%(col)d,%(code).1s,%(code)s:%(text)s'", "{file}"),
        r"'(?P<line>\d+),(?P<column>\d+),\w,(?P<code>\w+\d+):(?P<text>[^\r\n]*)'",
    ),
    "Neovim, nvim-lint": (
        ("--format=%(path)s:%(row)d:%(col)d:%(code)s:%(text)s", "--no-show-source", *STDIN),
        r"[^:]+:(?P<line>\d+):(?P<column>\d+):(?P<code>\w+):(?P<text>.+)",
    ),
    "Vim, ALE": (("--format=default", *STDIN), DEFAULT_FORMAT),
    "Emacs, flycheck": (("--format=default", *STDIN), DEFAULT_FORMAT),
    "PyCharm": (("--select", "TPF", "{file}"), DEFAULT_FORMAT),
}


@pytest.mark.parametrize("editor", EDITORS)
def test_what_an_editor_starts(editor: str, installed: Path, tmp_path: Path) -> None:
    words, pattern = EDITORS[editor]
    on_disk = "-" not in words
    file = tmp_path / "model.py"
    file.write_text(READS_IN_A_LOOP if on_disk else SILENT, encoding="utf-8")
    done = attempt(
        installed,
        "-m",
        "flake8",
        *(word.replace("{file}", str(file)) for word in words),
        cwd=tmp_path,
        stdin="" if on_disk else READS_IN_A_LOOP,
    )
    (line,) = done.stdout.splitlines()
    read = re.fullmatch(pattern, line)
    assert read is not None, line
    assert (int(read["line"]), int(read["column"]), read["code"]) == (LINE, COLUMN, "TPF101")
    assert read["text"].strip().startswith("`value.item()` waits per step")
    assert done.stderr == ""
