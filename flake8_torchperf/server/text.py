"""Lines, columns and changes of a text as the protocol counts them."""

from __future__ import annotations

import difflib
import io
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends; only ``\\n``, ``\\r\\n`` and ``\\r`` end one."""
    return io.StringIO(text, newline="").readlines()


class Units:
    """Positions in one text, in the units on which client and server agreed."""

    def __init__(self, text: str, encoding: str) -> None:
        self.lines = split_lines(text)
        self._encoding = encoding

    def position(self, line: int, column: int) -> types.Position:
        """Return the position of a character."""
        if line >= len(self.lines):
            return types.Position(len(self.lines), 0)
        before = self.lines[line][:column]
        return types.Position(line, column if before.isascii() else self._length(before))

    def span(self, span: Sequence[int]) -> types.Range:
        """Return the range from a line and column to another line and column."""
        line, column, end_line, end_column = span
        return types.Range(self.position(line, column), self.position(end_line, end_column))

    def line(self, line: int) -> types.Range:
        """Return a line without its indentation and its end."""
        text = self.lines[line].rstrip() if line < len(self.lines) else ""
        return self.span((line, len(text) - len(text.lstrip()), line, len(text)))

    def edits(self, after: str) -> list[types.TextEdit]:
        """Return the edits that make another text of this one: each replaces a run of lines."""
        new = split_lines(after)
        found: list[types.TextEdit] = []
        for start, end, text in _changes(self.lines, new):
            place = types.Range(types.Position(start, 0), self._line_start(end))
            found.append(types.TextEdit(place, text))
        return found

    def _line_start(self, line: int) -> types.Position:
        """Return where a line begins; after the last line, where that line ends."""
        if line < len(self.lines) or not self.lines or self.lines[-1].endswith(("\n", "\r")):
            return types.Position(line, 0)
        return self.position(line - 1, len(self.lines[-1]))

    def _length(self, text: str) -> int:
        if self._encoding == types.PositionEncodingKind.Utf32:
            return len(text)
        if self._encoding == types.PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the changes: first line, the line after the last, and the text in their place."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle, changed = old[start : len(old) - end], new[start : len(new) - end]
    matcher = difflib.SequenceMatcher(None, middle, changed, autojunk=False)
    for tag, first, last, begin, finish in matcher.get_opcodes():
        if tag != "equal":
            yield start + first, start + last, "".join(changed[begin:finish])
