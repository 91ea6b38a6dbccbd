"""Breaks a long statement within its brackets, as the common formatters do.

A bracket whose content does not fit in its line holds it on a line of its own, or one item per line
with a comma behind the last one. Operators stand at the beginning of lines.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPENING, _CLOSING = "([{", ")]}"
_INDENT = "    "
# Operators, the loosest first; those of one row are broken at together.
_OPERATORS = (
    ("if", "else"), ("or",), ("and",), ("in", "not in", "is", "is not", "<", ">", "==", ">=", "<=",
    "!="), ("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/", "//", "%", "@"),
)  # fmt: skip
# Comments that formatters do not count.
_PRAGMAS = ("# type:", "# noqa", "# pyright:", "# pylint:")
_CLAUSES = ("for", "async", "if")
_PREFIXES = ("return", "await", "yield", "assert", "raise", "del", "if", "elif", "while")
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=")


@dataclass(frozen=True, slots=True)
class _Word:
    """A token, and whether a space stands before it in one line."""

    text: str
    space: bool
    name: bool


_Words = tuple[_Word, ...]


def laid_out(statement: str, width: int) -> str | None:
    """Return a simple statement, or the head of a compound one, broken to lines of a width.

    None where it holds comments between its lines, texts of several lines or backslashes, or where
    no bracket can be broken so that all lines fit.
    """
    indent = statement[: len(statement) - len(statement.lstrip())]
    if "\\\n" in statement or "\t" in indent:
        return None
    found = _words(statement.strip())
    if found is None:
        return None
    words, comment = found
    try:
        beside = 0 if comment.strip().startswith(_PRAGMAS) else len(comment)
        lines = _Layout(width).statement(words, indent, beside)
    except _DoesNotFitError:
        return None
    lines[0] += comment
    return "\n".join(lines)


class _DoesNotFitError(Exception):
    """No bracket can be broken so that a line fits."""


def _words(text: str) -> tuple[_Words, str] | None:
    """Return the tokens of a statement, and the comment behind it."""
    words: list[_Word] = []
    comment = ""
    last: tokenize.TokenInfo | None = None
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text + "\n").readline))
    except (tokenize.TokenError, SyntaxError):
        return None
    depth = 0
    for token in tokens:
        if token.type in _LAYOUT:
            continue
        if token.type == tokenize.COMMENT:
            if depth or comment:
                return None
            comment = f"  {token.string}"
            continue
        if token.start[0] != token.end[0] or token.type not in _PLAIN or comment:
            return None
        if token.string == ";":
            return None
        depth += (token.string in _OPENING) - (token.string in _CLOSING)
        words.append(_Word(token.string, _spaced(last, token), token.type != tokenize.OP))
        last = token
    return tuple(words), comment


_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT)
_PLAIN = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)


def _spaced(last: tokenize.TokenInfo | None, token: tokenize.TokenInfo) -> bool:
    if last is None:
        return False
    if last.end[0] == token.start[0]:
        return last.end[1] < token.start[1]
    return last.string not in ("(", "[", "{") and token.string not in (")", "]", "}", ".", ",")


def _text(words: Sequence[_Word]) -> str:
    parts = [(" " if word.space and at else "") + word.text for at, word in enumerate(words)]
    return "".join(parts)


def _top(words: Sequence[_Word]) -> Iterator[tuple[int, _Word]]:
    """Yield the words outside of brackets, with their index; opening brackets included."""
    depth = 0
    for at, word in enumerate(words):
        if word.text in _CLOSING and not word.name:
            depth -= 1
        if depth == 0:
            yield at, word
        if word.text in _OPENING and not word.name:
            depth += 1


def _pairs(words: Sequence[_Word]) -> list[tuple[int, int]]:
    """Return the outermost brackets that hold something, by the indices of their ends."""
    found: list[tuple[int, int]] = []
    start = -1
    for at, word in _top(words):
        if word.name:
            continue
        if word.text in _OPENING:
            start = at
        elif word.text in _CLOSING and at > start + 1:
            found.append((start, at))
    return found


def _pieces(words: _Words, breaks: Sequence[int]) -> list[_Words]:
    places = [0, *breaks, len(words)]
    return [words[one:other] for one, other in pairwise(places) if one < other]


def _commas(words: Sequence[_Word]) -> list[int]:
    """Return the indices behind the commas outside of brackets."""
    return [at + 1 for at, word in _top(words) if word.text == "," and not word.name]


def _operators(words: _Words) -> list[int]:
    """Return the indices of the loosest operators outside of brackets."""
    for row in _OPERATORS:
        found = [at for at, word in _top(words) if word.text in row and _is_binary(words, at)]
        if found:
            return found
    top = list(_top(words))
    return [at for (_, one), (at, word) in pairwise(top) if _is_string(one) and _is_string(word)]


def _is_string(word: _Word) -> bool:
    return word.name and word.text[-1] in "'\""


def _is_binary(words: _Words, at: int) -> bool:
    if at == 0:
        return False
    before = words[at - 1]
    if before.text in ("not", "is") and before.space and words[at].text in ("in", "not"):
        return False
    called = not keyword.iskeyword(before.text) or before.text in ("None", "True", "False")
    return (before.name and called) or before.text in _CLOSING


class _Layout:
    """Lays out the words of one statement in lines of a width."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._too_long = ""

    def statement(self, words: _Words, indent: str, beside: int) -> list[str]:
        """Return the lines of a statement with a comment of a length ``beside`` it."""
        whole = indent + _text(words)
        self._too_long = whole if len(whole) + beside > self._width else ""
        suffix = words[-1:] if words[-1].text == ":" and not words[-1].name else ()
        inner = words[: len(words) - len(suffix)]
        start = 1 if inner[0].text in _PREFIXES else 0
        assigns = [at for at, word in _top(inner) if word.text in _ASSIGNING and not word.name]
        if assigns:
            start = assigns[-1] + 1
        prefix, value = _text(inner[:start]), inner[start:]
        space = " " if value and value[0].space and prefix else ""
        return self._value(prefix + space, value, _text(suffix), indent, inside=False)

    def _fits(self, line: str) -> bool:
        return len(line) <= self._width and line != self._too_long

    def _value(
        self, prefix: str, words: _Words, suffix: str, indent: str, *, inside: bool
    ) -> list[str]:
        """Return the lines of an expression; ``inside`` says that brackets are around it."""
        flat = indent + prefix + _text(words) + suffix
        if self._fits(flat) and not _has_magic_comma(words):
            return [flat]
        commas = _commas(words)
        if commas and not inside:
            return self._in_brackets(prefix, words, suffix, indent)
        breaks = _operators(words) or _chain(words)
        ends = words[-1].text in _CLOSING and not words[-1].name
        if breaks and not (len(breaks) == 1 and ends and not inside and _operators(words)):
            if not inside:
                return self._parenthesized(prefix, words, suffix, indent, breaks)
            if not prefix:
                return self._rows(words, suffix, indent, breaks)
        try:
            return self._in_brackets(prefix, words, suffix, indent)
        except _DoesNotFitError:
            if inside or not breaks:
                raise
        return self._parenthesized(prefix, words, suffix, indent, breaks)

    def _parenthesized(
        self, prefix: str, words: _Words, suffix: str, indent: str, breaks: Sequence[int]
    ) -> list[str]:
        inner = indent + _INDENT
        line = inner + _text(words)
        rows = [line] if self._fits(line) else self._rows(words, "", inner, breaks)
        return [f"{indent}{prefix}(", *rows, f"{indent}){suffix}"]

    def _rows(self, words: _Words, suffix: str, indent: str, breaks: Sequence[int]) -> list[str]:
        """Return one line, or more, for each operand."""
        pieces = _pieces(words, breaks)
        lines: list[str] = []
        for at, piece in enumerate(pieces):
            end = suffix if at == len(pieces) - 1 else ""
            leads = at > 0 and piece[0].space and not _is_string(piece[0])
            head = f"{piece[0].text} " if leads else ""
            rest = piece[1:] if head else piece
            lines += self._value(head, rest, end, indent, inside=True)
        return lines

    def _in_brackets(self, prefix: str, words: _Words, suffix: str, indent: str) -> list[str]:
        """Return the lines with the first brackets broken that do not fit in their line."""
        pairs = _pairs(words)
        for number, (start, stop) in enumerate(pairs):
            following = pairs[number + 1][0] + 1 if number + 1 < len(pairs) else len(words)
            end = "" if number + 1 < len(pairs) else suffix
            line = indent + prefix + _text(words[:following]) + end
            body = words[start + 1 : stop]
            if self._fits(line) and not _has_magic_comma(words[start : stop + 1]):
                continue
            head = indent + prefix + _text(words[: start + 1])
            if not self._fits(head):
                break
            tail = self._value("", words[stop:], suffix, indent, inside=True)
            return [head, *self._items(body, indent + _INDENT, words[start].text), *tail]
        raise _DoesNotFitError

    def _items(self, body: _Words, indent: str, bracket: str) -> list[str]:
        """Return the lines of what stands in brackets."""
        line = indent + _text(body)
        magic = body[-1].text == "," and not body[-1].name
        if self._fits(line) and not magic and not _has_magic_comma(body):
            return [line]
        clauses = [at for at, word in _top(body) if at and word.name and word.text in _CLAUSES]
        if any(body[at].text == "for" for at in clauses):
            first = next(at for at in clauses if body[at].text in ("for", "async"))
            return self._rows(body, "", indent, [at for at in clauses if at >= first])
        commas = _commas(body)
        if not commas and bracket == "[" and len(body) == 1:
            raise _DoesNotFitError
        if not commas and _operators(body):
            return self._value("", body, "", indent, inside=True)
        lines: list[str] = []
        for piece in _pieces(body, commas):
            item = piece[:-1] if piece[-1].text == "," and not piece[-1].name else piece
            alone = not commas and (bracket == "[" or item[0].text == "*")
            lines += self._item(item, "" if alone else ",", indent)
        return lines

    def _item(self, item: _Words, end: str, indent: str) -> list[str]:
        named = len(item) > 2 and item[1].text == "=" and not item[1].name
        prefix = _text(item[:2]) if named else ""
        return self._value(prefix, item[2:] if named else item, end, indent, inside=True)


def _chain(words: _Words) -> list[int]:
    """Return the indices of the dots after calls, where there are two or more of them."""
    dots = [
        at
        for at, word in _top(words)
        if word.text == "." and not word.name and at and words[at - 1].text in _CLOSING
    ]
    return dots if len(dots) > 1 else []


def _has_magic_comma(words: Sequence[_Word]) -> bool:
    """True if a comma stands before a closing bracket, except in a tuple of one item."""
    for start, stop in _pairs(words):
        body = words[start + 1 : stop]
        commas = _commas(body)
        single = len(commas) == 1 and words[start].text in "([" and _is_literal(words, start)
        if body[-1].text == "," and not body[-1].name and not single:
            return True
        if _has_magic_comma(body):
            return True
    return False


def _is_literal(words: Sequence[_Word], start: int) -> bool:
    """True for brackets that are no call."""
    if words[start].text == "[":
        return start > 0 and (words[start - 1].name or words[start - 1].text in _CLOSING)
    before = words[start - 1] if start else None
    called = before is not None and (before.name or before.text in _CLOSING)
    return not called or (before is not None and keyword.iskeyword(before.text))
