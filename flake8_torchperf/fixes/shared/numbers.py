"""Proves that expressions are Python ints for all arguments of callers, as safe fixes require.

Proofs are literals, `len`, shapes, `range`, conversions, arithmetic of these, and `isinstance`
tests on every path. Annotations, docstrings, defaults and attributes prove nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.code import exits
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.traversal import FUNCTIONS, below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.fixes.engine.surroundings import Surroundings

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_GIVE_INTS = frozenset(("builtins.len", "builtins.int"))
_CHOOSE = frozenset(("builtins.max", "builtins.min", "builtins.abs"))
_COUNTS = methods_of("counts-elements", "counts-dimensions")
# Arithmetic with larger literals may overflow int64, with a different error in each function.
_LARGEST = 2**31
_BLOCKS = ("body", "orelse", "finalbody")


def is_whole(node: ast.expr, around: Surroundings, *, or_bool: bool = False) -> bool:
    """True if an expression is proved to be an int; a bool counts only with ``or_bool``."""
    return _Proof(around, or_bool).whole(node)


def is_real(node: ast.expr, around: Surroundings) -> bool:
    """True if an expression is proved to be an int, bool or float, including numpy's float64."""
    if is_whole(node, around, or_bool=True):
        return True
    match node:
        case ast.Constant(value=float()):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return is_real(operand, around)
        case ast.Call(func=ast.Name() as func, args=[_], keywords=[]):
            return around.qualified(func) == "builtins.float"
    tested = _tested_types(node, around)
    return bool(tested) and tested <= {"builtins.int", "builtins.float", "builtins.bool"}


class _Proof:
    """One proof, with the names that are being examined."""

    def __init__(self, around: Surroundings, or_bool: bool) -> None:
        self._around = around
        self._or_bool = or_bool
        self._open: set[str] = set()

    def whole(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return type(value) is int and value < _LARGEST
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.whole(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return isinstance(op, _ARITHMETIC) and self.whole(left) and self.whole(right)
            case ast.IfExp(body=one, orelse=other):
                return self.whole(one) and self.whole(other)
            case ast.Subscript(value=value, slice=index):
                return is_size(value) and is_position(index)
            case ast.Attribute(attr="ndim"):
                return True
            case ast.Call():
                return self._call(node)
            case ast.Name():
                return self._name(node)
        return False

    def _call(self, node: ast.Call) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr="size"), args=[index], keywords=[]):
                return is_position(index)
            case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]) if name in _COUNTS:
                return True
        called = self._around.qualified(node.func)
        if called in _GIVE_INTS:
            return True
        if called not in _CHOOSE or node.keywords or not node.args:
            return False
        return (len(node.args) > 1 or called == "builtins.abs") and all(map(self.whole, node.args))

    def _name(self, node: ast.Name) -> bool:
        if self._is_tested(node):
            return True
        function = self._around.function(node)
        if function is None or _may_be_set_elsewhere(function, node.id):
            return False
        if node.id in self._open:
            return True  # `n = n + 1` shows nothing about the earlier n
        self._open.add(node.id)
        bound = [
            one
            for one in below(function)
            if isinstance(one, ast.Name) and one.id == node.id and not _is_read(one)
        ]
        proved = bool(bound) and all(map(self._is_bound_to_whole, bound))
        self._open.discard(node.id)
        return proved

    def _is_tested(self, node: ast.Name) -> bool:
        types = _tested_types(node, self._around)
        exact = types == {"int"}
        return exact or (self._or_bool and bool(types) and types <= {"builtins.int", "int"})

    def _is_bound_to_whole(self, target: ast.Name) -> bool:
        above = self._around.parent(target)
        match above:
            case ast.Assign(targets=targets, value=value) if target in targets:
                return self.whole(value)
            case ast.NamedExpr(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return self.whole(value)
            case ast.AnnAssign(value=None):
                return True
            case ast.AugAssign(op=op, value=value):
                return isinstance(op, _ARITHMETIC) and self.whole(value)
            case ast.For(target=one, iter=iterated) | ast.comprehension(target=one, iter=iterated):
                return one is target and self._is_call_of(iterated, "builtins.range")
            case ast.Tuple():
                return self._is_unpacked(target, above)
        return False

    def _is_unpacked(self, target: ast.Name, names: ast.Tuple) -> bool:
        match self._around.parent(names):
            case ast.Assign(value=value) if is_size(value):
                return True
            case ast.Assign(value=ast.Tuple(elts=values)) if len(values) == len(names.elts):
                plain = not any(isinstance(one, ast.Starred) for one in (*values, *names.elts))
                return plain and self.whole(values[names.elts.index(target)])
            case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
                counts = self._is_call_of(iterated, "builtins.enumerate")
                return counts and len(iterated.args) == 1 and names.elts[0] is target  # type: ignore[attr-defined]
        return False

    def _is_call_of(self, node: ast.expr, name: str) -> bool:
        return isinstance(node, ast.Call) and self._around.qualified(node.func) == name


def is_size(node: ast.expr) -> bool:
    """True for ``x.shape`` and ``x.size()``, whose elements are ints."""
    match node:
        case ast.Attribute(attr="shape"):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[], keywords=[]):
            return True
    return False


def is_position(index: ast.expr) -> bool:
    """True for a literal int, negative or not."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        index = index.operand
    return isinstance(index, ast.Constant) and type(index.value) is int


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _may_be_set_elsewhere(function: ast.AST, name: str) -> bool:
    """True if a parameter, an import, another function or an outer name may set the name."""
    for node in below(function):
        match node:
            case ast.arg(arg=bound) if bound == name:
                return True
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                return True
            case ast.alias(name=whole, asname=short) if name in (whole, short):
                return True
            case ast.ExceptHandler(name=bound) | ast.MatchAs(name=bound) if bound == name:
                return True
            case ast.MatchStar(name=bound) | ast.MatchMapping(rest=bound) if bound == name:
                return True
            case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound) if bound == name:
                return True
            case ast.AsyncFunctionDef(name=bound) if bound == name:
                return True
    return False


def _tested_types(node: ast.expr, around: Surroundings) -> frozenset[str]:
    """Return the types that tests on every path to a use leave for a name; "int" excludes bool.

    Empty where no test applies, or where the name is bound after the function's start.
    """
    function = around.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return frozenset()
    if any(
        isinstance(one, ast.Name) and one.id == node.id and not _is_read(one)
        for one in below(function)
    ):
        return frozenset()
    known: frozenset[str] = frozenset()
    no_bool = False
    for test, holds in _tests_before(node, around):
        types, excludes = _types_of(test, node.id, holds, around)
        known = known or types
        no_bool = no_bool or excludes
    return frozenset(("int",)) if no_bool and known == {"builtins.int"} else known


def _tests_before(node: ast.AST, around: Surroundings) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the conditions that hold where a node is evaluated, and whether they are true there."""
    here = node
    above = around.parent(here)
    while above is not None and not isinstance(here, (*FUNCTIONS, ast.Lambda)):
        match above:
            case ast.If(test=test) if here is not test:
                yield test, here in above.body
            case ast.IfExp(test=test) if here is not test:
                yield test, here is above.body
            case ast.BoolOp(op=op, values=values):
                for one in values[: values.index(here)]:  # type: ignore[arg-type]
                    yield one, isinstance(op, ast.And)
        for before in _before(here, above):
            match before:
                case ast.Assert(test=test):
                    yield test, True
                case ast.If(test=test, body=body, orelse=[]) if exits(body):
                    yield test, False
        here, above = above, around.parent(above)


def _before(here: ast.AST, above: ast.AST) -> list[ast.stmt]:
    for field in _BLOCKS:
        block = getattr(above, field, None)
        if isinstance(block, list) and here in block:
            return block[: block.index(here)]
    return []


def _types_of(
    test: ast.expr, name: str, holds: bool, around: Surroundings
) -> tuple[frozenset[str], bool]:
    """Return the types that a condition leaves for a name, and whether it excludes bool."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _types_of(operand, name, not holds, around)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == holds:
            found = [_types_of(one, name, holds, around) for one in values]
            types = next((one for one, _ in found if one), frozenset[str]())
            return types, any(excludes for _, excludes in found)
        case ast.Call(func=func, args=[ast.Name(id=tested), types_], keywords=[]):
            if tested != name or around.qualified(func) != "builtins.isinstance":
                return frozenset(), False
            parts = types_.elts if isinstance(types_, ast.Tuple) else [types_]
            given = frozenset(around.qualified(one) for one in parts)
            return (given, False) if holds else (frozenset(), "builtins.bool" in given)
        case ast.Compare(left=ast.Call(func=func, args=[ast.Name(id=tested)]),
                         ops=[op], comparators=[kind]):  # fmt: skip
            same = isinstance(op, (ast.Is, ast.Eq) if holds else (ast.IsNot, ast.NotEq))
            asked = tested == name and around.qualified(func) == "builtins.type"
            if same and asked and around.qualified(kind) == "builtins.int":
                return frozenset(("int",)), True
    return frozenset(), False
