"""A notebook's code cells as one module: a file in, its lines out, each with its cell.

Names are shared between cells, as when they run from top to bottom.
"""

from __future__ import annotations

import os
import re
import warnings
from bisect import bisect
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.cli.notebooks.magics import NoPythonError, python_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from flake8.violation import Violation

NO_NBFORMAT = (
    "a notebook, which takes nbformat to read: pip install flake8-torchperf[notebooks]; "
    "or run nbqa flake8 --select TPF"
)
# Lines that a message names, outside of the code that it shows.
_LINE = re.compile(r"\bline (\d+)\b")


class NotebookError(Exception):
    """A notebook that can't be read. The text says why in one line, without the name."""


@dataclass(frozen=True)
class Notebook:
    """The code of a notebook.

    ``starts`` holds the line before the first one of each code cell. ``problems`` are the cells
    left out: line, column and why.
    """

    lines: tuple[str, ...]
    starts: tuple[int, ...]
    problems: tuple[tuple[int, int, str], ...]

    def place(self, line: int) -> tuple[int, int]:
        """Return the cell of a line, and its line there; both from 1, cells counted as in nbQA."""
        cell = max(1, bisect(self.starts, line - 1))
        return cell, line - (self.starts[cell - 1] if self.starts else 0)


def read_notebook(path: str) -> Notebook:
    """Read a notebook. Raises `NotebookError`, and OSError where the file can't be read."""
    return _read(path, os.stat(path).st_mtime_ns)


@lru_cache(maxsize=8)
def _read(path: str, _written: int) -> Notebook:
    return joined(_code_cells(path))


def joined(cells: Iterable[str]) -> Notebook:
    """Return the code of these cells as one module."""
    lines: list[str] = []
    starts: list[int] = []
    problems: list[tuple[int, int, str]] = []
    for cell in cells:
        before = len(lines)
        starts.append(before)
        try:
            lines += python_of(cell)
        except NoPythonError as error:
            lines += ["\n"] * len(cell.splitlines())
            problems.append((before + error.line, error.column, str(error)))
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
    return Notebook(tuple(lines), tuple(starts), tuple(problems))


def _code_cells(path: str) -> list[str]:
    """Return the texts of the code cells; none if the notebook is in another language."""
    try:
        import nbformat
    except ImportError:
        raise NotebookError(NO_NBFORMAT) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cells of older notebooks have no ids
        try:
            book = nbformat.read(path, as_version=4)
        except OSError:
            raise
        except Exception as error:
            # Of JSON, of old versions and of missing keys, each of another kind.
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise NotebookError(f"no notebook: {why[:120]}") from error
    if not is_python(book.metadata):
        return []
    return [cell.source for cell in book.cells if cell.cell_type == "code"]


def is_python(metadata: Any) -> bool:
    """True if a notebook's metadata names no other language."""
    named = (
        metadata.get("kernelspec", {}).get("language"),
        metadata.get("language_info", {}).get("name"),
    )
    return all("python" in str(name).lower() for name in named if name)


def in_cell(error: Violation) -> Violation:
    """Return a finding in a notebook with its cell and its line in that cell."""
    try:
        book = read_notebook(error.filename)
    except (OSError, NotebookError):
        return error  # that is what the finding says
    cell, line = book.place(error.line_number)
    name = f"{error.filename}:cell_{cell}"
    text = lines_by_cell(error.text, book, cell)
    return error._replace(filename=name, line_number=line, text=text)


def lines_by_cell(text: str, book: Notebook, here: int) -> str:
    """Return a message with lines named by their cells; text between backticks is unchanged."""

    def named(match: re.Match[str]) -> str:
        cell, line = book.place(int(match[1]))
        return f"line {line}" if cell == here else f"line {line} of cell_{cell}"

    parts = text.split("`")
    return "`".join(_LINE.sub(named, one) if i % 2 == 0 else one for i, one in enumerate(parts))
