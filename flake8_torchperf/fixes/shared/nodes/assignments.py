"""Writes assignments through a mask without the mask, as libcst's nodes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes.reductions import method, selection_of
from flake8_torchperf.fixes.shared.nodes.split_conditions import bracketed

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
    """``x[mask]`` and ``torch.masked_select(x, mask)`` -> ``x`` for one mask."""

    def __init__(self, mask: cst.BaseExpression) -> None:
        super().__init__()
        self._mask = _code(mask)

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        index = original_node.slice[0].slice
        if isinstance(index, cst.Index) and _code(index.value) == self._mask:
            return updated_node.value
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not _is_masked_select(original_node):
            return updated_node
        if _code(selection_of(original_node)[1]) != self._mask:
            return updated_node
        return bracketed(selection_of(updated_node)[0])


def _is_masked_select(node: cst.Call) -> bool:
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    return isinstance(name, cst.Name) and name.value == "masked_select"


def with_positions(
    node: cst.CSTNode, mask: str, name: str, alone: bool, calls: Mapping[str, bool]
) -> cst.CSTNode:
    """Return a statement with a name in place of a mask wherever the mask selects elements.

    ``alone`` says that the name is one tensor of positions and may be one of several indices;
    ``calls`` are the dumps of calls of ``masked_select``, each with whether its tensor surely has
    the shape of the mask.
    """
    new = node.visit(_Naming(cst.parse_expression(mask), name, alone, calls))
    assert isinstance(new, cst.CSTNode)
    return new


class _Naming(cst.CSTTransformer):
    """``x[mask]`` -> ``x[name]``, ``masked_select(x, mask)`` -> ``x.expand_as(mask)[name]``."""

    def __init__(
        self, mask: cst.BaseExpression, name: str, alone: bool, calls: Mapping[str, bool]
    ) -> None:
        super().__init__()
        self._mask = mask
        self._key = normal(mask)
        self._name = cst.Name(name)
        self._alone = alone
        self._calls = calls

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        parts = [one.slice for one in original_node.slice]
        masks = [isinstance(one, cst.Index) and normal(one.value) == self._key for one in parts]
        if not any(masks):
            return updated_node
        if self._alone:
            slices = [
                one.with_changes(slice=cst.Index(self._name)) if is_mask else one
                for one, is_mask in zip(updated_node.slice, masks, strict=True)
            ]
            return updated_node.with_changes(slice=slices)
        if masks != [True, *([False] * (len(parts) - 1))] or not all(map(_is_full, parts[1:])):
            return updated_node
        return updated_node.with_changes(slice=[cst.SubscriptElement(cst.Index(self._name))])

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not _is_masked_select(original_node):
            return updated_node
        has_shape = self._calls.get(normal(original_node))
        if has_shape is None:
            return updated_node
        owner = bracketed(build.bare(selection_of(updated_node)[0]))
        if not has_shape:
            owner = cst.Call(cst.Attribute(owner, cst.Name("expand_as")), [cst.Arg(self._mask)])
        element = cst.SubscriptElement(cst.Index(self._name))
        return build.in_place_of(updated_node, cst.Subscript(owner, [element]))


def _is_full(part: cst.BaseSlice) -> bool:
    """True for ``:``."""
    return isinstance(part, cst.Slice) and not (part.lower or part.upper or part.step)


def normal(node: cst.BaseExpression) -> str:
    """Return the dump of an expression, which ignores brackets and white space."""
    bare = cst.Module([]).code_for_node(node)
    return ast.dump(ast.parse(f"({bare}\n)", mode="eval").body)


def _code(node: cst.CSTNode) -> str:
    """Return the text of an expression without its outer brackets and white space."""
    bare = node.with_changes(lpar=[], rpar=[]) if isinstance(node, cst.BaseExpression) else node
    return "".join(cst.Module([]).code_for_node(bare).split())
