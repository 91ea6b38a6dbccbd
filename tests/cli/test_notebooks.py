"""``torchperf check notebook.ipynb``: cells, magics, and what is not Python."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from check_run import check, torchperf
from flake8_run import Run

from flake8_torchperf.cli.notebooks.magics import NoPythonError, python_of

READS = (
    "def report(values: list[torch.Tensor]) -> list[float]:\n    return [v.item() for v in values]"
)


def notebook(path: Path, *cells: str, **metadata: Any) -> None:
    texts = [("markdown", "# import torch"), *(("code", cell) for cell in cells)]
    book = {
        "cells": [
            {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
            | ({"execution_count": None, "outputs": []} if kind == "code" else {})
            for kind, text in texts
        ],
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    path.write_text(json.dumps(book), encoding="utf-8")


def places(run: Run) -> list[str]:
    return [f"{row.path}:{row.line}:{row.column} {row.code}" for row in run.results]


class TestCheck:
    """With nbformat."""

    @pytest.fixture(autouse=True)
    def _needs_nbformat(self) -> None:
        pytest.importorskip("nbformat")

    def test_findings_name_cell_and_line_as_nbqa_does(self, notebooks: Path) -> None:
        run = check("training.ipynb", cwd=notebooks)
        assert (run.status, run.errors) == (1, "")
        assert places(run) == [
            "training.ipynb:cell_2:7:9 TPF206",
            "training.ipynb:cell_3:5:13 TPF101",
        ]
        assert "(loop at line 6)" in run.output  # of the cell, as the finding's own

    def test_cells_in_other_languages_count_and_are_passed_over(self, notebooks: Path) -> None:
        assert places(check("other_languages.ipynb", cwd=notebooks)) == [
            "other_languages.ipynb:cell_3:7:9 TPF206",
            "other_languages.ipynb:cell_5:5:13 TPF101",
        ]

    def test_cells_share_their_names(self, tmp_path: Path) -> None:
        notebook(
            tmp_path / "n.ipynb",
            "import torch\nx = torch.ones(3, device='cuda')\n",
            "for one in x:\n    pass",
            "while True:\n    y = x.sum() * 2\n    print(f'line 1 {y.item()}')\n",
        )
        run = check("--scope=all", "n.ipynb", cwd=tmp_path)
        assert places(run) == ["n.ipynb:cell_2:1:12 TPF201", "n.ipynb:cell_3:3:21 TPF101"]

    def test_a_line_of_another_cell_is_named_with_its_cell(self, tmp_path: Path) -> None:
        notebook(tmp_path / "n.ipynb", f"import torch\n\n{READS}", READS.replace("report", "tell"))
        run = check("--explain", "--scope=all", "n.ipynb", cwd=tmp_path)
        assert "cell_1:4:13: TPF101 `v.item()` waits per step (loop at line 4)" in run.output
        assert "cell_2:2:13: TPF101 `v.item()` waits per step (loop at line 2)" in run.output

    def test_comments_and_settings_hold_as_for_files(self, tmp_path: Path) -> None:
        notebook(tmp_path / "n.ipynb", f"import torch\n{READS}  # noqa: TPF101\n", READS)
        assert places(check("n.ipynb", cwd=tmp_path)) == ["n.ipynb:cell_2:2:13 TPF101"]
        assert check("--per-file-ignores=n.ipynb:TPF", "n.ipynb", cwd=tmp_path).output == ""
        written = check("--write-baseline", "old.json", "n.ipynb", cwd=tmp_path)
        assert written.status == 0, written.errors
        notebook(tmp_path / "n.ipynb", "import torch", "1 + 1", READS)
        run = check("--baseline", "old.json", "n.ipynb", cwd=tmp_path)
        assert (run.status, run.output, run.errors) == (0, "", "")

    def test_a_cell_that_is_no_python_is_said_and_the_others_are_linted(
        self, tmp_path: Path
    ) -> None:
        notebook(tmp_path / "n.ipynb", "import torch", "x = 1\ny = = 2\n", READS)
        run = check("n.ipynb", cwd=tmp_path)
        assert (run.status, places(run)) == (2, ["n.ipynb:cell_3:2:13 TPF101"])
        assert run.errors == (
            "torchperf: check: n.ipynb:cell_2:2: not analysed: SyntaxError: invalid syntax\n"
        )

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', "import torch\n"])
    def test_what_is_no_notebook_is_one_line(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "n.ipynb").write_text(text, encoding="utf-8")
        run = check("n.ipynb", cwd=tmp_path)
        assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
        assert run.errors.startswith("torchperf: check: n.ipynb: not analysed: no notebook: ")

    def test_a_notebook_in_another_language_has_no_findings(self, tmp_path: Path) -> None:
        kernel = {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}
        notebook(tmp_path / "n.ipynb", f"import torch\n{READS}", **kernel)
        assert check("n.ipynb", cwd=tmp_path).status == 0

    def test_reports_name_the_file_and_tell_the_cell(self, tmp_path: Path) -> None:
        notebook(tmp_path / "n.ipynb", "import torch", READS)
        run = check("--format=json", "n.ipynb", cwd=tmp_path)
        (found,) = json.loads(run.output)["findings"]
        assert (found["path"], found["line"], found["end_line"]) == ("n.ipynb", 2, 2)
        assert found["message"].endswith(" (in cell_2)")
        for form in ("sarif", "github", "gitlab", "junit", "grouped"):
            run = check(f"--format={form}", "n.ipynb", cwd=tmp_path)
            assert (run.status, run.errors) == (1, ""), form
            assert "(in cell_2)" in run.output, form

    def test_folders_are_searched_for_them(self, tmp_path: Path) -> None:
        notebook(tmp_path / "n.ipynb", f"import torch\n{READS}")
        (tmp_path / ".ipynb_checkpoints").mkdir()
        notebook(tmp_path / ".ipynb_checkpoints" / "n.ipynb", f"import torch\n{READS}")
        (tmp_path / "m.py").write_text("x = 1\n", encoding="utf-8")
        assert places(check("-j2", ".", cwd=tmp_path)) == ["./n.ipynb:cell_1:3:13 TPF101"]
        assert check("--extend-exclude=*.ipynb", ".", cwd=tmp_path).output == ""


def test_without_nbformat_one_line_says_what_to_do(tmp_path: Path) -> None:
    notebook(tmp_path / "n.ipynb", f"import torch\n{READS}")
    (tmp_path / "nbformat.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    environment = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment)
        run = check("n.ipynb", cwd=tmp_path)
    assert (run.status, run.output) == (2, "")
    assert run.errors == (
        "torchperf: check: n.ipynb: not analysed: a notebook, which takes nbformat to read: "
        "pip install flake8-torchperf[notebooks]; or run nbqa flake8 --select TPF\n"
    )


FIXABLE = "def step(x: torch.Tensor) -> torch.Tensor:\n    return x + torch.zeros(3).to(x.device)"


class TestFix:
    """Fixes change cells, and nothing else of a notebook."""

    def test_only_the_cell_changes(self, tmp_path: Path) -> None:
        path = tmp_path / "n.ipynb"
        notebook(path, "%load_ext x\nimport torch", FIXABLE, "!ls")
        before = json.loads(path.read_text(encoding="utf-8"))
        shown = torchperf("fix", "--diff", "n.ipynb", cwd=tmp_path)
        assert "+    return x + torch.zeros(3, device=x.device)" in shown.output
        assert json.loads(path.read_text(encoding="utf-8")) == before
        run = torchperf("fix", "n.ipynb", cwd=tmp_path)
        assert (run.status, run.errors) == (
            0,
            "torchperf: fix: 1 finding fixed in 1 file, 0 left\n",
        )
        after = json.loads(path.read_text(encoding="utf-8"))
        source = after["cells"][2]["source"]
        assert source[-1] == "    return x + torch.zeros(3, device=x.device)"
        after["cells"][2]["source"] = before["cells"][2]["source"]
        assert after == before

    @pytest.mark.parametrize("indent", [None, 1, 2, 4])
    @pytest.mark.parametrize("end", ["", "\n"])
    def test_the_layout_is_kept(self, indent: int | None, end: str, tmp_path: Path) -> None:
        path = tmp_path / "n.ipynb"
        notebook(path, f"import torch  # ä\n{FIXABLE}", name="ä")
        book = json.loads(path.read_text(encoding="utf-8"))
        book["cells"][1]["source"] = "".join(book["cells"][1]["source"])
        text = json.dumps(book, indent=indent, ensure_ascii=False) + end
        path.write_text(text, encoding="utf-8")
        assert torchperf("fix", "n.ipynb", cwd=tmp_path).status == 0
        fixed = text.replace("torch.zeros(3).to(x.device)", "torch.zeros(3, device=x.device)")
        assert path.read_text(encoding="utf-8") == fixed

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("{}", "is no notebook of format 4"),
            ("[1, 2", "is no notebook of format 4"),
            ('{"cells": 3}', "is no notebook of format 4"),
        ],
    )
    def test_what_is_no_notebook_is_one_line(self, text: str, problem: str, tmp_path: Path) -> None:
        (tmp_path / "n.ipynb").write_text(text, encoding="utf-8")
        run = torchperf("fix", "n.ipynb", cwd=tmp_path)
        assert run.status == 2
        assert run.errors.splitlines()[0] == f"torchperf: fix: n.ipynb: not analysed: {problem}"

    def test_an_odd_layout_is_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "n.ipynb"
        notebook(path, f"import torch\n{FIXABLE}")
        text = path.read_text(encoding="utf-8").replace(", ", " ,  ")
        path.write_text(text, encoding="utf-8")
        run = torchperf("fix", "n.ipynb", cwd=tmp_path)
        assert "not fixed: it is laid out as no program does" in run.errors
        assert path.read_text(encoding="utf-8") == text


def test_other_commands_refuse_them_in_one_line(tmp_path: Path) -> None:
    notebook(tmp_path / "n.ipynb", f"import torch\n{READS}")
    for command in (("fix", "--verify"), ("confirm",)):
        run = torchperf(*command, "n.ipynb", cwd=tmp_path)
        assert (run.status, run.output, run.errors.count("\n")) == (2, "", 1)
        assert "n.ipynb" in run.errors
        assert "notebook" in run.errors


CELLS = [
    ("%matplotlib inline\nx = 1", "pass\nx = 1"),
    ("if x:\n    !ls -l\n    y = 2", "if x:\n    pass\n    y = 2"),
    ("files = !ls\nx = %timeit -o f()\na.b[0] = !ls", "files = None\nx = None\na.b[0] = None"),
    ("!ls \\\n  -l\nx = 1", "pass\n\nx = 1"),
    ("x = (a\n% b)\n!ls", "x = (a\n% b)\npass"),
    ("x = a \\\n% b\n!ls", "x = a \\\n% b\npass"),
    ("# C:\\\n!ls", "# C:\\\npass"),
    ("x = '''\n!ls\n'''\n%who", "x = '''\n!ls\n'''\npass"),
    ("torch.sum?\n?torch\nx??\n%timeit?", "pass\npass\npass\npass"),
    ("%%time\nx = 1", "\nx = 1"),
    ("\n%%bash\nls", "\n\n"),
    ("%%writefile m.py\nx = 1", "\n"),
    ("await f()\nasync with g() as h:\n    pass", None),
    ("x = a % b\ny = a != b\n'%s' % x", None),
    ("", ""),
]


@pytest.mark.parametrize(("cell", "python"), CELLS)
def test_magics_become_python_with_as_many_lines(cell: str, python: str | None) -> None:
    lines = python_of(cell)
    assert len(lines) == len(cell.splitlines())
    assert "".join(lines).rstrip("\n") == (cell if python is None else python.rstrip("\n"))


def test_what_stays_no_python_is_told_with_its_line() -> None:
    with pytest.raises(NoPythonError, match="SyntaxError: invalid syntax") as raised:
        python_of("%who\nx = = 1")
    assert (raised.value.line, raised.value.column) == (2, 5)
