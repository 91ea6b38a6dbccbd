"""Write the user's mark for a place or a function into source text or pyproject.toml.

The functions take a text and return the changed text; they return None, or raise
`NotMarkedError`, if it cannot be written.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from flake8_torchperf.cli.noqa.toml_lists import header_of, with_item
from flake8_torchperf.configuration import configuration_files
from flake8_torchperf.fixes.engine import noqa
from flake8_torchperf.server.text import split_lines
from flake8_torchperf.special_files import refuse_special
from flake8_torchperf.syntax.contract_comments import CONTRACT

if TYPE_CHECKING:
    from collections.abc import Sequence

# The placeholder that the user replaces.
REASON = "REASON"
HOT, COLD = "hot", "cold"
PYPROJECT = "pyproject.toml"
TABLE = "tool.torchperf"


class NotMarkedError(Exception):
    """A mark can't be written; the text is one line: why, and what to do instead."""


def with_noqa(text: str, line: int, code: str) -> str | None:
    """Return the text with a ``# noqa`` for a code in a line (from 0); None if that fails."""
    changed, written = noqa.with_noqa(text, {line + 1: [code]}, REASON)
    return changed if written else None


def with_sync_free(text: str, head: int) -> str | None:
    """Return the text with the contract on a function's ``def`` line; None if it has it."""
    lines = split_lines(text)
    if CONTRACT in lines[head]:
        return None
    return _same_code(text, _commented(lines, head, CONTRACT))


def head_of(text: str, line: int) -> int | None:
    """Return the ``def`` line of the innermost function that holds a line (from 0), if any."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    heads = [
        node.lineno - 1
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and _first(node) <= line + 1 <= (node.end_lineno or node.lineno)
    ]
    return max(heads, default=None)


def _first(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _commented(lines: Sequence[str], number: int, comment: str) -> str:
    """Return the lines with a comment after one of them."""
    line = lines[number]
    code = line.rstrip("\r\n")
    changed = f"{code.rstrip()}  # {comment}{line[len(code) :]}"
    return "".join((*lines[:number], changed, *lines[number + 1 :]))


def _same_code(before: str, after: str) -> str | None:
    """Return the text after the change if only comments differ, else None.

    The end of a line can also be inside a string, or after a backslash.
    """
    try:
        same = ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return after if same else None


def settings_file(folder: str) -> str:
    """Return the pyproject.toml that holds, or is to hold, the settings of a folder."""
    for path in configuration_files(folder):
        if os.path.basename(path) == PYPROJECT and header_of(TABLE).search(_read(path)):
            return path
    return os.path.join(folder, PYPROJECT)


def with_named(folder: str, key: str, function: str) -> tuple[str, str, str]:
    """Return the settings file of a folder, its text, and that text with a function named ``key``.

    Raises `NotMarkedError`.
    """
    for path in configuration_files(folder):
        if os.path.basename(path) != PYPROJECT and re.search(rf"torchperf[-_]{key}\b", _read(path)):
            raise NotMarkedError(f"{path} sets torchperf-{key}: name {function} there")
    path = settings_file(folder)
    before = _read(path)
    after = with_item(before, TABLE, key, json.dumps(function))
    other = COLD if key == HOT else HOT
    known, wanted = _lists(path, before), _lists(path, after)
    if function in known[other]:
        raise NotMarkedError(f"{path}: {other} names {function}: remove it there")
    if {**known, key: [function, *known[key]]} != wanted:
        raise NotMarkedError(f"{path} cannot be changed safely: add {function} to {key}")
    return path, before, after


def _lists(path: str, text: str) -> dict[str, list[Any]]:
    """Return the two lists of the table. Raises `NotMarkedError` if the text can't be read."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(text).get("tool", {}).get("torchperf", {})
        return {key: list(table.get(key, ())) for key in (HOT, COLD)}
    except (tomllib.TOMLDecodeError, AttributeError, TypeError) as error:
        raise NotMarkedError(f"{path} cannot be read: {error}") from None


def _read(path: str) -> str:
    """Return the text of a file; "" if it is missing or holds no text."""
    try:
        refuse_special(path)
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""
