"""``for row in t: row *= c`` -> ``t *= c``: an operation on every row becomes one on the tensor.

The body may check properties that all rows share, and change a row element by element.
`whole_check` also lets it leave the loop where ``any()`` of a row is true.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import exits, invariant, text_of, used_outside
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.names import given_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

# Attributes that a row shares with its tensor.
_SHARED = frozenset(("device", "dtype", "layout", "is_cuda", "is_cpu", "requires_grad"))
# In-place methods that change each element by itself but lack torch's tag for pointwise operations.
_FILLING = frozenset(("fill_", "zero_"))
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loop whose every statement means the same for the whole tensor."""
    return planned(place, leaves=False)


def planned(place: FixPlace, *, leaves: bool) -> Edit | None:
    """Return the edit of a loop; ``leaves`` says whether a condition on a row may end it early."""
    tensor = place.site.node
    loop = place.around.parent(tensor)
    if not isinstance(loop, ast.For) or loop.iter is not tensor or loop.orelse:
        return None
    if not isinstance(loop.target, ast.Name) or loop.type_comment:
        return None
    row = loop.target.id
    if not isinstance(tensor, (ast.Name, ast.Attribute)) or used_outside(place, row, loop):
        return None
    body = _Body(place, tensor, row, all_bound_by(loop.body) | {row})
    if not invariant(tensor, body.bound) or not body.lifts(loop.body) or body.leaves != leaves:
        return None
    return Edit((loop,), {"row": row, "tensor": text_of(place, tensor)})


class _Body:
    """A loop's body, tested for meaning the same for the whole tensor as for its rows."""

    def __init__(self, place: FixPlace, tensor: ast.expr, row: str, bound: frozenset[str]) -> None:
        self.place = place
        self.tensor = ast.dump(tensor)
        self.row = row
        self.bound = bound
        self.leaves = False

    def lifts(self, body: Sequence[ast.stmt]) -> bool:
        """True if the body means the same for the whole tensor, and does some work on elements."""
        works = False
        for number, statement in enumerate(body):
            if self._changes(statement):
                works = True
            elif isinstance(statement, ast.If) and self._decides(statement):
                works = self.leaves = True
                if not exits(statement.body) and number + 1 < len(body):
                    return False
            elif not (isinstance(statement, ast.If) and self._checks(statement)):
                return False
        return works

    def _checks(self, node: ast.If) -> bool:
        """True for ``if row.device != d: raise ...``, which is the same for all rows."""
        return not node.orelse and exits(node.body) and self._shares([node])

    def _shares(self, nodes: Sequence[ast.AST]) -> bool:
        """True if the row is used only for attributes that it shares with the tensor."""
        good = {
            id(inner.value)
            for node in nodes
            for inner in ast.walk(node)
            if isinstance(inner, ast.Attribute) and inner.attr in _SHARED
        }
        return all(
            id(inner) in good
            for node in nodes
            for inner in ast.walk(node)
            if isinstance(inner, ast.Name) and inner.id == self.row
        )

    def _changes(self, node: ast.stmt) -> bool:
        """True for ``row *= c`` or ``row.mul_(c)``, with the same ``c`` for all rows."""
        match node:
            case ast.AugAssign(target=target, op=op, value=value):
                return isinstance(op, _ARITHMETIC) and self._is_row(target) and self._same(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name)) as call):
                given = given_to(call)
                return (
                    _works_by_element(name, in_place=True)
                    and self._is_row(owner)
                    and all(self._same(value) for value in given)
                )
        return False

    def _is_row(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name == self.row
            case ast.Attribute(value=ast.Name(id=name), attr="data"):
                return name == self.row
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="detach"), args=[], keywords=[]
            ):
                return name == self.row
        return False

    def _decides(self, node: ast.If) -> bool:
        """True for ``if p(row).any(): ...; break`` with ``else: row *= c``."""
        then = node.body
        leaves = isinstance(then[-1], ast.Break) and len(then) > 1
        if not (leaves or exits(then)) or not self._any(node.test):
            return False
        if _breaks(then[:-1]) or not self._shares(then):
            return False
        return all(self._changes(statement) for statement in node.orelse)

    def _any(self, node: ast.expr) -> bool:
        """True if a condition holds for the tensor exactly where it holds for any row."""
        match node:
            case ast.BoolOp(op=ast.Or(), values=values):
                return all(map(self._any, values))
            case ast.Compare(
                left=left, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=True)]
            ):
                return self._any(left)
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
                return self._any(inner)
            case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
                return self._any(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr="any"), args=[], keywords=[]):
                return self._by_element(inner)
        return False

    def _by_element(self, node: ast.expr) -> bool:
        """True if each element depends only on the element of the row at the same place."""
        if self._is_row(node):
            return True
        match node:
            case ast.Compare(left=left, ops=[_], comparators=[right]):
                return self._by_element(left) and self._same(right)
            case ast.UnaryOp(operand=operand):
                return self._by_element(operand)
            case ast.BinOp(left=left, right=right, op=ast.BitOr() | ast.BitAnd()):
                return self._by_element(left) and self._by_element(right)
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=[]) if (
                _works_by_element(name, in_place=False)
            ):
                if self._by_element(owner):
                    return all(isinstance(value, ast.Constant) for value in args)
                rest = all(isinstance(value, ast.Constant) for value in args[1:])
                is_function = self.place.around.qualified(node.func).startswith("torch.")
                return is_function and bool(args) and self._by_element(args[0]) and rest
        return False

    def _same(self, node: ast.expr) -> bool:
        """True if an expression is the same for all rows, independent of earlier rounds."""
        parts = (part for part in ast.walk(node) if isinstance(part, ast.expr))
        return invariant(node, self.bound) and all(ast.dump(p) != self.tensor for p in parts)


def _works_by_element(name: str, *, in_place: bool) -> bool:
    """True for a method that works element by element, so operands that fit a row fit all."""
    method = load().method(name)
    if method is None or method.in_place != in_place:
        return False
    return (method.pointwise and not method.reduction) or name in _FILLING


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """True if the statements hold a ``break`` or ``continue``."""
    return any(
        isinstance(inner, (ast.Break, ast.Continue))
        for statement in body
        for inner in ast.walk(statement)
    )


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Replace the loop by its body, with the tensor's name for the row's."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import new_statements

    (loop,) = nodes
    assert isinstance(loop, cst.For)
    body = []
    for one in new_statements.statements_of(loop.body):
        if isinstance(one, cst.If):
            one = one.with_changes(body=new_statements.without_break(one.body))
        body.append(new_statements.renamed(one, edit.facts["row"], edit.facts["tensor"]))
    return [new_statements.with_comments_of(loop, body)]
