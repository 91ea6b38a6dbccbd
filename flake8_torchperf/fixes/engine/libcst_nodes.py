"""Finds the nodes of libcst's tree that correspond to nodes of the linted ast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from flake8_torchperf.syntax.source_text import cut_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Point: TypeAlias = "tuple[int, int]"

# Names of nodes that differ between ast and libcst.
_KINDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.AsyncFunctionDef: ("FunctionDef",),
    ast.AsyncFor: ("For",),
    ast.AsyncWith: ("With",),
    ast.Assign: ("Assign",),
    ast.Constant: ("SimpleString", "ConcatenatedString", "Integer", "Float", "Imaginary", "Name",
                   "Ellipsis"),
    ast.BinOp: ("BinaryOperation",),
    ast.UnaryOp: ("UnaryOperation",),
    ast.BoolOp: ("BooleanOperation",),
    ast.Compare: ("Comparison",),
    ast.JoinedStr: ("FormattedString", "ConcatenatedString"),
    ast.Starred: ("StarredElement", "Arg"),
}  # fmt: skip


class Positions:
    """The positions of the nodes of one parsed text; computed once per text."""

    def __init__(self, module: cst.Module, lines: Sequence[str]) -> None:
        self._lines = lines
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self._ranges: Mapping[cst.CSTNode, object] = wrapper.resolve(PositionProvider)
        self._by_start: dict[Point, list[tuple[cst.CSTNode, Point]]] | None = None
        self._lines_of: dict[cst.CSTNode, cst.SimpleStatementLine] = {}

    def find(self, node: ast.AST) -> cst.CSTNode | None:
        """Return libcst's node for a node of the ast; None where it is not certain.

        For a simple statement this is its `cst.SimpleStatementLine`, comments above it included;
        None where several share the line.
        """
        if not isinstance(node, (ast.expr, ast.stmt)):
            return None
        start, end = self._start(node), self._end(node)
        names = _KINDS.get(type(node), (type(node).__name__,))
        for found, its_end in self._starting().get(start, ()):
            if type(found).__name__ not in names:
                continue
            if isinstance(node, ast.expr):
                if its_end == end and _same(found, node):
                    return found
            elif isinstance(found, cst.BaseSmallStatement):
                return self._lines_of.get(found) if its_end == end else None
            else:
                return found
        return None

    def _starting(self) -> dict[Point, list[tuple[cst.CSTNode, Point]]]:
        if self._by_start is None:
            table: dict[Point, list[tuple[cst.CSTNode, Point]]] = {}
            for node, place in self._ranges.items():
                if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                    self._lines_of[node.body[0]] = node
                if not isinstance(node, _PLACED):
                    continue
                start = (place.start.line, place.start.column)  # type: ignore[attr-defined]
                end = (place.end.line, place.end.column)  # type: ignore[attr-defined]
                table.setdefault(start, []).append((node, end))
            self._by_start = table
        return self._by_start

    def _start(self, node: ast.expr | ast.stmt) -> Point:
        """Return where libcst says that a node begins; it leaves out the brackets of a tuple."""
        match node:
            case ast.Tuple(elts=[first, *_]) | ast.GeneratorExp(elt=first):
                return self._start(first)
        return self._in_characters(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> Point:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        line, column = self._in_characters(node.end_lineno, node.end_col_offset)
        if isinstance(node, (ast.Tuple, ast.GeneratorExp)) and node.end_col_offset:
            inner = self._lines[line - 1][: column - 1].rstrip()
            if self._lines[line - 1][column - 1 : column] == ")":
                return line, len(inner)
        return line, column

    def _in_characters(self, line: int, column: int) -> Point:
        """Convert a column from ast's UTF-8 bytes to libcst's characters."""
        return line, len(cut_bytes(self._lines[line - 1], 0, column))


def _same(found: cst.CSTNode, node: ast.expr) -> bool:
    """True if ``found`` and ``node`` are the same expression.

    Positions alone can mislead, above all in f-strings.
    """
    code = cst.Module([]).code_for_node(found)
    try:
        parsed = ast.parse(f"({code}\n)", mode="eval").body
    except SyntaxError:
        return False
    return _shape(parsed) == _shape(node)


def _shape(node: ast.expr) -> str:
    """Return the dump of an expression, whether it is read or written."""
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")


_PLACED = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.Arg)
