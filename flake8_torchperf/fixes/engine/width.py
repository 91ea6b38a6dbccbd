"""Wraps lines that fixes made too long for their file."""

from __future__ import annotations

import io
import tokenize
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Widths that formatters are set to; a file has the first of them that nearly all its lines keep.
WIDTHS = (79, 88, 100, 110, 120)
USUAL = 100
# A shorter file says too little about its width, and so does one without longer lines; a few lines
# may be data.
FEWEST_LINES = 60
TELLING = 72
SHARE = 0.99
_OPENING, _CLOSING = "([{", ")]}"
_INDENT = "    "


def width_of(text: str) -> int:
    """Return how long the lines of a file are allowed to be, as far as the file shows."""
    lengths = [len(line) for line in text.splitlines() if line.strip()]
    if len(lengths) < FEWEST_LINES or max(lengths) <= TELLING:
        return max(USUAL, *lengths, 0)
    for width in WIDTHS:
        if sum(length <= width for length in lengths) >= SHARE * len(lengths):
            return width
    return max(lengths)


def wrapped(before: str, after: str) -> tuple[str, bool]:
    """Return the text after a change without new lines longer than the width of the text before.

    The second value is False where a line could not be wrapped, and is as it was.
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
    """Return the tokens that begin and end in each line, counted from 1; none of half a text."""
    found: dict[int, list[tokenize.TokenInfo]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] == token.end[0]:
                found.setdefault(token.start[0], []).append(token)
    except (tokenize.TokenError, SyntaxError):
        return {}
    return found


def _wrapped(line: str, tokens: Sequence[tokenize.TokenInfo], width: int) -> str | None:
    """Return a line in three, broken within the last brackets that make all of them short."""
    if any(token.type == tokenize.COMMENT for token in tokens):
        return None
    end = line[_length(line) :]
    indent = line[: len(line) - len(line.lstrip())]
    inner = indent + ("\t" if indent.startswith("\t") else _INDENT)
    for start, stop in _brackets(tokens):
        body = line[start + 1 : stop].strip()
        parts = (line[: start + 1], inner + body, indent + line[stop : _length(line)])
        if body and all(len(part) <= width for part in parts):
            return end.join(parts) + end
    return None


def _brackets(tokens: Sequence[tokenize.TokenInfo]) -> Iterator[tuple[int, int]]:
    """Yield the columns of brackets that open and close in a line, the last to close first."""
    pairs: list[tuple[int, int]] = []
    open_at: list[int] = []
    for token in tokens:
        if token.type != tokenize.OP:
            continue
        if token.string in _OPENING:
            open_at.append(token.start[1])
        elif token.string in _CLOSING and open_at:
            pairs.append((open_at.pop(), token.start[1]))
    yield from sorted(pairs, key=lambda pair: -pair[1])
