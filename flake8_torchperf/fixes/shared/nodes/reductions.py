"""Writes Python's reductions as torch's, as libcst's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes import split_conditions

if TYPE_CHECKING:
    from collections.abc import Mapping


def reduced(call: cst.Call, facts: Mapping[str, Any]) -> cst.Call:
    """Return the ``max(...)`` in the form that the plan chose."""
    given = call.args[0].value
    match facts["form"]:
        case "function":
            return call.with_changes(func=build.expression(facts["function"]))
        case "clamp":
            index = facts["index"]
            tensor, bound = call.args[index].value, call.args[1 - index].value
            return cst.Call(method(tensor, "clamp"), [build.keyword(facts["bound"], bound)])
        case "method":
            return _called(given, facts["method"])
    if isinstance(given, cst.GeneratorExp):
        given = cst.ListComp(given.elt, given.for_in)
    stacked = cst.Call(build.expression(facts["stack"]), [cst.Arg(given)])
    return _called(stacked, facts["method"])


def method(owner: cst.BaseExpression, name: str) -> cst.Attribute:
    """Return ``owner.name``, with brackets where they are needed."""
    return cst.Attribute(split_conditions.bracketed(owner), cst.Name(name))


def _called(owner: cst.BaseExpression, text: str) -> cst.Call:
    """Return ``owner.sum(0)`` for the text ``sum(0)``."""
    call = build.expression(text)
    assert isinstance(call, cst.Call)
    assert isinstance(call.func, cst.Name)
    return call.with_changes(func=method(owner, call.func.value))


def of_selection(call: cst.Call, facts: Mapping[str, Any]) -> cst.BaseExpression:
    """Return the reduction of all elements, with neutral ones where ``x[mask]`` selects none."""
    by_method = isinstance(call.func, cst.Attribute) and not call.args
    chosen = call.func.value if by_method else call.args[0].value  # type: ignore[attr-defined]
    tensor, index = selection_of(chosen)
    mask = build.bare(index)
    count = cst.Call(method(mask, "sum"))
    if not facts["neutral"]:
        return build.in_place_of(call, count)
    arguments = [mask, build.bare(tensor), cst.Integer(facts["neutral"])]
    where = cst.Call(build.expression(facts["where"]), [cst.Arg(one) for one in arguments])
    if facts["name"] != "mean":
        return build.in_place_of(call, cst.Call(method(where, facts["name"])))
    divided = cst.BinaryOperation(cst.Call(method(where, "sum")), cst.Divide(), count)
    whole = build.in_place_of(call, divided)
    return split_conditions.bracketed(whole) if facts["within"] else whole


def selection_of(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """Return the tensor and the mask of ``x[mask]`` or of a call of ``masked_select``."""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        assert isinstance(index, cst.Index)
        return node.value, index.value
    call = cst.ensure_type(node, cst.Call)
    given = [one.value for one in call.args]
    if len(given) == 1:
        given.insert(0, cst.ensure_type(call.func, cst.Attribute).value)
    tensor, mask = given
    return tensor, mask
