"""The statements of a module by line: lines that ran and findings are compared by statement.

A statement is a simple statement with all its lines, or the header of a compound one. For this unit
the lines of a line counter and of a linter agree.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from flake8_torchperf.syntax.traversal import DEFINITIONS

Span = tuple[int, int]
"""First and last line, counted from 1, both included."""

_PARTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    ``function`` is the name of the innermost function around it, or ""; ``place`` the qualified
    name of the definitions around it, classes included ("Engine.step"), or "".
    """

    span: Span
    node: ast.AST
    function: str
    place: str = ""


class Statements:
    """The statements of a module by line; none, and no ``tree``, for text that does not parse."""

    def __init__(self, source: str | ast.Module) -> None:
        self._all: list[Statement] = []
        self._by_line: dict[int, Statement] = {}
        self._conditional: dict[int, list[tuple[Span, Span]]] = {}
        self.tree: ast.Module | None = None
        try:
            self.tree = ast.parse(source) if isinstance(source, str) else source
        except (SyntaxError, ValueError):
            # Generated or templated text, of which each line counts as a statement.
            return
        self._enter(self.tree, "", "")
        self._note_conditional(self.tree)

    def span(self, line: int) -> Span:
        """Return the lines of the innermost statement at this line; without one, this line."""
        found = self._by_line.get(line)
        return found.span if found else (line, line)

    def at(self, line: int) -> Statement | None:
        """Return the innermost statement that holds this line."""
        return self._by_line.get(line)

    def conditional(self, line: int, column: int) -> bool:
        """True if the statement may run without evaluating the code at this 0-based column."""
        here = (line, column)
        return any(first <= here < last for first, last in self._conditional.get(line, ()))

    def __iter__(self) -> Iterator[Statement]:
        """Iterate over all statements, in the order of the text."""
        return iter(self._all)

    def _enter(self, parent: ast.AST, function: str, place: str) -> None:
        for node in ast.iter_child_nodes(parent):
            if not isinstance(node, _PARTS):
                continue
            inside, below = function, place
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                for decorator in node.decorator_list:
                    span = (decorator.lineno, _end(decorator))
                    self._put(Statement(span, decorator, function, place))
                below = f"{place}.{node.name}" if place else node.name
                if not isinstance(node, ast.ClassDef):
                    inside = node.name
            self._put(Statement(_header(node), node, function, place))
            self._enter(node, inside, below)

    def _put(self, statement: Statement) -> None:
        self._all.append(statement)
        for line in range(statement.span[0], statement.span[1] + 1):
            self._by_line[line] = statement

    def _note_conditional(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            for part in _conditional_parts(node):
                first = (part.lineno, part.col_offset)
                last = (_end(part), part.end_col_offset or 0)
                for line in range(first[0], last[0] + 1):
                    self._conditional.setdefault(line, []).append((first, last))


def _header(node: ast.AST) -> Span:
    """Return the lines of a simple statement, or of a compound one up to its body."""
    first = node.pattern.lineno if isinstance(node, ast.match_case) else _line(node)
    own = [child for child in ast.iter_child_nodes(node) if not isinstance(child, _PARTS)]
    if len(own) == sum(1 for _ in ast.iter_child_nodes(node)) and not hasattr(node, "body"):
        return first, _end(node)
    decorators = getattr(node, "decorator_list", [])
    heads = [child for child in own if child not in decorators]
    return first, max([first, *(_end(one) for head in heads for one in ast.walk(head))])


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _end(node: ast.AST) -> int:
    return int(getattr(node, "end_lineno", None) or 0)


def _conditional_parts(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BoolOp():
            return node.values[1:]
        case ast.Lambda():
            return [node.body]
        case ast.Assert() if node.msg is not None:
            return [node.msg]
    return []


class ByLine:
    """The nodes of a list, found by a line that they cover.

    Clauses and arguments have no line numbers, so they may cover any line.
    """

    __slots__ = ("_anywhere", "_first", "_last", "_sorted")

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._anywhere = [one for one in nodes if getattr(one, "end_lineno", None) is None]
        lined = [one for one in nodes if getattr(one, "end_lineno", None) is not None]
        self._sorted = sorted(lined, key=_first_line)
        self._first = [_first_line(one) for one in self._sorted]
        # For each node, the last line that it or a node before it covers.
        self._last = list(accumulate((_end(one) for one in self._sorted), max))

    def at(self, line: int) -> list[ast.AST]:
        """Return the nodes that cover a line, and those without lines."""
        found = list(self._anywhere)
        index = bisect_right(self._first, line) - 1
        while index >= 0 and self._last[index] >= line:
            if _end(self._sorted[index]) >= line:
                found.append(self._sorted[index])
            index -= 1
        return found


def _first_line(node: ast.AST) -> int:
    if isinstance(node, DEFINITIONS) and node.decorator_list:
        return node.decorator_list[0].lineno
    line: int = getattr(node, "lineno", 0)
    return line


class Places:
    """Finds the function around a line; made once for a module with findings."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        # By node, the statements right below it.
        self._below: dict[int, ByLine] = {}

    def around(self, line: int) -> tuple[str, int]:
        """Return the function around a line, as ``Engine.step``, and the end of the statement.

        The function is "" at module level. The end is 0 if the innermost statement has a body.
        """
        names: list[str] = []
        node: ast.AST = self._tree
        below: ast.AST | None = self._tree
        while below is not None:
            node = below
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.append(node.name)
            below = self._statement(node, line)
        simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
        return ".".join(names), (getattr(node, "end_lineno", 0) or 0) if simple else 0

    def _statement(self, node: ast.AST, line: int) -> ast.AST | None:
        """Return the first statement right below a node that holds a line."""
        below = self._below.get(id(node))
        if below is None:
            below = self._below[id(node)] = ByLine(list(_statements(node)))
        # A decorator's line does not belong to its function.
        held = [one for one in below.at(line) if getattr(one, "lineno", 0) <= line]
        return held[-1] if held else None


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements and handlers right below a node, and those in its match cases."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.ExceptHandler)):
            yield child
        elif isinstance(child, ast.match_case):
            yield from child.body
