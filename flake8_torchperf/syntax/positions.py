"""The places of one function's nodes in the file, and their source text."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.syntax import source_text as texts
from flake8_torchperf.syntax.traversal import FUNCTIONS, children

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Point: TypeAlias = "tuple[int, int]"
Place: TypeAlias = "tuple[int, int, int, int]"

# The end of a line after an opening bracket, and before a closing one or a dot.
_WITHIN_BRACKETS = re.compile(r"(?<=[(\[{])\s*\n\s*|\s*\n\s*(?=[)\]}.])")


class UnreadableError(Exception):
    """Text that should be an expression but is not; ``str()`` is the reason in one line."""


class Snippet:
    """One function, or the statements at module level, in the lines of its file."""

    __slots__ = ("_codes", "_edges", "_parents", "lines", "nodes")

    def __init__(self, lines: Sequence[str], nodes: Sequence[ast.AST]) -> None:
        self.lines = lines
        self.nodes = nodes
        self._parents: dict[int, ast.AST | None] | None = None
        # Cached by node, because one loop or one chain of `and` may hold thousands of findings.
        self._codes: dict[int, str] = {}
        self._edges: dict[int, tuple[list[Point], list[Point]]] = {}

    @property
    def start(self) -> Place:
        """The first line of the function, decorators included; 1 for the module level."""
        line = 1
        node = self.nodes[0] if len(self.nodes) == 1 else None
        if isinstance(node, FUNCTIONS):
            line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return line, 0, line, 0

    def position(self, node: ast.AST) -> Place | None:
        """Return the start and end of a node: 1-based line and 0-based column, in characters.

        Return None for a node outside the snippet. The brackets around a tuple or a generator are
        not part of its place, as for any other expression.
        """
        if id(node) not in self._family() or not _has_place(node):
            return None
        start, end = _extent(node)
        if not self._is_there(node):
            around = self._formatted_string(node)
            return None if around is None else self._in_characters(*_extent(around))
        if isinstance(node, (ast.Tuple, ast.GeneratorExp)):
            start, end = self._inside_brackets(node)
        return self._in_characters(start, end)

    def code(self, node: ast.AST) -> str:
        """Return the node's source on one line, with the brackets around it and without comments.

        Runs of white space become one space, and none where a line ends inside brackets.
        """
        if id(node) not in self._family():
            return self._code(node)
        if id(node) not in self._codes:
            self._codes[id(node)] = self._code(node)
        return self._codes[id(node)]

    def _code(self, node: ast.AST) -> str:
        if id(node) not in self._family() or not _has_place(node) or not self._is_there(node):
            return " ".join(ast.unparse(node).split())
        text = texts.without_comments(texts.between(self.lines, *_extent(node)))
        if isinstance(node, ast.expr):
            if self._shares_brackets(node):
                text = text[1:-1]
            before, after = texts.own_brackets(*self._around(node))
            text = before + text + after
        return " ".join(_WITHIN_BRACKETS.sub("", text).split())

    def _family(self) -> dict[int, ast.AST | None]:
        """Return the parent of each node of the snippet, by identity."""
        if self._parents is None:
            parents: dict[int, ast.AST | None] = {id(node): None for node in self.nodes}
            waiting = list(self.nodes)
            while waiting:
                parent = waiting.pop()
                inner = children(parent)
                parents.update(dict.fromkeys(map(id, inner), parent))
                waiting += inner
            self._parents = parents
        return self._parents

    def _parent(self, node: ast.AST) -> ast.AST | None:
        return self._family().get(id(node))

    def _formatted_string(self, node: ast.AST) -> ast.JoinedStr | None:
        """Return the outermost f-string around a node."""
        found: ast.JoinedStr | None = None
        above = self._parent(node)
        while above is not None and not isinstance(above, ast.stmt):
            if isinstance(above, ast.JoinedStr):
                found = above
            above = self._parent(above)
        return found

    def _is_there(self, node: ast.AST) -> bool:
        """True if the text at the node's place is the node's source.

        Before Python 3.12 the compiler parses the expressions in an f-string separately and then
        computes their places, which are wrong in some strings.
        """
        if not isinstance(node, ast.expr) or self._formatted_string(node) is None:
            return True
        try:
            found = parse_expression_text(f"({texts.between(self.lines, *_extent(node))})")
        except UnreadableError:
            return False
        return ast.dump(found) == ast.dump(node)

    def _shares_brackets(self, node: ast.expr) -> bool:
        """True for the generator of ``any(x for x in xs)``, whose brackets are the call's."""
        call = self._parent(node)
        return (
            isinstance(node, ast.GeneratorExp)
            and isinstance(call, ast.Call)
            and _extent(call)[1] == _extent(node)[1]
        )

    def _inside_brackets(self, node: ast.Tuple | ast.GeneratorExp) -> tuple[Point, Point]:
        """Return the place of a tuple or generator without the brackets that ast includes."""
        start, end = _extent(node)
        first = node.elt if isinstance(node, ast.GeneratorExp) else next(iter(node.elts), None)
        if first is None:
            return start, end
        before, after = self._around(first)
        own, _ = texts.own_brackets(before, after)
        opened = texts.without_comments(before).count("(")
        if opened == own.count("("):
            return start, end
        text = texts.between(self.lines, start, end)
        inner = texts.inner_start(text)
        return texts.advance(start, inner), texts.advance(start, text[:-1].rstrip())

    def _around(self, node: ast.expr) -> tuple[str, str]:
        """Return the text between a node and its neighbours, or the ends of its parent."""
        parent = self._parent(node)
        while parent is not None and not _has_place(parent):
            parent = self._parent(parent)
        if parent is None:
            return "", ""
        start, end = _extent(node)
        low, high = _extent(parent)
        if isinstance(parent, ast.Call):
            high = (high[0], high[1] - 1)
        if not isinstance(parent, ast.FormattedValue):
            starts, ends = self._children(parent)
            if nearest := bisect_right(ends, start):
                low = max(low, ends[nearest - 1])
            if (nearest := bisect_left(starts, end)) < len(starts):
                high = min(high, starts[nearest])
        before = texts.between(self.lines, low, start)
        after = texts.between(self.lines, end, high)
        if isinstance(parent, ast.FormattedValue):
            # Before Python 3.12 its place is that of the whole string.
            return before[before.rfind("{") + 1 :], after.partition("}")[0]
        return before, after

    def _children(self, parent: ast.AST) -> tuple[list[Point], list[Point]]:
        """Return the starts of a node's children and their ends, each in order."""
        if id(parent) not in self._edges:
            extents = [_extent(child) for child in _placed_children(parent)]
            starts, ends = sorted(one[0] for one in extents), sorted(one[1] for one in extents)
            self._edges[id(parent)] = (starts, ends)
        return self._edges[id(parent)]

    def _in_characters(self, start: Point, end: Point) -> Place:
        first, last = self.lines[start[0] - 1], self.lines[end[0] - 1]
        column = len(texts.cut_bytes(first, 0, start[1]))
        return start[0], column, end[0], len(texts.cut_bytes(last, 0, end[1]))


@lru_cache(maxsize=4096)
def parse_expression_text(text: str) -> ast.expr:
    """Parse one expression; newlines inside are allowed. Raises UnreadableError.

    The result is cached by text: a module may contain ``"Tensor"`` hundreds of times, and nodes
    never change.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about an escape is not about linting
            return ast.parse(f"({text})" if "\n" in text else text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        told = " ".join(str(error).split())
        raise UnreadableError(f"{type(error).__name__}: {told}"[:200]) from error


def _has_place(node: ast.AST) -> bool:
    return getattr(node, "end_col_offset", None) is not None


def _extent(node: ast.AST) -> tuple[Point, Point]:
    """Return the start and end that ast gives a node; columns in bytes of UTF-8."""
    assert isinstance(node, PLACED)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


PLACED = (
    ast.expr,
    ast.stmt,
    ast.excepthandler,
    ast.arg,
    ast.keyword,
    ast.alias,
    ast.pattern,
)


def _placed_children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children that have a place; a child without one is replaced by its own children."""
    for child in ast.iter_child_nodes(node):
        if _has_place(child):
            yield child
        else:
            yield from _placed_children(child)
