"""Pieces of new source text as libcst's nodes, as most fixes need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Sequence

_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def expression(text: str) -> cst.BaseExpression:
    """Return the node of an expression that is written here and not taken from the file."""
    return cst.parse_expression(text)


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression without brackets that are not needed around an argument."""
    if isinstance(node, (cst.GeneratorExp, cst.Yield, cst.NamedExpr, cst.Tuple)):
        return node
    if comments_in(node) or "\n" in cst.Module([]).code_for_node(node):
        return node
    return node.with_changes(lpar=[], rpar=[])


def keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    """Return the argument ``name=value``."""
    return cst.Arg(bare(value), keyword=cst.Name(name), equal=_EQUAL)


def with_arguments(call: cst.Call, new: Sequence[cst.Arg]) -> cst.Call:
    """Return a call with arguments added behind its own; commas and line breaks go on as before."""
    arguments = list(call.args)
    if not arguments:
        return call.with_changes(args=_joined(new, COMMA.whitespace_after))
    last, gap = arguments[-1], _gap(call)
    trailing = isinstance(last.comma, cst.Comma)
    # White space before the closing bracket. A comment there remains after its argument.
    end = last.comma.whitespace_after if trailing else last.whitespace_after_arg  # type: ignore[union-attr]
    arguments[-1] = last.with_changes(
        comma=cst.Comma(whitespace_after=_commented(gap, end)),
        whitespace_after_arg=cst.SimpleWhitespace(""),
    )
    added = _joined(new, gap)
    comma = cst.Comma(whitespace_after=_plain(end)) if trailing else cst.MaybeSentinel.DEFAULT
    after = cst.SimpleWhitespace("") if trailing else _plain(end)
    added[-1] = added[-1].with_changes(comma=comma, whitespace_after_arg=after)
    return call.with_changes(args=[*arguments, *added])


def _gap(call: cst.Call) -> cst.BaseParenthesizableWhitespace:
    """Return the white space between two arguments of a call, without comments."""
    if len(call.args) > 1:
        comma = call.args[-2].comma
        assert isinstance(comma, cst.Comma)
        return _plain(comma.whitespace_after)
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        return _plain(call.whitespace_before_args)
    return COMMA.whitespace_after


def _plain(
    white: cst.BaseParenthesizableWhitespace,
) -> cst.BaseParenthesizableWhitespace:
    """Return white space without the comments in it."""
    if not isinstance(white, cst.ParenthesizedWhitespace):
        return white
    line = white.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
    return white.with_changes(first_line=line, empty_lines=[])


def _commented(
    gap: cst.BaseParenthesizableWhitespace, end: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """Return the gap between two arguments, with the comments that followed the first one."""
    if not isinstance(end, cst.ParenthesizedWhitespace) or not comments_in(end):
        return gap
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return end
    return gap.with_changes(first_line=end.first_line, empty_lines=end.empty_lines)


def without_argument(call: cst.Call, index: int) -> cst.Call:
    """Return a call without one of its arguments; the new last one ends as the old last one did."""
    arguments = list(call.args)
    gone = arguments.pop(index)
    if arguments and index == len(arguments):
        arguments[-1] = arguments[-1].with_changes(
            comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg
        )
    return call.with_changes(args=arguments)


def in_place_of(old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression with the brackets of the one that it replaces."""
    return new.with_changes(lpar=old.lpar, rpar=old.rpar)


def tidied(node: cst.Slice) -> cst.Slice:
    """Return a slice without white space around its colons, if its bounds are names or numbers."""
    bounds = [one for one in (node.lower, node.upper, node.step) if one is not None]
    if not all(isinstance(one, (cst.Name, cst.Integer)) for one in bounds):
        return node
    none = cst.SimpleWhitespace("")
    colon = node.first_colon.with_changes(whitespace_before=none, whitespace_after=none)
    second = node.second_colon
    if isinstance(second, cst.Colon):
        second = second.with_changes(whitespace_before=none, whitespace_after=none)
    return node.with_changes(first_colon=colon, second_colon=second)


def comments_in(node: cst.CSTNode) -> list[str]:
    """Return the comments anywhere below a node."""
    found: list[str] = []
    waiting: list[cst.CSTNode] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, cst.Comment):
            found.append(one.value)
        waiting += one.children
    return found


def _joined(arguments: Sequence[cst.Arg], gap: cst.BaseParenthesizableWhitespace) -> list[cst.Arg]:
    comma = cst.Comma(whitespace_after=gap)
    last = len(arguments) - 1
    return [
        argument.with_changes(comma=comma) if index < last else argument
        for index, argument in enumerate(arguments)
    ]
