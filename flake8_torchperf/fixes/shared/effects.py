"""Decides which expressions have no effect but their value, and which of them run first.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.tensors import RANDOM_NAMES, only_value
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.table import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.fixes.engine.surroundings import Surroundings

_BUILTINS = frozenset(("float", "int", "bool", "len", "str", "abs", "round", "isinstance", "dict",
                       "list", "tuple"))  # fmt: skip
_READS = methods_of("reads")
_EFFECTS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def is_pure(node: ast.AST, around: Surroundings) -> bool:
    """True if an expression does nothing but compute a value, by functions of torch and builtins.

    A method that tensors have is taken for the tensor's own.
    """
    return not any(_acts(one, around) for one in ast.walk(node))


def acting_before(
    statements: Iterable[ast.stmt], end: tuple[int, int], around: Surroundings
) -> list[ast.expr]:
    """The expressions with an effect that are evaluated in statements before a place in them.

    An expression is evaluated where it ends; the targets of an assignment count as evaluated
    before its value.
    """
    return [
        node
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.expr) and place_of_end(node) < end and _acts(node, around)
    ]


def place_of_end(node: ast.expr) -> tuple[int, int]:
    """Return the line and column after an expression."""
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _acts(node: ast.AST, around: Surroundings) -> bool:
    if isinstance(node, _EFFECTS):
        return True
    return isinstance(node, ast.Call) and not _computes(node, around)


def _computes(call: ast.Call, around: Surroundings) -> bool:
    """True if a call changes nothing and draws no random numbers."""
    if any(one.arg in ("out", "inplace") for one in call.keywords):
        return False
    known = around.qualified(call.func)
    if known.startswith("builtins."):
        return known.removeprefix("builtins.") in _BUILTINS
    last = call.func.attr if isinstance(call.func, ast.Attribute) else known.rpartition(".")[2]
    if last.startswith(RANDOM_NAMES):
        return False
    if known.startswith("torch."):
        op = load().function(known)
        return op is not None and not op.in_place
    if known or not isinstance(call.func, ast.Attribute):
        return False
    method = load().method(last)
    return last in _READS or (method is not None and not method.in_place)


def appending_call(statement: ast.stmt, around: Surroundings) -> ast.Call | None:
    """Return the call of a statement ``xs.append(x)``, if the function makes the list."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as name, attr="append"),
                                     args=[_], keywords=[]) as call):  # fmt: skip
            if isinstance(only_value(name, around), ast.List):
                return call
    return None


def stored_by(statements: Sequence[ast.stmt], around: Surroundings) -> frozenset[str] | None:
    """The names that assignments store in: ``d`` of ``d["loss"] = x``, ``self`` of ``self.y = x``.

    A list that is appended to counts as stored in. None if a statement may change a tensor in
    place, or does anything else.
    """
    stored: set[str] = set()
    for statement in statements:
        appending = appending_call(statement, around)
        match statement:
            case ast.Expr() if appending is not None:
                target: ast.expr = appending.func.value  # type: ignore[attr-defined]
            case ast.Assign(targets=[target]):
                pass
            case ast.AnnAssign(target=target) if statement.value is not None:
                pass
            case _:
                return None
        name = _stored(target)
        if name is None:
            return None
        stored.add(name)
    return frozenset(stored)


def _stored(target: ast.expr) -> str | None:
    """The name that is bound, or through which an entry or attribute is set.

    Tensors can't be indexed with a text, so an entry with a text as its key is not an element.
    """
    match target:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name) if name not in ("data", "grad"):
            return _root(owner)
        case ast.Subscript(value=owner, slice=ast.Constant(value=str()) | ast.JoinedStr()):
            return _root(owner)
    return None


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
