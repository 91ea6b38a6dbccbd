"""Gives factories, as libcst's nodes, a device and removes the move after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes.assignments import normal
from flake8_torchperf.fixes.shared.nodes.reductions import method
from flake8_torchperf.fixes.shared.nodes.split_conditions import bracketed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def with_keywords(call: cst.Call, given: Mapping[str, str]) -> cst.Call:
    """Return a call with further arguments by name."""
    arguments = [build.keyword(name, build.expression(text)) for name, text in given.items()]
    return build.with_arguments(call, arguments)


def without_move(node: cst.BaseExpression, facts: Mapping[str, Any]) -> cst.BaseExpression:
    """Return an expression without its move, the arguments being given to its factories instead.

    Brackets are added only where needed.
    """
    made = node
    for _ in range(facts["levels"]):
        made = cst.ensure_type(cst.ensure_type(made, cst.Call).func, cst.Attribute).value
    new = made.visit(_Giving(facts["made"], facts["given"], facts["dropped"]))
    assert isinstance(new, cst.BaseExpression)
    if facts["cast"]:
        new = cst.Call(method(new, "to"), [cst.Arg(build.expression(facts["cast"]))])
    elif made is not node:
        new = build.bare(new) if not node.lpar else new
        new = bracketed(new) if facts["within"] else new
    if not node.lpar or (facts["whole"] and _stands_alone(node, new)):
        return new
    return build.in_place_of(node, new)


def _stands_alone(old: cst.BaseExpression, new: cst.BaseExpression) -> bool:
    """True if brackets that allowed a line break in them are no longer needed."""
    module = cst.Module([])
    brackets = [*old.lpar, *old.rpar]
    text = module.code_for_node(new)
    if "\n" not in module.code_for_node(old.lpar[0]) or any(map(build.comments_in, brackets)):
        return False
    if not isinstance(new, (cst.Call, cst.Subscript)):
        return False
    try:
        cst.parse_expression(text)
    except cst.ParserSyntaxError:
        return False  # a line break outside of its own brackets remains
    return True


class _Giving(cst.CSTTransformer):
    """Gives arguments to the calls that make a tensor, and drops the cast that they replace."""

    def __init__(self, made: Collection[str], given: Mapping[str, str], dropped: str) -> None:
        super().__init__()
        self._dropped = dropped
        self._made = made
        self._given = given

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if normal(original_node) in self._made:
            return with_keywords(updated_node, self._given)
        if self._dropped and normal(original_node) == self._dropped:
            return cst.ensure_type(updated_node.func, cst.Attribute).value
        return updated_node
