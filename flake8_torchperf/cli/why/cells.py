"""A place in a notebook, as ``torchperf check`` prints it, and an account in those words."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.cli.notebooks.source import (
    NotebookError,
    lines_by_cell,
    read_notebook,
)

if TYPE_CHECKING:
    from flake8_torchperf.cli.notebooks.source import Notebook
    from flake8_torchperf.cli.why.account import Account

_IN_CELL = re.compile(r"(?P<path>.*\.ipynb):cell_(?P<cell>\d{1,9}):(?P<line>\d{1,9})(?::\d+)?")
_NOTEBOOK = re.compile(r"(?P<path>.*\.ipynb)(?::[^/\\]*)?")


class CellError(Exception):
    """A place that is in no cell. The text says why in one line, and what to write."""


def names_notebook(place: str) -> bool:
    """True if a place of the command line is in a notebook, or meant to be."""
    return _NOTEBOOK.fullmatch(place) is not None


def notebook_at(place: str) -> tuple[str, Notebook, int]:
    """Return the path of a notebook, its code, and the line of the code that a place names.

    Raises CellError.
    """
    named = _IN_CELL.fullmatch(place)
    if named is None:
        other = _NOTEBOOK.fullmatch(place)
        path = place if other is None else other["path"]
        raise CellError(f"{path} is a notebook: name a cell and a line of it, {path}:cell_2:6")
    path, cell, line = named["path"], int(named["cell"]), int(named["line"])
    if not os.path.isfile(path):
        raise CellError(f"there is no file {path}")
    try:
        book = read_notebook(path)
    except NotebookError as error:
        raise CellError(f"{path} is {error}") from error
    except OSError as error:
        raise CellError(f"{path} cannot be read: {error.strerror}") from error
    if not 0 < cell <= len(book.starts):
        count = len(book.starts)
        raise CellError(f"{path} has {count} cells of code: there is no cell_{cell}")
    first = book.starts[cell - 1]
    last = [*book.starts[1:], len(book.lines)][cell - 1]
    if not 0 < line <= last - first:
        raise CellError(f"cell_{cell} of {path} has {last - first} lines: there is no line {line}")
    for number, _, why in book.problems:
        if first < number <= last:
            raise CellError(f"{path}:cell_{cell}:{number - first}: the cell is left out: {why}")
    return path, book, first + line


def in_cells(account: Account, book: Notebook) -> Account:
    """Return an account of a line of a notebook's code with all lines named by their cells."""
    path = account.path
    cell, line = book.place(account.line)
    places = re.compile(rf"{re.escape(path)}:(\d+)")

    def told(text: str) -> str:
        text = places.sub(lambda found: f"{path}:{place_in(book, int(found[1]))}", text)
        return lines_by_cell(text, book, cell)

    findings = tuple(
        replace(
            one,
            message=told(one.message),
            tensor=told(one.tensor),
            frequency=told(one.frequency),
            calls=tuple(map(told, one.calls)),
            decided=told(one.decided),
        )
        for one in account.findings
    )
    return replace(
        account,
        path=f"{path}:cell_{cell}",
        line=line,
        frequency=told(account.frequency),
        findings=findings,
        silent=tuple(replace(one, text=told(one.text)) for one in account.silent),
        values=tuple(replace(one, reason=told(one.reason)) for one in account.values),
    )


def place_in(book: Notebook, line: int) -> str:
    """Return the cell and line of a line of a notebook's code: ``cell_2:6``."""
    cell, own = book.place(line)
    return f"cell_{cell}:{own}"
