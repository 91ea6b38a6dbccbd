"""The statements with which `assert_async` replaces an ``if`` or ``assert``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from flake8_torchperf.fixes.engine import build
from flake8_torchperf.fixes.shared.nodes import split_conditions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The most characters of a condition and its text in one line; with the indentation and the call
# around them, a longer line is hard to read.
WIDE = 70


def of_if(node: cst.If, facts: Mapping[str, Any]) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]:
    """``if t.any(): raise`` -> an assertion that the device tests; other terms stay an ``if``."""
    parts = split_conditions.terms(node.test)
    index = facts["index"]
    term = split_conditions.without_not(parts.pop(index))
    holds = build.bare(term) if facts["negated"] else _opposite(term, facts)
    line = cst.SimpleStatementLine([cst.Expr(_call(node, holds, facts))])
    if not parts:
        return _commented(node, line.with_changes(leading_lines=node.leading_lines))
    if facts["joined"] == "And":
        return node.with_changes(test=split_conditions.all_of(parts), body=_block(node, line))
    rest = node.with_changes(test=split_conditions.any_of(parts))
    if index == 0:
        first = line.with_changes(leading_lines=node.leading_lines)
        return cst.FlattenSentinel([first, rest.with_changes(leading_lines=[])])
    return cst.FlattenSentinel([rest, line])


def of_assert(
    node: cst.SimpleStatementLine, facts: Mapping[str, Any]
) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]:
    """``assert t.all(), m`` -> an assertion that the device tests; other terms stay in Python."""
    (asserted,) = node.body
    assert isinstance(asserted, cst.Assert)
    parts = split_conditions.terms(asserted.test)
    index = facts["index"]
    term = split_conditions.without_not(parts[index])
    holds = _opposite(term, facts) if facts["negated"] else build.bare(term)
    arguments = [cst.Arg(holds)]
    if asserted.msg is not None:
        arguments.append(cst.Arg(build.bare(asserted.msg)))
    call = cst.Call(build.expression(facts["assert_"]), arguments)
    line = node.with_changes(body=[cst.Expr(call)])
    if not facts["joined"]:
        return line
    if facts["joined"] == "Or":
        test = _not(split_conditions.any_of(parts[:index]))
        plain = line.with_changes(leading_lines=[])
        return cst.If(test, cst.IndentedBlock([plain]), leading_lines=node.leading_lines)
    lines = [_asserting(node, asserted, parts[:index]), line]
    lines.append(_asserting(node, asserted, parts[index + 1 :]))
    kept = [one for one in lines if one is not None]
    first = kept[0].with_changes(leading_lines=node.leading_lines)
    plain_rest = [one.with_changes(leading_lines=[]) for one in kept[1:]]
    # The comment after the statement remains at its end.
    bare = [
        one.with_changes(trailing_whitespace=cst.TrailingWhitespace())
        for one in (first, *plain_rest)
    ]
    bare[-1] = bare[-1].with_changes(trailing_whitespace=node.trailing_whitespace)
    return cst.FlattenSentinel(bare)


def _asserting(
    line: cst.SimpleStatementLine, asserted: cst.Assert, parts: Sequence[cst.BaseExpression]
) -> cst.SimpleStatementLine | None:
    if not parts:
        return None
    return line.with_changes(body=[asserted.with_changes(test=split_conditions.all_of(parts))])


def _not(test: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(test, cst.BooleanOperation) and not test.lpar:
        test = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), test)


def _opposite(term: cst.BaseExpression, facts: Mapping[str, Any]) -> cst.BaseExpression:
    return split_conditions.negated(build.bare(term), mask=facts["mask"], otherwise=facts["not_"])


def _call(node: cst.If, holds: cst.BaseExpression, facts: Mapping[str, Any]) -> cst.Call:
    """Return the call, laid out as the exception's was."""
    raised = _raised(node)
    function = build.expression(facts["assert_"])
    if not isinstance(raised, cst.Call) or not raised.args:
        return cst.Call(function, [cst.Arg(holds)])
    (message,) = raised.args
    if isinstance(raised.whitespace_before_args, cst.ParenthesizedWhitespace):
        gap: cst.BaseParenthesizableWhitespace = _next_line(raised.whitespace_before_args)
    elif _length(holds) + _length(message) > WIDE:
        gap = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace("    "))
        end = cst.ParenthesizedWhitespace(indent=True)
        raised = raised.with_changes(whitespace_before_args=gap)
        message = message.with_changes(comma=cst.Comma(whitespace_after=end))
    else:
        gap = cst.SimpleWhitespace(" ")
    first = cst.Arg(holds, comma=cst.Comma(whitespace_after=gap))
    return raised.with_changes(func=function, args=[first, message])


def _next_line(white: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    """Return the same line break and indentation, without the comments there."""
    line = white.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
    return white.with_changes(first_line=line, empty_lines=[])


def _length(node: cst.CSTNode) -> int:
    return len(cst.Module([]).code_for_node(node))


def _raised(node: cst.If) -> cst.BaseExpression | None:
    (line,) = node.body.body
    inner = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
    assert isinstance(inner, cst.Raise)
    return inner.exc


def _block(node: cst.If, line: cst.SimpleStatementLine) -> cst.BaseSuite:
    """Return the body of an ``if`` with the assertion for the ``raise`` in it."""
    if not isinstance(node.body, cst.IndentedBlock):
        return cst.IndentedBlock([line])
    (old,) = node.body.body
    assert isinstance(old, cst.SimpleStatementLine)
    return node.body.with_changes(body=[old.with_changes(body=line.body)])


def _commented(node: cst.If, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    """Return the assertion with the comments of the ``if``."""
    if not isinstance(node.body, cst.IndentedBlock):
        return line
    (old,) = node.body.body
    assert isinstance(old, cst.SimpleStatementLine)
    header = node.body.header
    above = [*line.leading_lines]
    if header.comment is not None:
        above.append(cst.EmptyLine(comment=header.comment))
    above += [one for one in old.leading_lines if one.comment is not None]
    return line.with_changes(leading_lines=above, trailing_whitespace=old.trailing_whitespace)
