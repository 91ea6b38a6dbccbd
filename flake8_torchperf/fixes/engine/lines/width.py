"""Wraps lines that fixes have made too long for their file."""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_right
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.lines.layout import laid_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Common widths of formatters; a file's width is the first that nearly all its code fits in.
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
    """Return the line length that a file's code allows, as far as the file shows it."""
    lengths = _code_lengths(text)
    if len(lengths) < FEWEST_LINES or max(lengths) <= TELLING:
        return max(USUAL, *lengths, 0)
    for width in WIDTHS:
        if sum(length <= width for length in lengths) >= SHARE * len(lengths):
            return width
    return max(lengths)


def _code_lengths(text: str) -> list[int]:
    """Return the lengths of the lines that hold code, without comments and texts over lines."""
    lines = text.splitlines()
    ends: dict[int, int] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in _NO_CODE and token.start[0] == token.end[0]:
                ends[token.start[0]] = token.end[1]
    except (tokenize.TokenError, SyntaxError):
        return [len(line) for line in lines if line.strip()]
    return [
        end
        for number, end in ends.items()
        if not any(word in lines[number - 1] for word in _KNOWN_LONG)
    ]


_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENDMARKER)  # fmt: skip


def wrapped(before: str, after: str, width: int | None = None) -> tuple[str, bool]:
    """Return the text after a change, with changed statements wrapped at a width.

    Without ``width``, it is that of the text before. A statement is laid out anew where it gets too
    long, or where the one that it replaces was laid out in this way. The second value is False
    where a line could not be wrapped and was left as it was.
    """
    width = width_of(before) if width is None else width
    old, lines = (io.StringIO(text, newline="").readlines() for text in (before, after))
    changed = _changes(old, lines)
    # Who left a line too long did not want it broken.
    short = [
        (earlier, new) for earlier, new in changed if all(_length(old[n]) <= width for n in earlier)
    ]
    long = {n for _, new in short for n in new if _length(lines[n]) > width}
    heads, earlier_heads = _heads(after), _heads(before)
    given: dict[int, tuple[int, str]] = {}
    for earlier, new in short:
        shaped = _is_shaped(earlier_heads, earlier, old, width)
        for start, stop in _at(heads, new):
            is_long = not long.isdisjoint(range(start, stop))
            if (shaped or stop == start + 1) and (is_long or stop > start + 1):
                anew = _anew(lines, start, stop, width)
                if anew is not None:
                    given[start] = stop, anew
    done = {n for start, (stop, _) in given.items() for n in range(start, stop)}
    tokens = _by_line(after) if long - done else {}
    fits = True
    for number in long - done:
        one = _wrapped(lines[number], tokens.get(number + 1, ()), width)
        fits = fits and one is not None
        lines[number] = lines[number] if one is None else one
    for start, (stop, text) in sorted(given.items(), reverse=True):
        lines[start:stop] = [text]
    return "".join(lines), fits


def _changes(old: Sequence[str], lines: Sequence[str]) -> list[tuple[range, range]]:
    """Return the indices of replaced lines with those of the lines in their place."""
    codes = SequenceMatcher(None, old, lines, autojunk=False).get_opcodes()
    return [(range(a, b), range(c, d)) for kind, a, b, c, d in codes if kind != "equal"]


def _heads(text: str) -> list[tuple[int, int]]:
    """Return the lines, from 0 and without the last, of simple statements and of conditions."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[tuple[int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.While)):
            end = node.test.end_lineno or node.lineno
            if node.body[0].lineno > end:
                found.append((node.lineno - 1, end))
        elif isinstance(node, ast.stmt) and not hasattr(node, "body") and node.end_lineno:
            found.append((node.lineno - 1, node.end_lineno))
    return sorted(found)


def _at(heads: Sequence[tuple[int, int]], lines: range) -> list[tuple[int, int]]:
    """Return the statements of which one of the lines is a part."""
    first = bisect_right([stop for _, stop in heads], lines.start)
    return [one for one in heads[first:] if one[0] < lines.stop]


def _is_shaped(
    heads: Sequence[tuple[int, int]], replaced: range, old: Sequence[str], width: int
) -> bool:
    """True if all statements at some lines were laid out in the way of formatters."""
    beside = replaced if replaced else range(replaced.start - 1, replaced.stop + 1)
    for start, stop in _at(heads, beside):
        text = _plain("".join(old[start:stop]))
        if stop > start + 1 and laid_out(text, width) != text:
            return False
    return True


def _anew(lines: Sequence[str], start: int, stop: int, width: int) -> str | None:
    """Return a statement laid out anew, with the line ends of its file."""
    last = lines[stop - 1]
    end = last[_length(last) :]
    new = laid_out(_plain("".join(lines[start:stop])), width)
    return None if new is None else new.replace("\n", end or "\n") + end


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")


def _length(line: str) -> int:
    return len(line.rstrip("\r\n"))


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
