"""Choices between two values as libcst's nodes: ``if`` and ``a if c else b`` become a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes import split_conditions

if TYPE_CHECKING:
    from collections.abc import Mapping


def of_expression(node: cst.IfExp, facts: Mapping[str, Any]) -> cst.BaseExpression:
    """``a if c else b`` -> ``torch.where(c, a, b)``; brackets around it stay only for comments."""
    call = _where(node.test, node.body, node.orelse, facts)
    return build.in_place_of(node, call) if build.comments_in(node) else call


def of_statement(node: cst.If, facts: Mapping[str, Any]) -> cst.SimpleStatementLine:
    """``if c: x = a`` with or without ``else: x = b`` -> ``x = torch.where(c, a, b)``."""
    line = _only(node.body)
    assign = line.body[0]
    assert isinstance(assign, cst.Assign)
    other: cst.BaseExpression
    comments = _comments(node.body, line)
    if isinstance(node.orelse, cst.Else):
        behind = _only(node.orelse.body)
        last = behind.body[0]
        assert isinstance(last, cst.Assign)
        other = last.value
        comments += [one for one in node.orelse.leading_lines if one.comment is not None]
        comments += _comments(node.orelse.body, behind)
        if behind.trailing_whitespace.comment is not None:
            comments.append(cst.EmptyLine(comment=behind.trailing_whitespace.comment))
    else:
        target = assign.targets[0].target
        assert isinstance(target, cst.BaseExpression)
        other = target
    call = _where(node.test, assign.value, other, facts)
    return line.with_changes(
        body=[assign.with_changes(value=call)], leading_lines=[*node.leading_lines, *comments]
    )


def _comments(body: cst.BaseSuite, line: cst.SimpleStatementLine) -> list[cst.EmptyLine]:
    """Return the comments of a block, each on a line of its own."""
    found: list[cst.EmptyLine] = []
    if isinstance(body, cst.IndentedBlock):
        if body.header.comment is not None:
            found.append(cst.EmptyLine(comment=body.header.comment))
        found += [one for one in line.leading_lines if one.comment is not None]
    return found


def _only(body: cst.BaseSuite) -> cst.SimpleStatementLine:
    """Return the only statement of a block, as a line of its own."""
    if isinstance(body, cst.SimpleStatementSuite):
        return cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)
    line = body.body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    return line


def _where(
    test: cst.BaseExpression,
    one: cst.BaseExpression,
    other: cst.BaseExpression,
    facts: Mapping[str, Any],
) -> cst.Call:
    condition = build.bare(split_conditions.without_not(test))
    if not facts["mask"]:
        different = cst.ComparisonTarget(cst.NotEqual(), cst.Integer("0"))
        condition = cst.Comparison(split_conditions.bracketed(condition), [different])
    chosen = (other, one) if facts["swapped"] else (one, other)
    arguments = [cst.Arg(build.bare(part)) for part in (condition, *chosen)]
    return cst.Call(build.expression(facts["where"]), arguments)
