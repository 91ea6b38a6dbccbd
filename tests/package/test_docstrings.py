"""Docstrings say what a function returns or does: they ask nothing, and do not begin like questions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("flake8_torchperf", "tools", "benchmarks")
ASKING = frozenset((
    "What", "Is", "Does", "May", "Has", "Was", "Are", "Do", "Can", "Have", "Did", "Will", "Should",
    "Which", "Whether", "How", "Must", "Could",
))  # fmt: skip
QUOTED = re.compile(r"`+[^`]*`+")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def asks(text: str) -> bool:
    return text.split()[0] in ASKING or "?" in QUOTED.sub("", text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_asks(folder: str) -> None:
    asking = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if asks(text)
    ]
    assert not asking, "\n".join(asking)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What a call returns.", True),
        ("Is it a tensor?", True),
        ("Return the calls.", False),
        ("True for ``x?``.", False),
        ("True, or not?", True),
        ("Whatever is given.", False),
    ],
)
def test_questions_are_seen(text: str, expected: bool) -> None:
    assert asks(text) is expected
