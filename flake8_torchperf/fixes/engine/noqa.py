"""Suppression comments: where flake8 looks for them, the codes they name, and how to write them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8.defaults import NOQA_INLINE_REGEXP
from flake8.utils import parse_comma_separated_list

_LETTERS = re.compile(r"\w+")
# A word of letters and digits, with what hyphens and dots add to it.
_WORD = re.compile(r"\w+(?:[-.]\w+)*")

if TYPE_CHECKING:
    import libcst as cst


@dataclass(frozen=True, slots=True)
class NoqaComment:
    """A ``# noqa`` with codes: its place (line from 1, column from 0), and the codes.

    ``misspelt`` is the word that flake8 reads as another code, or as none, and "" elsewhere: of
    ``TPF10l`` it takes ``TPF10``. ``codes`` holds only the codes before it.
    """

    line: int
    column: int
    codes: tuple[str, ...]
    misspelt: str = ""


def line_ends(text: str) -> dict[int, int]:
    """Return for each line the last line that shares its ``# noqa``.

    A comment counts for one line, and for all that a backslash or a string of several lines joins
    (flake8's `FileProcessor.noqa_line_for`). Lines after a syntax error are missing.
    """
    ends: dict[int, int] = {}
    for group in _groups(text):
        first = min(token.start[0] for token in group)
        last = max(token.end[0] for token in group[:-1]) if len(group) > 1 else first
        ends.update(dict.fromkeys(range(first, last + 1), last))
    return ends


def noqa_comments(text: str) -> list[NoqaComment]:
    """Return the ``# noqa`` comments of a text that name codes, in the order of the text."""
    found = []
    for group in _groups(text):
        for token in group:
            named = NOQA_INLINE_REGEXP.search(token.string) if _is_comment(token) else None
            if named is None:
                continue
            codes, misspelt = _as_written(named, token.string[named.end() :])
            line, column = token.start
            if codes or misspelt:
                found.append(NoqaComment(line, column + named.start(), codes, misspelt))
            break  # flake8 uses only the first
    return found


def _as_written(named: re.Match[str], rest: str) -> tuple[tuple[str, ...], str]:
    """Return the codes of a comment, and a word after them that is meant for one but is none."""
    listed = named["codes"] or ""
    codes = tuple(parse_comma_separated_list(listed))
    if listed[-1:].isdigit():
        attached = _LETTERS.match(rest)
        return (codes[:-1], codes[-1] + attached.group()) if attached else (codes, "")
    if listed and not listed.rstrip().endswith(","):
        return codes, ""  # a reason follows
    word = _WORD.match(rest if listed else rest.removeprefix(":").lstrip())
    return codes, word.group() if word and word.group().upper().startswith("TPF") else ""


def _is_comment(token: tokenize.TokenInfo) -> bool:
    return token.type == tokenize.COMMENT


def _groups(text: str) -> list[list[tokenize.TokenInfo]]:
    """Return the tokens of a text, in groups that each end with a line break."""
    groups: list[list[tokenize.TokenInfo]] = []
    group: list[tokenize.TokenInfo] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT):
                continue
            group.append(token)
            if token.type in (tokenize.NL, tokenize.NEWLINE):
                groups.append(group)
                group = []
    except (tokenize.TokenError, SyntaxError):
        return groups  # the rest cannot be divided into groups
    return groups


def with_noqa(
    text: str, wanted: Mapping[int, Sequence[str]], reason: str = ""
) -> tuple[str, frozenset[int]]:
    """Return the text with a ``# noqa`` for the codes wanted in lines, and the lines that have it.

    A comment that already names codes gets further ones; ``reason`` follows new comments. The text
    is returned unchanged if it does not parse, or if its meaning would change.
    """
    import libcst as cst

    ends = line_ends(text)
    last_lines: dict[int, list[str]] = {}
    for line, codes in wanted.items():
        listed = last_lines.setdefault(ends.get(line, line), [])
        listed += [code for code in codes if code not in listed]
    try:
        module = cst.parse_module(text)
        changed, written = _commented(module, last_lines, reason)
        same = ast.dump(ast.parse(text)) == ast.dump(ast.parse(changed))
    except (cst.ParserSyntaxError, SyntaxError, ValueError, RecursionError, MemoryError):
        return text, frozenset()
    if not same:
        return text, frozenset()
    return changed, frozenset(line for line in wanted if ends.get(line, line) in written)


def _commented(
    module: cst.Module, wanted: Mapping[int, Sequence[str]], reason: str
) -> tuple[str, set[int]]:
    import libcst as cst
    from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider

    class Writer(cst.CSTTransformer):
        METADATA_DEPENDENCIES = (WhitespaceInclusivePositionProvider,)
        written: set[int]

        def leave_TrailingWhitespace(
            self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
        ) -> cst.TrailingWhitespace:
            place = self.get_metadata(WhitespaceInclusivePositionProvider, original_node)
            line = place.start.line
            if line not in wanted or line in self.written:
                return updated_node
            self.written.add(line)
            known = updated_node.comment.value if updated_node.comment is not None else ""
            return updated_node.with_changes(
                whitespace=updated_node.whitespace if known else cst.SimpleWhitespace("  "),
                comment=cst.Comment(_comment(known, wanted[line], reason)),
            )

    writer = Writer()
    writer.written = set()
    changed = MetadataWrapper(module).visit(writer)
    return changed.code, writer.written


def _comment(known: str, codes: Sequence[str], reason: str) -> str:
    """Return a line's comment, ``known`` so far, with further codes."""
    named = NOQA_INLINE_REGEXP.search(known)
    if named is not None and named["codes"]:
        end = named.end("codes") - len(named["codes"]) + len(named["codes"].rstrip(", \t"))
        return f"{known[:end]},{','.join(codes)}{known[end:]}"
    new = f"# noqa: {','.join(codes)}" + (f" - {reason}" if reason else "")
    return f"{known}  {new}" if known else new
