"""Checks for any text: linting raises no error, gives the same result twice, and valid places.

Takes a source text and returns the findings; a failed check raises `BrokenError`.
"""

from __future__ import annotations

import ast
import io
import os
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flake8_torchperf import plugin
from flake8_torchperf.plugin import TorchPerfPlugin

Row = tuple[int, int, str]
_PACKAGE = str(Path(plugin.__file__).parent)


class BrokenError(Exception):
    """A promise that was broken. Those with the same cause have the same ``kind``."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}\n{detail}")
        self.kind = kind


@dataclass(frozen=True)
class Checked:
    """``valid`` is False where Python itself cannot parse the text; then nothing was linted."""

    valid: bool
    rows: tuple[Row, ...] = ()
    seconds: float = 0.0


def check(source: str, *, twice: bool = True) -> Checked:
    """Lint a text the ways flake8 hands it over, as a file ``twice``. Raises BrokenError."""
    os.environ["TORCHPERF_DEBUG"] = "1"
    translated = source.replace("\r\n", "\n").replace("\r", "\n")
    # A file arrives with its line ends translated, standard input as it is.
    by_file = list(io.StringIO(translated))
    rows, seconds = _lint(translated, by_file)
    if rows is None:
        return Checked(False)
    again, _ = _lint(translated, by_file) if twice else (rows, 0.0)
    if rows != again:
        raise BrokenError("not the same twice", f"{rows}\n{again}")
    if source != translated:
        _lint(source, list(io.StringIO(source)))
    _inspect(rows, by_file)
    return Checked(True, tuple(rows), seconds)


def _lint(text: str, lines: list[str]) -> tuple[list[Row] | None, float]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, 0.0  # flake8 reports it as E999 or E902 and builds no plugin
    began = time.perf_counter()
    try:
        rows = [row[:3] for row in TorchPerfPlugin(tree, lines, "fuzzed.py").run()]
    except Exception as error:
        raise BrokenError(_kind(error), traceback.format_exc(limit=-12)) from error
    return rows, time.perf_counter() - began


def _kind(error: Exception) -> str:
    """Return the error's type and the innermost place of ours that it passed."""
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(_PACKAGE)
    ]
    place = f"{os.path.relpath(ours[-1].filename, _PACKAGE)}:{ours[-1].lineno}" if ours else "?"
    if isinstance(error, RecursionError):
        place = "anywhere"  # where the stack ends is chance
    return f"{type(error).__name__} at {place}"


def _inspect(rows: list[Row], lines: list[str]) -> None:
    for line, column, text in rows:
        if not 1 <= line <= max(1, len(lines)):
            raise BrokenError("a line that the file has not", f"{line}: {text}")
        if not 0 <= column <= len(lines[line - 1].rstrip("\n") if lines else ""):
            raise BrokenError("a column that the line has not", f"{line}:{column}: {text}")
        if not text.isprintable():
            raise BrokenError("a message that is not one line of print", repr(text))
    places = [(line, column, text[:6]) for line, column, text in rows]
    if places != sorted(places):
        raise BrokenError("not in the order of the file", str(places))
    if len(set(rows)) != len(rows):
        raise BrokenError("one finding twice", str(rows))


def minimised(source: str, kind: str, seconds: float = 60.0) -> str:
    """Return a text as short as can be that breaks the same promise: lines, then characters, go."""
    end = time.monotonic() + seconds

    def still(text: str) -> bool:
        if time.monotonic() > end:
            return False
        try:
            check(text)
        except BrokenError as broken:
            return broken.kind == kind
        return False

    lines = _without(source.splitlines(True), lambda kept: still("".join(kept)))
    return "".join(_without(list("".join(lines)), lambda kept: still("".join(kept))))


def _without(parts: list[str], still: Callable[[list[str]], bool]) -> list[str]:
    """Remove halves, quarters and finally single parts, as long as ``still`` holds."""
    size = max(1, len(parts) // 2)
    while True:
        shorter, start = False, 0
        while start < len(parts):
            kept = parts[:start] + parts[start + size :]
            if kept and still(kept):
                parts, shorter = kept, True
            else:
                start += size
        if size == 1 and not shorter:
            return parts
        size = max(1, size // 2)
