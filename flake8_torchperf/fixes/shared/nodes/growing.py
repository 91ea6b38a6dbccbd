"""Rewrites a loop that grows a tensor so that it adds to a list; imports libcst."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from flake8_torchperf.fixes.engine.build import bare, in_place_of

if TYPE_CHECKING:
    from flake8_torchperf.fixes.shared.nodes.new_statements import Statement


def into_list(loop: Statement, tensor: str, name: str) -> Statement:
    """Return the loop with ``t = cat([t, x])``, ``t = x`` and ``t is None`` changed for a list."""
    new = loop.visit(_IntoList(tensor, name))
    assert isinstance(new, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return new


class _IntoList(cst.CSTTransformer):
    """Replaces assignments of a tensor, and tests for None."""

    def __init__(self, tensor: str, name: str) -> None:
        super().__init__()
        self._tensor = tensor
        self._name = name

    def leave_Assign(
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.BaseSmallStatement:
        """``t = cat([t, x])`` -> ``ts.append(x)``; ``t = x`` -> ``ts = [x]``."""
        match original_node.targets:
            case [cst.AssignTarget(target=cst.Name(value=self._tensor))]:
                pass
            case _:
                return updated_node
        match updated_node.value:
            case cst.Call(
                args=[cst.Arg(value=cst.List(elements=parts) | cst.Tuple(elements=parts)), *_]
            ):
                own = [i for i, one in enumerate(parts) if self._is_own(one.value)]
                if own:
                    others = [one.value for i, one in enumerate(parts) if i != own[0]]
                    return cst.Expr(self._added(others, first=own[0] > 0))
        return updated_node.with_changes(
            targets=[cst.AssignTarget(cst.Name(self._name))],
            value=cst.List([cst.Element(bare(updated_node.value))]),
        )

    def _is_own(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self._tensor

    def _added(self, pieces: list[cst.BaseExpression], *, first: bool) -> cst.Call:
        if first:
            given = [cst.Arg(cst.Integer("0")), cst.Arg(bare(pieces[0]))]
            return cst.Call(cst.Attribute(cst.Name(self._name), cst.Name("insert")), given)
        if len(pieces) == 1:
            given = [cst.Arg(bare(pieces[0]))]
            return cst.Call(cst.Attribute(cst.Name(self._name), cst.Name("append")), given)
        given = [cst.Arg(cst.List([cst.Element(bare(one)) for one in pieces]))]
        return cst.Call(cst.Attribute(cst.Name(self._name), cst.Name("extend")), given)

    def leave_Comparison(
        self, original_node: cst.Comparison, updated_node: cst.Comparison
    ) -> cst.BaseExpression:
        """``t is None`` -> ``not ts``."""
        match updated_node:
            case cst.Comparison(
                left=cst.Name(value=self._tensor),
                comparisons=[
                    cst.ComparisonTarget(operator=operator, comparator=cst.Name(value="None"))
                ],
            ):
                name = cst.Name(self._name)
                asked = name if isinstance(operator, cst.IsNot) else _negated(name)
                return in_place_of(updated_node, asked)
        return updated_node


def _negated(name: cst.Name) -> cst.BaseExpression:
    return cst.UnaryOperation(cst.Not(), name)
