"""The line length of a fix is the one that the project states."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_torchperf.fixes.engine.lines.line_length import line_length

STATED = {
    "ruff": ({"pyproject.toml": "[tool.ruff]\nline-length = 119\n"}, 119),
    "ruff's own file": ({"ruff.toml": "line-length = 79\n", "setup.cfg": "[flake8]\nmax-line-length = 90\n"}, 79),
    "black": ({"pyproject.toml": "[tool.black]\nline-length = 100\n"}, 100),
    "black's default": ({"pyproject.toml": "[tool.black]\npreview = true\n"}, 88),
    "flake8": ({"setup.cfg": "[flake8]\nmax-line-length = 120\n"}, 120),
    "pycodestyle": ({"tox.ini": "[pycodestyle]\nmax_line_length = 99\n"}, 99),
    "a formatter beside a linter": (
        {"pyproject.toml": "[tool.black]\nline-length = 90\n", ".flake8": "[flake8]\nmax-line-length = 130\n"},
        90,
    ),
    "nothing": ({"pyproject.toml": "[tool.ruff.lint]\nselect = []\n"}, None),
    "what cannot be read": ({"pyproject.toml": "[tool", "setup.cfg": "max-line-length"}, None),
}  # fmt: skip


@pytest.mark.parametrize(("files", "length"), STATED.values(), ids=STATED)
def test_the_line_length_is_the_stated_one(
    files: dict[str, str], length: int | None, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    folder = tmp_path / "package"
    folder.mkdir()
    assert line_length(str(folder / "model.py")) == length
