"""The words and comments that state contracts, ``# torchperf: sync-free``, and misspelt ones."""

from __future__ import annotations

import ast
import re
import tokenize
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.syntax.source_text import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The text of a comment that states a contract, rightly or not.
SAYS = "torchperf:"
CONTRACT = "torchperf: sync-free"
# Words of a module in which torch or a compiled function records a graph.
RECORDING = (
    "cuda.graph", "make_graphed_callables", "reduce-overhead", "accelerator.Graph",
    "accelerator import", "breakable_graph",
)  # fmt: skip
_CONTRACT, _RECORDING = CONTRACT.encode(), tuple(word.encode() for word in RECORDING)
# Comments and texts of several lines. Other texts are matched to be passed over.
_PROSE = re.compile(
    rb"(?P<prose>\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|#[^\n]*)"
    rb"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_STATED = re.compile(r"#\s*torchperf:\s*(?P<word>[\w-]*)")
_WELL_SPELT = re.compile(rf"#\s*{CONTRACT}(?![\w-])")
# A word with a lower similarity than this, by difflib's ratio, is another word and no misspelling.
_ALIKE = 0.6


def promises(data: bytes | str) -> bool:
    """True if a module may hold a function that must not wait.

    A comment states a contract, and code records a graph: words of `RECORDING` in a comment or a
    docstring do not count. They would make a whole package depend on the module.
    """
    if not isinstance(data, bytes):
        return False
    return _CONTRACT in data or (_says_recording(data) and _says_recording(_code(data)))


def _says_recording(data: bytes) -> bool:
    return any(word in data for word in _RECORDING)


def _code(data: bytes) -> bytes:
    """Return a text without its prose."""
    return _PROSE.sub(lambda found: b"" if found["prose"] else found[0], data)


class Comment(NamedTuple):
    """A contract's comment: its place (lines from 1, columns from 0), its text and its word.

    ``alone`` is True if nothing else is on its line, ``well_spelt`` if it may state a contract.
    """

    line: int
    column: int
    text: str
    word: str
    alone: bool
    well_spelt: bool


class Comments(NamedTuple):
    """The contracts' comments of a module, their lines, and the lines that end logical lines."""

    stated: tuple[Comment, ...]
    lines: tuple[int, ...]
    ends: tuple[int, ...]

    def of(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Comment]:
        """Return the comments at a function's signature or decorators, and directly above."""
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        at = bisect_left(self.ends, node.lineno)
        last = self.ends[at] if at < len(self.ends) else node.lineno
        near = self.stated[bisect_left(self.lines, first - 1) : bisect_right(self.lines, last)]
        return [
            one
            for one in near
            if one.line >= first or (one.alone and one.column == node.col_offset)
        ]

    def mark(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """True if a comment at a function states that it must not wait."""
        return any(one.well_spelt for one in self.of(node))


NONE = Comments((), (), ())


@lru_cache(maxsize=8)
def contract_comments(lines: tuple[str, ...]) -> Comments:
    """Return the contracts' comments in the lines of a module."""
    text = "".join(lines)
    return _read(text) if SAYS in text else NONE


def _read(text: str) -> Comments:
    stated: list[Comment] = []
    ends: list[int] = []
    for token in tokens_of(text):
        if token.type == tokenize.NEWLINE:
            ends.append(token.start[0])
        elif token.type == tokenize.COMMENT:
            found = _STATED.search(token.string)
            if found is not None:
                line, column = token.start
                alone = not token.line[:column].strip()
                well_spelt = _WELL_SPELT.match(token.string, found.start()) is not None
                place = (line, column + found.start())
                stated.append(Comment(*place, found[0], found["word"], alone, well_spelt))
    return Comments(tuple(stated), tuple(one.line for one in stated), tuple(ends))


def stray_contracts(tree: ast.Module, lines: Sequence[str]) -> Iterator[tuple[Comment, str]]:
    """Yield the comments that state no contract, each with the problem."""
    comments = contract_comments(tuple(lines))
    if not comments.stated:
        return
    functions = [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    applied = {comment for node in functions for comment in comments.of(node)}
    for comment in comments.stated:
        if not comment.well_spelt:
            yield comment, _misspelt(comment)
        elif comment not in applied:
            advice = "write it on the `def` line or right above"
            yield comment, f"`# {CONTRACT}` applies to no function here; {advice}"


def _misspelt(comment: Comment) -> str:
    from difflib import SequenceMatcher  # only where there is a mistake

    word = comment.word.lower().replace("_", "-")
    known = CONTRACT.partition(" ")[2]
    close = SequenceMatcher(None, word, known).ratio() >= _ALIKE
    advice = f"did you mean `# {CONTRACT}`?" if close else f"the only one is `# {CONTRACT}`"
    shown = comment.text if len(comment.text) <= 50 else f"{comment.text[:47]}..."
    return f"`{shown}` is no contract; {advice}"
