"""Assignments through a mask as libcst's nodes, written without it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.conditions import bracketed
from flake8_torchperf.fixes.shared.reductions import method

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPERATORS: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add, cst.SubtractAssign: cst.Subtract, cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide, cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo, cst.PowerAssign: cst.Power, cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr, cst.BitXorAssign: cst.BitXor,
    cst.LeftShiftAssign: cst.LeftShift, cst.RightShiftAssign: cst.RightShift,
}  # fmt: skip


def without_mask(
    line: cst.SimpleStatementLine, facts: Mapping[str, Any]
) -> cst.SimpleStatementLine:
    """``a[m] = f(b[m])`` -> ``a.copy_(torch.where(m, f(b), a))``; ``a[m] += ...`` likewise."""
    statement = line.body[0]
    assert isinstance(statement, (cst.Assign, cst.AugAssign))
    target = statement.target if facts["augmented"] else statement.targets[0].target  # type: ignore[union-attr]
    assert isinstance(target, cst.Subscript)
    index = target.slice[0].slice
    assert isinstance(index, cst.Index)
    mask, owner = build.bare(index.value), target.value
    value = statement.value.visit(_Unmasking(index.value))
    assert isinstance(value, cst.BaseExpression)
    if isinstance(statement, cst.AugAssign):
        operator = _OPERATORS[type(statement.operator)]()
        value = cst.BinaryOperation(owner, operator, bracketed(value))
    arguments = [cst.Arg(one) for one in (mask, build.bare(value), owner)]
    where = cst.Call(build.expression(facts["where"]), arguments)
    call = cst.Call(method(owner, "copy_"), [cst.Arg(where)])
    return line.with_changes(body=[cst.Expr(call)])


class _Unmasking(cst.CSTTransformer):
    """``x[mask]`` -> ``x`` for one mask."""

    def __init__(self, mask: cst.BaseExpression) -> None:
        super().__init__()
        self._mask = mask

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        index = original_node.slice[0].slice
        if isinstance(index, cst.Index) and _code(index.value) == _code(self._mask):
            return updated_node.value
        return updated_node


def with_index(node: cst.CSTNode, mask: str, name: str) -> cst.CSTNode:
    """A statement with a name in the place of a mask, wherever this is an index."""
    new = node.visit(_Naming(cst.parse_expression(mask), name))
    assert isinstance(new, cst.CSTNode)
    return new


class _Naming(cst.CSTTransformer):
    """``x[mask]`` -> ``x[name]`` for one mask."""

    def __init__(self, mask: cst.BaseExpression, name: str) -> None:
        super().__init__()
        self._mask = mask
        self._name = name

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        index = original_node.slice[0].slice
        if len(original_node.slice) > 1 or not isinstance(index, cst.Index):
            return updated_node
        if normal(index.value) != normal(self._mask):
            return updated_node
        element = cst.SubscriptElement(cst.Index(cst.Name(self._name)))
        return updated_node.with_changes(slice=[element])


def normal(node: cst.BaseExpression) -> str:
    """The dump of an expression, whose brackets and white space do not matter."""
    bare = cst.Module([]).code_for_node(node)
    return ast.dump(ast.parse(f"({bare}\n)", mode="eval").body)


def _code(node: cst.CSTNode) -> str:
    """The text of an expression without its outer brackets and white space."""
    bare = node.with_changes(lpar=[], rpar=[]) if isinstance(node, cst.BaseExpression) else node
    return "".join(cst.Module([]).code_for_node(bare).split())
