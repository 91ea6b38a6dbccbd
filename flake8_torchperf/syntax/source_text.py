"""Pieces of source text: columns in bytes, comments and brackets."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NEWLINE = re.compile(r"\r\n|\r|\n")
_COMMENT = re.compile(r"#[^\r\n]*")
_BLANK = r"(?:[\s\\]|#[^\r\n]*)*"
_OPENING = re.compile(r"\(" + _BLANK)
_OPENED = re.compile(r"[\s\\(]*\Z")
_CLOSED = re.compile(r"[\s\\)]*")


def cut_bytes(line: str, start: int, end: int | None) -> str:
    """Return a piece of a line; ``start`` and ``end`` count bytes of UTF-8, as ast does."""
    if line.isascii():
        return line[start:end]
    return line.encode()[start:end].decode(errors="replace")


def between(lines: Sequence[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the text between two places: 1-based lines, columns in bytes; "" if there is none."""
    if start >= end:
        return ""
    if start[0] == end[0]:
        return cut_bytes(lines[start[0] - 1], start[1], end[1])
    chosen = list(lines[start[0] - 1 : end[0]])
    chosen[-1] = cut_bytes(chosen[-1], 0, end[1])
    chosen[0] = cut_bytes(chosen[0], start[1], None)
    return "".join(chosen)


def advance(place: tuple[int, int], text: str) -> tuple[int, int]:
    """Return the place where ``text`` ends if it starts at ``place``; columns in bytes."""
    pieces = _NEWLINE.split(text)
    width = len(pieces[-1].encode())
    if len(pieces) == 1:
        return place[0], place[1] + width
    return place[0] + len(pieces) - 1, width


def tokens_of(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the tokens of a module, up to the first that can't be read."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return  # the parser reports text that is not Python


def without_comments(text: str) -> str:
    """Return a piece of source text without its comments."""
    if "#" not in text:
        return text
    # Within brackets, the tokenizer ignores line ends and indentation.
    lines = io.StringIO(f"(\n{text}\n)").readlines()
    try:
        for token in tokenize.generate_tokens(iter(list(lines)).__next__):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column] + "\n"
    except (tokenize.TokenError, SyntaxError):
        return text  # the text can't be tokenized, so it is shown unchanged
    return "".join(lines[1:-1])[:-1]


def own_brackets(before: str, after: str) -> tuple[str, str]:
    """Return the round brackets around an expression, given the text before and after it.

    Neither text holds strings, because the texts end at the expression's neighbours.
    """
    before, after = _COMMENT.sub("", before), _COMMENT.sub("", after)
    opened, closed = _OPENED.search(before), _CLOSED.match(after)
    assert opened is not None  # both patterns match the empty text
    assert closed is not None
    count = min(opened[0].count("("), closed[0].count(")"))
    if not count:
        return "", ""
    return _opening(opened[0], count), _closing(closed[0], count)


def inner_start(text: str) -> str:
    """Return the bracket that ``text`` begins with, and the blanks and comments after it."""
    found = _OPENING.match(text)
    return found[0] if found is not None else ""


def _opening(text: str, count: int) -> str:
    at = len(text)
    for _ in range(count):
        at = text.rindex("(", 0, at)
    return text[at:]


def _closing(text: str, count: int) -> str:
    at = 0
    for _ in range(count):
        at = text.index(")", at) + 1
    return text[:at]
