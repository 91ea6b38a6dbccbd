"""Facts about pieces of code: their text, the names in them, and what a loop changes.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.liveness import read_after
from flake8_torchperf.syntax.source_text import between
from flake8_torchperf.syntax.traversal import FUNCTIONS, below, once

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

# Expressions that need no brackets at any place.
_CLOSED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.ListComp)


def text_of(place: FixPlace, node: ast.expr) -> str:
    """Return the source text of an expression, in brackets where it needs them in any place."""
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    text = between(place.around.module.lines, (node.lineno, node.col_offset), end)
    if isinstance(node, (ast.Tuple, ast.GeneratorExp)):
        return text  # it has brackets already
    plain = isinstance(node, _CLOSED) and "\n" not in text
    return text if plain else f"({text})"


def argument_text(place: FixPlace, node: ast.expr) -> str:
    """Return the source text of an expression, for use as an argument."""
    text = text_of(place, node)
    simple = isinstance(node, (*_CLOSED, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp))
    return text[1:-1] if simple and text.startswith("(") and "\n" not in text else text


def names_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return all names in pieces of code, read or bound."""
    return frozenset(
        inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)
    )


def writes_into(line: ast.AST, names: frozenset[str]) -> bool:
    """True if a statement writes to a part of a named value, or calls its method in place."""
    return any(names & written_by(node) for node in ast.walk(line))


def written_by(node: ast.AST) -> frozenset[str]:
    """Return the names that a node itself writes into: ``x[i] = v``, ``x.a = v``, ``x.add_(v)``."""
    match node:
        case (
            ast.Subscript(value=owner, ctx=ast.Store())
            | ast.Attribute(value=owner, ctx=ast.Store())
        ):
            return names_in([owner])
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr.endswith("_"):
            return frozenset((name,))
    return frozenset()


def named_after(node: ast.expr, around: Surroundings) -> str:
    """Return a name for an expression, made of the names and methods in it."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").lower() or "x"
        case ast.Subscript(slice=ast.Constant(value=str(name))) if name.isidentifier():
            return name.lower()
        case ast.Subscript(value=inner) | ast.UnaryOp(operand=inner):
            return named_after(inner, around)
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=args):
            if around.qualified(node.func).startswith("torch.") and args:
                inner = args[0]
            called = named_after(inner, around)
            return called if method in _SAME_VALUE else f"{called}_{method}"
    return "x"


# Methods that keep the value of a tensor.
_SAME_VALUE = ("detach", "cpu", "clone", "squeeze", "float", "double", "contiguous")


def fresh_name(place: FixPlace, node: ast.AST, wanted: Sequence[str]) -> str:
    """Return the first of several names that the code around a node does not use; "" if none."""
    taken = _names_taken(place.around.function(node) or place.around.tree)
    for name in wanted:
        if name not in taken and name not in place.around.module.imports:
            return name
    return ""


@once
def _names_taken(whole: ast.AST) -> frozenset[str]:
    """Return the names and parameters in a function or module."""
    arguments = (one.arg for one in below(whole) if isinstance(one, ast.arg))
    return names_in([whole]) | frozenset(arguments)


def used_outside(place: FixPlace, name: str, loop: ast.For) -> bool:
    """True if a name that a loop binds may be read outside the loop, with its last value."""
    function = place.around.function(loop)
    if function is not None:
        return read_after(name, loop, function.body)
    whole = place.around.tree
    within = {id(node) for node in below(loop)}
    repeated = _is_repeated(place, loop)
    for node in below(whole):
        if not isinstance(node, ast.Name) or node.id != name or id(node) in within:
            continue
        if not isinstance(node.ctx, ast.Load) or (node.lineno < loop.lineno and not repeated):
            continue
        if not _bound_around(place, node, name, whole):
            return True
    return False


def _is_repeated(place: FixPlace, loop: ast.stmt) -> bool:
    """True if another loop or a class body encloses the loop within its function."""
    here: ast.AST | None = place.around.parent(loop)
    while here is not None and not isinstance(here, FUNCTIONS):
        if isinstance(here, (ast.For, ast.AsyncFor, ast.While, ast.ClassDef)):
            return True
        here = place.around.parent(here)
    return False


def _bound_around(place: FixPlace, use: ast.Name, name: str, whole: ast.AST) -> bool:
    """True if a loop, comprehension or function within ``whole``, around a use, binds the name."""
    inner: ast.AST = use
    here = place.around.parent(use)
    while here is not None and here is not whole:
        match here:
            case ast.For(target=target, iter=iterated):
                if name in names_in([target]) and inner is not iterated:
                    return True
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                if any(name in names_in([one.target]) for one in here.generators):
                    return inner is not here.generators[0] or _in_target_or_test(place, use, here)
            case ast.Lambda(args=arguments) | ast.FunctionDef(args=arguments):
                if any(a.arg == name for a in ast.walk(arguments) if isinstance(a, ast.arg)):
                    return True
        inner, here = here, place.around.parent(here)
    return False


def _in_target_or_test(place: FixPlace, use: ast.AST, node: ast.expr) -> bool:
    """True if a use in a comprehension is not part of an iterable of its clauses."""
    here: ast.AST | None = use
    while here is not None and here is not node:
        parent = place.around.parent(here)
        if isinstance(parent, ast.comprehension) and parent.iter is here:
            return False
        here = parent
    return True


def invariant(node: ast.expr, bound: frozenset[str]) -> bool:
    """True if an expression has the same value everywhere while only ``bound`` names are bound.

    Holds for names, constants, attributes, their arithmetic, and numbers read from them.
    """
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name not in bound
        case ast.Attribute(value=inner) | ast.UnaryOp(operand=inner):
            return invariant(inner, bound)
        case ast.Subscript(value=inner, slice=ast.Constant() | ast.Name() as index):
            return invariant(inner, bound) and invariant(index, bound)
        case ast.BinOp(left=left, right=right):
            return invariant(left, bound) and invariant(right, bound)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return invariant(inner, bound)
        case ast.Call(func=ast.Name(id="float" | "int"), args=[inner], keywords=[]):
            return invariant(inner, bound)
    return False


def exits(block: Sequence[ast.stmt]) -> bool:
    """True if a block ends in ``return`` or ``raise``."""
    return bool(block) and isinstance(block[-1], (ast.Raise, ast.Return))
