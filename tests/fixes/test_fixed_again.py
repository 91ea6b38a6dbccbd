"""After a change, `fix` looks again at the files whose answers changed, and at no others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from flake8_torchperf.cli.fix.work import Fixed, as_read, concerned
from flake8_torchperf.linter import lint_tree
from flake8_torchperf.options import Options
from flake8_torchperf.project.files import expect
from flake8_torchperf.project.texts.text_search import forget

HELPER = """\
import torch


def make(n) -> torch.Tensor:
    return torch.ones(n, device="cuda")


def other(x: torch.Tensor):
    return x.sum().item()
"""
USER = """\
import torch
from pkg.helper import make


def sizes(batches: list[int]) -> list[float]:
    return [float(make(batch)) for batch in batches]
"""
CHANGES = {
    "another function": (HELPER.replace("x.sum().item()", "x.sum()"), False),
    "a comment": (HELPER.replace("def make", "# Makes.\ndef make"), False),
    "what it imports": (HELPER.replace("torch.Tensor:\n    return torch.ones(n", "float:\n    return float(n"), True),
    "an import": (HELPER.replace("import torch\n", "import torch\nimport os\n"), False),
    "an import that it looks up": (HELPER.replace("import torch\n", "import numpy as torch\n"), True),
    "a call of its function": (HELPER + "\n\ndef more(pkg):\n    return pkg.sizes([1])\n", True),
}  # fmt: skip


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "pkg"
    folder.mkdir()
    for name, text in (("__init__.py", ""), ("helper.py", HELPER), ("user.py", USER)):
        (folder / name).write_text(text, encoding="utf-8")
    yield folder
    expect({})


@pytest.mark.parametrize(("text", "again"), CHANGES.values(), ids=list(CHANGES))
def test_a_dependent_file(package: Path, text: str, again: bool) -> None:
    user, helper = package / "user.py", as_read(str(package / "helper.py"))
    reads: dict[str, str] = {}
    lines = USER.splitlines(keepends=True)
    assert lint_tree(ast.parse(USER), lines, str(user), Options(), reads)
    done = Fixed(str(user), reads=reads)
    forget()
    found = concerned([str(user)], [done], frozenset([helper]), {helper: text.encode()})
    assert found == ([str(user)] if again else [])
