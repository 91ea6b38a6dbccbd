"""Docstrings and comments are statements: they ask nothing, and do not begin like questions."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
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
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)  # of a constant


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a module; those of lines in a row are one."""
    found: list[tuple[int, list[str]]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if not found or token.start[0] != found[-1][0] + len(found[-1][1]):
            found.append((token.start[0], []))
        found[-1][1].append(token.string.lstrip("# "))
    yield from ((line, "\n".join(words)) for line, words in found)


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


def test_no_comment_of_the_package_asks() -> None:
    asking = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / "flake8_torchperf").rglob("*.py"))
        for line, text in comments(path.read_text(encoding="utf-8"))
        if text.strip() and not text.startswith("How ") and asks(text)
    ]
    assert not asking, "\n".join(asking)


def test_lines_in_a_row_are_one_comment() -> None:
    source = "# One\n# What follows.\na = 1\nb = 1  # Is it?\n\n# Last\n"
    assert [*comments(source)] == [(1, "One\nWhat follows."), (4, "Is it?"), (6, "Last")]


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
