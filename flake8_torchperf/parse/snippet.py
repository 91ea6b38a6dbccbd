"""libcst trees of single functions, cut from the module's lines.

Enters lines and an ast node that says where a function stands; leaves its libcst node and, only
when asked, positions in the file. Must not know what the code means.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from libcst.metadata import CodeRange

    from flake8_torchperf.suspects.modulemap import FunctionNode


class UnreadableError(Exception):
    """libcst cannot parse what Python can; ``str`` is the reason in one line."""


@dataclass(eq=False, slots=True)
class Snippet:
    """One piece of a file as libcst sees it.

    ``first_line`` is the 1-based line in the file of the snippet's line 1.
    """

    module: cst.Module
    body: Sequence[cst.BaseStatement]
    first_line: int
    _positions: Mapping[cst.CSTNode, CodeRange] | None = field(default=None)

    @property
    def start(self) -> tuple[int, int, int, int]:
        """The first line of the snippet, for what cannot be located within it."""
        line = max(self.first_line, 1) + (1 if self.body is not self.module.body else 0)
        return line, 0, line, 0

    def position(self, node: cst.CSTNode) -> tuple[int, int, int, int] | None:
        """1-based line and 0-based column of a node's start and end in the file.

        None for a node of another snippet. The positions of the whole snippet are computed on
        the first call.
        """
        if self._positions is None:
            self._positions = _positions(self.module)
        found = self._positions.get(node)
        if found is None:
            return None
        return (
            found.start.line + self.first_line - 1,
            found.start.column,
            found.end.line + self.first_line - 1,
            found.end.column,
        )


def parse_function(lines: Sequence[str], node: FunctionNode) -> tuple[Snippet, cst.FunctionDef]:
    """The libcst node of the function at an ast node, decorators included.

    Raises UnreadableError where libcst cannot parse it.
    """
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    snippet = parse_lines(lines, first, node.end_lineno or node.lineno, node)
    for statement in snippet.body:
        if isinstance(statement, cst.FunctionDef):
            return snippet, statement
    raise UnreadableError(f"no function found at line {node.lineno}")


def parse_lines(
    lines: Sequence[str], first: int, last: int, node: ast.stmt | None = None
) -> Snippet:
    """Parse lines ``first`` to ``last`` (1-based, inclusive), cut at the end of ``node``.

    Indented lines are put under an ``if`` instead of being dedented, so that the text inside
    multi-line strings and every column stay as they are in the file.
    """
    chosen = list(lines[first - 1 : last])
    if node is not None and node.end_col_offset is not None:
        chosen[-1] = _cut(chosen[-1], node.end_col_offset)
    if chosen[0][:1] not in (" ", "\t"):
        return _parse("".join(chosen), first, wrapped=False)
    return _parse("if 1:\n" + "".join(chosen), first - 1, wrapped=True)


def parse_module_level(lines: Sequence[str], tree: ast.Module) -> Snippet:
    """The statements of a module that stand outside functions and classes, lines kept in place."""
    kept = [""] * len(lines)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            _keep_class_body(statement, lines, kept)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _keep(statement, lines, kept)
    text = "".join(line if line else "\n" for line in kept)
    return _parse(text, 1, wrapped=False)


def _keep(statement: ast.stmt, lines: Sequence[str], kept: list[str]) -> None:
    for i in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
        kept[i] = lines[i]


def _keep_class_body(node: ast.ClassDef, lines: Sequence[str], kept: list[str]) -> None:
    """What runs when the class is made: its head and the statements that are no definitions."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    body = [s for s in node.body if not isinstance(s, definitions)]
    if not body or node.body[0].lineno == node.lineno:
        return
    first = node.body[0]
    decorated = first.decorator_list if isinstance(first, definitions) else []
    for i in range(node.lineno - 1, min([first.lineno, *(d.lineno for d in decorated)]) - 1):
        kept[i] = lines[i]
    for statement in body:
        _keep(statement, lines, kept)


def parse_expression(lines: Sequence[str], node: ast.expr) -> cst.BaseExpression:
    """The libcst node of the expression at an ast node."""
    return parse_expression_text(source_of(lines, node))


@lru_cache(maxsize=4096)
def parse_expression_text(text: str) -> cst.BaseExpression:
    """Parse one expression; newlines inside are allowed. Raises UnreadableError.

    Kept by text: a module says ``Tensor`` and ``int`` hundreds of times, and nodes never change.
    """
    try:
        return cst.parse_expression(f"({text})" if "\n" in text else text)
    except Exception as error:  # libcst raises several kinds, RecursionError among them
        raise UnreadableError(_reason(error)) from error


def source_of(lines: Sequence[str], node: ast.expr) -> str:
    """The source text of an ast expression."""
    end_line = node.end_lineno or node.lineno
    chosen = list(lines[node.lineno - 1 : end_line])
    chosen[-1] = _cut(chosen[-1], node.end_col_offset or 0)
    chosen[0] = _bytes_from(chosen[0], node.col_offset)
    return "".join(chosen)


def _positions(module: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
    """The place of every node; empty where the tree is deeper than libcst's visitor can go."""
    try:
        return MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    except (RecursionError, KeyError):
        return {}  # the finding is then reported at the first line of its function


def _parse(text: str, first_line: int, *, wrapped: bool) -> Snippet:
    try:
        module = cst.parse_module(text if text.endswith("\n") else text + "\n")
    except Exception as error:  # libcst raises several kinds, RecursionError among them
        raise UnreadableError(_reason(error)) from error
    body: Sequence[cst.BaseStatement] = module.body
    if wrapped:
        outer = module.body[0]
        assert isinstance(outer, cst.If)
        assert isinstance(outer.body, cst.IndentedBlock)
        body = outer.body.body
    return Snippet(module, body, first_line)


def _reason(error: Exception) -> str:
    # libcst's own text quotes the line it failed at, and fails itself where there is none.
    told = error.message if isinstance(error, cst.ParserSyntaxError) else str(error)
    text = " ".join(told.split())
    return f"{type(error).__name__}: {text}"[:200]


def _cut(line: str, end: int) -> str:
    return line.encode()[:end].decode(errors="replace") if not line.isascii() else line[:end]


def _bytes_from(line: str, start: int) -> str:
    return line.encode()[start:].decode(errors="replace") if not line.isascii() else line[start:]


@lru_cache(maxsize=8192)
def literal_of(text: str) -> object:
    """What a literal's source text is worth; libcst's own property compiles it each time.

    Raises ValueError or SyntaxError where the text is no literal.
    """
    return ast.literal_eval(text)
