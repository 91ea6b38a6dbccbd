"""Wraps lines that fixes have made too long for their file."""

from __future__ import annotations

import io
import tokenize
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Common widths of formatters; a file's width is the first of them that nearly all its lines fit in.
WIDTHS = (79, 88, 100, 110, 120)
USUAL = 100
# A file with fewer lines, or without any line longer than `TELLING`, shows too little about its
# width; a few lines may be data.
FEWEST_LINES = 60
TELLING = 72
SHARE = 0.99
# Lines that are long because they cannot be wrapped, or for a reason that was written down.
_KNOWN_LONG = ("://", "noqa")
# Brackets that hold fewer characters are not broken.
_SHORTEST = 16
_OPENING, _CLOSING = "([{", ")]}"
_CLAUSES = ("for", "if", "async")
_INDENT = "    "


def width_of(text: str) -> int:
    """Return the line length that a file allows, as far as the file shows it."""
    lengths = [
        len(line)
        for line in text.splitlines()
        if line.strip() and not any(word in line for word in _KNOWN_LONG)
    ]
    if len(lengths) < FEWEST_LINES or max(lengths) <= TELLING:
        return max(USUAL, *lengths, 0)
    for width in WIDTHS:
        if sum(length <= width for length in lengths) >= SHARE * len(lengths):
            return width
    return max(lengths)


def wrapped(before: str, after: str) -> tuple[str, bool]:
    """Return the text after a change, with new lines wrapped at the width of the text before.

    The second value is False where a line could not be wrapped and was left as it was.
    """
    width = width_of(before)
    lines = io.StringIO(after, newline="").readlines()
    long = [number for number in _new_lines(before, lines) if _length(lines[number]) > width]
    if not long:
        return after, True
    tokens = _by_line(after)
    fits = True
    for number in long:
        new = _wrapped(lines[number], tokens.get(number + 1, ()), width)
        fits = fits and new is not None
        lines[number] = lines[number] if new is None else new
    return "".join(lines), fits


def _length(line: str) -> int:
    return len(line.rstrip("\r\n"))


def _new_lines(before: str, lines: Sequence[str]) -> Iterator[int]:
    old = io.StringIO(before, newline="").readlines()
    for kind, _, _, start, end in SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from range(start, end)


def _by_line(text: str) -> dict[int, list[tokenize.TokenInfo]]:
    """Return the tokens that lie within one line, by line from 1; none for incomplete text."""
    found: dict[int, list[tokenize.TokenInfo]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] == token.end[0]:
                found.setdefault(token.start[0], []).append(token)
    except (tokenize.TokenError, SyntaxError):
        return {}
    return found


def _wrapped(line: str, tokens: Sequence[tokenize.TokenInfo], width: int) -> str | None:
    """Return a line broken within its last brackets, or within those before them.

    A comment remains in the first of the new lines.
    """
    end = line[_length(line) :]
    comments = [token.start[1] for token in tokens if token.type == tokenize.COMMENT]
    code = line[: comments[0] if comments else _length(line)].rstrip()
    comment = "  " + line[comments[0] : _length(line)] if comments else ""
    indent = line[: len(line) - len(line.lstrip())]
    inner = indent + ("\t" if indent.startswith("\t") else _INDENT)
    # A subscript, or an item that others follow, is read as one piece.
    brackets = [
        found
        for found in _brackets(tokens)
        if code[found[0]] != "[" or not code[: found[0]][-1:].isidentifier()
    ]
    for start, stop, breaks in brackets:
        if code[stop + 1 :].lstrip().startswith(","):
            continue
        whole = code[start + 1 : stop].strip()
        for body in ([whole], _pieces(code, start, stop, breaks)):
            middle = [inner + part for part in body]
            parts = (code[: start + 1] + comment, *middle, indent + code[stop:])
            if len(whole) >= _SHORTEST and all(len(part) <= width for part in parts):
                return end.join(parts) + end
    return None


def _pieces(code: str, start: int, stop: int, breaks: Sequence[int]) -> list[str]:
    """Return the text in a line's brackets, by item, or by clause of a comprehension."""
    places = [start + 1, *breaks, stop]
    parts = [code[one:other].strip() for one, other in pairwise(places)]
    parts = [part for part in parts if part]
    if len(parts) > 1 and parts[0].endswith(",") and not parts[-1].endswith(","):
        parts[-1] += ","
    return parts


def _brackets(tokens: Sequence[tokenize.TokenInfo]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the columns of the outermost brackets that a line opens and closes, the last first.

    Each comes with the columns after its commas, or of the clauses of its comprehension.
    """
    found: list[tuple[int, int, list[int]]] = []
    open_at: list[int] = []
    commas: list[int] = []
    clauses: list[int] = []
    for token in tokens:
        column = token.start[1]
        if token.type == tokenize.OP and token.string in _OPENING:
            if not open_at:
                commas, clauses = [], []
            open_at.append(column)
        elif token.type == tokenize.OP and token.string in _CLOSING and open_at:
            start = open_at.pop()
            if not open_at:
                found.append(
                    (start, column, clauses if "for" in _words(clauses, tokens) else commas)
                )
        elif len(open_at) == 1 and token.string == ",":
            commas.append(column + 1)
        elif len(open_at) == 1 and token.string in _CLAUSES:
            clauses.append(column)
    yield from reversed(found)


def _words(columns: Sequence[int], tokens: Sequence[tokenize.TokenInfo]) -> set[str]:
    return {token.string for token in tokens if token.start[1] in columns}
