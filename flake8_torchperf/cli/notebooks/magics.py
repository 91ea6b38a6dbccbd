"""Replace IPython's own syntax in a cell by Python with as many lines.

Nothing is executed, so a magic's effect is unknown: ``!ls`` does nothing, ``x = %magic`` gives
``None``.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The magics of whole cells whose body is Python; the others hold other languages or text.
_PYTHON = frozenset({"capture", "prun", "python", "python3", "pypy", "time", "timeit"})
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_LINE_MAGIC = re.compile(r"(?P<before>\s*(?:[\w.\[\], ]+=\s*)?)(?:[%!]|[,;/]\w)")
# IPython's help syntax: ``torch.sum?``, ``?torch.sum``, ``%timeit?``.
_HELP = re.compile(r"(?P<before>\s*)(?:\?.*|[%\w.*]+\?{1,2})\s*$")


class NoPythonError(ValueError):
    """A cell that can't be parsed. ``line`` counts from 1 in the cell, ``column`` from 1."""

    def __init__(self, line: int, column: int, why: str) -> None:
        super().__init__(why)
        self.line = line
        self.column = column


def python_of(cell: str) -> list[str]:
    """Return the lines of a cell as Python, as many as it has. Raises `NoPythonError`."""
    lines = cell.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and (magic := _CELL_MAGIC.match(lines[first])):
        if magic[1] not in _PYTHON:
            return _blank(lines)
        lines = [*_blank(lines[: first + 1]), *lines[first + 1 :]]
    if _problem(lines) is not None:
        lines = _without_magics(lines)
        if (problem := _problem(lines)) is not None:
            raise problem
    return lines


def _blank(lines: Iterable[str]) -> list[str]:
    return ["\n" for _ in lines]


def _without_magics(lines: list[str]) -> list[str]:
    """Replace each statement that only IPython reads, with its continuation lines."""
    done: list[str] = []
    begun = 0  # where the statement begins that is read
    going_on = False
    for line in lines:
        if going_on:
            done.append("\n")
        elif (match := _HELP.match(line) or _LINE_MAGIC.match(line)) and _is_whole(done[begun:]):
            before = match["before"]
            done.append(f"{before}None\n" if "=" in before else f"{before}pass\n")
        else:
            done.append(line)
            continue
        going_on = line.rstrip("\n").endswith("\\")
        begun = len(done)
    return done


def _is_whole(lines: list[str]) -> bool:
    """True if no bracket, string or line is left open, so that the next line begins a statement."""
    try:
        for _ in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
            pass
    except tokenize.TokenError:
        return False
    except SyntaxError:
        return True  # an indentation that only the lines before explain
    return True


def _problem(lines: list[str]) -> NoPythonError | None:
    try:
        ast.parse("".join(lines))
    except SyntaxError as error:
        why = f"SyntaxError: {error.msg}"
        return NoPythonError(error.lineno or 1, error.offset or 1, why)
    except (ValueError, RecursionError, MemoryError) as error:
        return NoPythonError(1, 1, f"{type(error).__name__}: {error}")
    return None
