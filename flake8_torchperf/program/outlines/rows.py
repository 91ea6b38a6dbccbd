"""The rows of the nodes of an outline while it is built, and the words in them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.program.outlines.outline import COMPARING, Kind
from flake8_torchperf.syntax.traversal import CONSTANT, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.program.outlines.nodes import Row

# An expression that is to be added, with its parent, slot and depth.
Waiting: TypeAlias = "tuple[ast.expr, int, str, int]"
# A node of the ast that has a place.
Placed: TypeAlias = "ast.stmt | ast.expr | ast.pattern | ast.excepthandler"
# The parents of which it is of use that something stands there, and those that may be long tables.
_ASKING = (Kind.CALL, Kind.EITHER)
_LONG = (Kind.GROUP, Kind.ROUNDS)
# The most texts that are added to one another for a name.
MAX_ADDED = 3
# Longer texts name nothing.
MAX_TEXT = 120
# The parts of a text that `format` replaces.
_HOLE = re.compile(r"\{(\w*)\}")


class Rows:
    """The rows so far, with the ast that each was made of."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.made_of: list[ast.AST] = []

    def add(self, kind: Kind, word: str, parent: int, slot: str, body: int, node: Placed) -> int:
        """Add a node; returns its number."""
        rows = self.rows
        rows.append((kind, word, parent, slot, body, node.lineno, node.col_offset))
        self.made_of.append(node)
        return len(rows) - 1

    def constant(self, value: object, parent: int, slot: str, body: int, node: ast.expr) -> None:
        """Add a literal, if its value may tell something."""
        if isinstance(value, str):
            if value.isprintable() and len(value) < MAX_TEXT:
                self.add(Kind.TEXT, value, parent, slot, body, node)
            else:
                self.unknown(parent, slot, body, node)
        elif value is None or isinstance(value, (int, float)):
            self.literal_value(repr(value), parent, slot, body, node)
        else:
            self.unknown(parent, slot, body, node)

    def literal_value(self, word: str, parent: int, slot: str, body: int, node: ast.expr) -> None:
        """Add a literal value, unless it stands in a container: those may be long tables."""
        if self.rows[parent][0] not in _LONG:
            self.add(Kind.LITERAL, word, parent, slot, body, node)

    def unknown(self, parent: int, slot: str, body: int, node: ast.expr) -> None:
        """Add an expression of which nothing is known, where that it stands there is of use."""
        if self.rows[parent][0] in _ASKING:
            self.add(Kind.OTHER, "", parent, slot, body, node)

    def operation(
        self,
        node: ast.expr,
        operators: Sequence[ast.AST],
        operands: Sequence[ast.expr],
        parent: int,
        slot: str,
        body: int,
        depth: int,
    ) -> Sequence[Waiting]:
        """Add an operation; returns its operands."""
        word = ",".join([type(one).__name__ for one in operators])
        number = self.add(Kind.OPERATION, word, parent, slot, body, node)
        constants = word in COMPARING
        return [
            (one, number, str(position), depth)
            for position, one in enumerate(operands)
            if constants or not isinstance(one, CONSTANT)
        ]


def built_text(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name that an expression puts together, a star for each part, and these parts.

    Empty for any other expression, and for a text that can't be a name.
    """
    pieces: list[str | ast.expr] = []
    match node:
        case ast.JoinedStr(values=values):
            pieces += [_piece(one) for one in values]
        case ast.BinOp(op=ast.Add()):
            pieces += _added(node, MAX_ADDED)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=right):
            parts = right.elts if isinstance(right, ast.Tuple) else [right]
            texts = text.split("%s")
            if len(texts) == len(parts) + 1:
                for before, part in zip(texts, parts):  # noqa: B905 - the last text follows
                    pieces += [before, part]
                pieces.append(texts[-1])
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            pieces += _formatted(text, node)
    holes = [one for one in pieces if not isinstance(one, str)]
    said = "".join(one for one in pieces if isinstance(one, str))
    if not holes or not said.isidentifier():
        return "", []
    return "".join(one if isinstance(one, str) else "*" for one in pieces), holes


def formats_name(node: ast.Call) -> bool:
    """True for a call of `format` that puts a name together."""
    is_format = isinstance(node.func, ast.Attribute) and node.func.attr == "format"
    return is_format and built_text(node)[0] != ""


def _formatted(text: str, call: ast.Call) -> list[str | ast.expr]:
    """Return the parts of a text that `format` puts arguments into; none if one isn't found."""
    given = {one.arg: one.value for one in call.keywords if one.arg}
    given.update((str(place), one) for place, one in enumerate(call.args))
    pieces: list[str | ast.expr] = []
    for place, piece in enumerate(_HOLE.split(text)):
        if place % 2 == 0:
            pieces.append(piece)
            continue
        value = given.get(piece or str(place // 2))
        if value is None:
            return []
        pieces.append(value)
    return pieces


def _piece(part: ast.expr) -> str | ast.expr:
    match part:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return value
    return part


def _added(node: ast.expr, left: int) -> list[str | ast.expr]:
    """Return the parts of a sum of texts."""
    match node:
        case ast.BinOp(left=first, op=ast.Add(), right=last) if left:
            return [*_added(first, left - 1), *_added(last, left - 1)]
    return [_piece(node)]


def literal(key: ast.expr) -> str:
    """Return a literal key as text; "" for one that is made at run time."""
    return str(key.value) if isinstance(key, ast.Constant) else ""


def places(target: ast.expr) -> str:
    """Return the names that a target binds, or an attribute with a dot in front."""
    match target:
        case ast.Attribute(value=ast.Name(), attr=name):
            return f".{name}"
    return " ".join(names_bound(target))


def names_bound(target: ast.expr) -> Sequence[str]:
    """Return the names that a target binds."""
    if isinstance(target, ast.Name):
        return (target.id,)
    return [one.id for one in walk([target]) if isinstance(one, ast.Name)]
