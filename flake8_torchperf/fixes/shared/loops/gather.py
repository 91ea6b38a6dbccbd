"""Takes ``for`` loops apart, so that a list can replace them: target, iterable and conditions.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.code import argument_text, invariant, text_of, used_outside
from flake8_torchperf.syntax.bindings import all_bound_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

# Functions that look at a value without changing anything.
_LOOKS = frozenset(("isinstance", "len", "hasattr", "getattr", "id", "type"))


@dataclass(frozen=True, slots=True)
class Rounds:
    """A loop taken apart: ``body`` runs in the rounds that pass all ``conditions``.

    ``target``, ``iterable`` and the conditions are source text; ``bound`` are the names that the
    loop binds.
    """

    target: str
    iterable: str
    conditions: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    bound: frozenset[str]

    def listed(self, element: str) -> str:
        """Return the source of a list with the value of an expression in each round."""
        if element == self.target and not self.conditions:
            return f"list({self.iterable})"
        tests = "".join(f" if {one}" for one in self.conditions)
        return f"[{element} for {self.target} in {self.iterable}{tests}]"


def rounds_of(place: FixPlace, loop: ast.AST | None) -> Rounds | None:
    """Take a loop apart; None where no list can replace it, or its names are read after it."""
    if not isinstance(loop, ast.For) or loop.orelse or loop.type_comment:
        return None
    target = loop.target
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    if isinstance(target, ast.Tuple) and len(parts) < 2:
        return None
    if not all(isinstance(one, ast.Name) for one in parts):
        return None
    if any(used_outside(place, one.id, loop) for one in parts if isinstance(one, ast.Name)):
        return None
    conditions: list[str] = []
    body: Sequence[ast.stmt] = loop.body
    while body:
        match body[0]:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]) if _looks(test):
                conditions.append(_negated(place, test))
                body = body[1:]
            case ast.If(test=test, body=inner, orelse=[]) if len(body) == 1 and _looks(test):
                conditions.append(argument_text(place, test))
                body = inner
            case _:
                break
    iterable = argument_text(place, loop.iter)
    if isinstance(loop.iter, (ast.Lambda, ast.IfExp, ast.NamedExpr)):
        iterable = text_of(place, loop.iter)
    return Rounds(
        _target_text(parts), iterable, tuple(conditions), tuple(body), all_bound_by([loop])
    )


def _target_text(parts: Sequence[ast.expr]) -> str:
    return ", ".join(ast.unparse(one) for one in parts)


def _looks(test: ast.expr) -> bool:
    """True if a condition has no effects, so that it may be tested for all rounds at once."""
    match test:
        case ast.Constant() | ast.Name():
            return True
        case ast.Attribute(value=inner) | ast.UnaryOp(operand=inner):
            return _looks(inner)
        case ast.BoolOp(values=values):
            return all(map(_looks, values))
        case ast.Compare(left=left, comparators=right):
            return _looks(left) and all(map(_looks, right))
        case ast.Subscript(value=inner, slice=index):
            return _looks(inner) and _looks(index)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return name in _LOOKS and all(map(_looks, args))
        case ast.Call(func=ast.Attribute(value=inner, attr="numel" | "dim" | "startswith"),
                      args=args, keywords=[]):  # fmt: skip
            return _looks(inner) and all(map(_looks, args))
    return False


def _negated(place: FixPlace, test: ast.expr) -> str:
    match test:
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return f"{text_of(place, left)} is not None"
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return f"{text_of(place, left)} is None"
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return text_of(place, inner)
    return f"not {text_of(place, test)}"


def is_list(place: FixPlace, node: ast.expr) -> bool:
    """True if a name is a parameter annotated as a list or tuple, and never bound again."""
    function = place.around.function(node)
    if not isinstance(node, ast.Name) or function is None or node.id in all_bound_by(function.body):
        return False
    for parameter in ast.walk(function.args):
        if isinstance(parameter, ast.arg) and parameter.arg == node.id and parameter.annotation:
            declared = parameter.annotation
            if isinstance(declared, ast.Subscript):
                declared = declared.value
            return isinstance(declared, ast.Name) and declared.id in _LISTS
    return False


_LISTS = frozenset(("list", "List", "tuple", "Tuple"))


def stays(place: FixPlace, node: ast.expr) -> bool:
    """True if an iterable gives the same items each time, as a generator does not."""
    match node:
        case ast.Name():
            return is_list(place, node)
        case ast.Attribute(value=inner) | ast.Subscript(value=inner, slice=ast.Constant()):
            return invariant(inner, frozenset())
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[], keywords=[]):
            match inner:
                case ast.Call(func=ast.Attribute(value=owner, attr="state_dict"), args=[]):
                    inner = owner  # it has the same tensors each time
            return name in _PARTS and invariant(inner, frozenset())
        case ast.Call(func=ast.Name(id="zip" | "enumerate"), args=args):
            return all(stays(place, one) for one in args)
    return False


# Methods of modules and dicts that iterate all items, from the start each time.
_PARTS = frozenset(("parameters", "named_parameters", "buffers", "values", "items"))
