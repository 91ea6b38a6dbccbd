"""What code actions write: `# noqa`, contracts, and functions named in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_torchperf.server.marks import (
    NotMarkedError,
    head_of,
    with_named,
    with_noqa,
    with_sync_free,
)

# Each text, the line of the finding (from 0), and the text with the comment.
NOQA = {
    "behind the line": ("x.item()\n", 0, "x.item()  # noqa: TPF101 - REASON\n"),
    "behind a comment": ("x  # read\n", 0, "x  # read  # noqa: TPF101 - REASON\n"),
    # flake8 looks for it in the line of the finding, whatever else the statement holds.
    "between brackets": ("f(\n    x,\n)\n", 1, "f(\n    x,  # noqa: TPF101 - REASON\n)\n"),
    "behind a header": (
        "for x in y:\n    pass\n", 0, "for x in y:  # noqa: TPF101 - REASON\n    pass\n",
    ),
    "beside another code": ("x  # noqa: E501 - long\n", 0, "x  # noqa: E501,TPF101 - long\n"),
    "in a text of several lines": (
        'f(x, """a\nb""")\n', 0, 'f(x, """a\nb""")  # noqa: TPF101 - REASON\n',
    ),
    "behind a backslash": (
        "y = x + \\\n    1\n", 0, "y = x + \\\n    1  # noqa: TPF101 - REASON\n",
    ),
    "with other line ends": ("x\r\ny\r\n", 0, "x  # noqa: TPF101 - REASON\r\ny\r\n"),
    "without one": ("x", 0, "x  # noqa: TPF101 - REASON"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "expected"), NOQA.values(), ids=NOQA)
def test_noqa(text: str, line: int, expected: str) -> None:
    assert with_noqa(text, line, "TPF101") == expected


def test_no_noqa_in_half_a_text() -> None:
    assert with_noqa("f(x\n", 0, "TPF101") is None


CONTRACTS = {
    "one line": ("def f(x):\n    pass\n", "def f(x):  # torchperf: sync-free\n    pass\n"),
    "several lines": (
        "def f(\n    x,\n):\n    pass\n",
        "def f(  # torchperf: sync-free\n    x,\n):\n    pass\n",
    ),
    "there already": ("def f(x):  # torchperf: sync-free\n    pass\n", None),
    "a backslash": ("def f(x, \\\n    y):\n    pass\n", None),
}


@pytest.mark.parametrize(("text", "expected"), CONTRACTS.values(), ids=CONTRACTS)
def test_contracts(text: str, expected: str | None) -> None:
    assert with_sync_free(text, 0) == expected


SETTINGS = {
    "no file": (None, '[tool.torchperf]\nhot = ["A.b"]\n'),
    "no table": ("[tool.x]\na = 1\n", '[tool.x]\na = 1\n\n[tool.torchperf]\nhot = ["A.b"]\n'),
    "no list": (
        "[tool.torchperf] # ours\nscope = 'all'\n",
        "[tool.torchperf] # ours\nhot = [\"A.b\"]\nscope = 'all'\n",
    ),
    "an empty list": ("[tool.torchperf]\nhot = []\n", '[tool.torchperf]\nhot = ["A.b"]\n'),
    "a list": (
        "[tool.torchperf]\nhot = [\n    'f', # why\n]\n[tool.z]\nhot = []\n",
        "[tool.torchperf]\nhot = [\n    \"A.b\", 'f', # why\n]\n[tool.z]\nhot = []\n",
    ),
    "another table's list": (
        "[tool.torchperf]\n[tool.z]\nhot = []\n",
        '[tool.torchperf]\nhot = ["A.b"]\n[tool.z]\nhot = []\n',
    ),
}


@pytest.mark.parametrize(("before", "expected"), SETTINGS.values(), ids=SETTINGS)
def test_settings(before: str | None, expected: str, tmp_path: Path) -> None:
    if before is not None:
        (tmp_path / "pyproject.toml").write_text(before)
    path, was, text = with_named(str(tmp_path), "hot", "A.b")
    assert (Path(path), was, text) == (tmp_path / "pyproject.toml", before or "", expected)


def test_the_table_of_a_folder_above(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.torchperf]\n")
    below = tmp_path / "src"
    below.mkdir()
    (below / "pyproject.toml").write_text("[tool.other]\n")
    assert with_named(str(below), "cold", "f")[0] == str(tmp_path / "pyproject.toml")


MISTAKES = {
    "the other list": (
        "pyproject.toml",
        "[tool.torchperf]\ncold = ['f']\n",
        "cold names f: remove",
    ),
    "no TOML": ("pyproject.toml", "[tool.torchperf]\nhot = [\n", "cannot be read"),
    "a list in quotes": ("pyproject.toml", "[tool]\ntorchperf = { hot = [] }\n", "cannot be read"),
    "flake8's file": (
        ".flake8",
        "[flake8]\ntorchperf-hot = g\n",
        "sets torchperf-hot: name f there",
    ),
}


@pytest.mark.parametrize(("name", "text", "told"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_written_is_said(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(NotMarkedError, match=told):
        with_named(str(tmp_path), "hot", "f")


HEADS = {
    "a function": ("x = 1\ndef f():\n    return x\n", 2, 1),
    "the innermost one": ("def f():\n    def g():\n        pass\n    return g\n", 2, 1),
    "the outer one": ("def f():\n    def g():\n        pass\n    return g\n", 3, 0),
    "a decorator": ("@one\n@two\nasync def f():\n    pass\n", 0, 2),
    "none": ("x = 1\ndef f():\n    pass\n", 0, None),
    "half a text": ("def f(:\n    pass\n", 0, None),
}


@pytest.mark.parametrize(("text", "line", "expected"), HEADS.values(), ids=HEADS)
def test_the_function_that_holds_a_line(text: str, line: int, expected: int | None) -> None:
    assert head_of(text, line) == expected
