"""Writes the texts in new code with the quotes of its file."""

from __future__ import annotations

import io
import tokenize
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterable

_DOUBLE, _SINGLE = '"', "'"


def prevailing_quote(text: str) -> str:
    """Return the quote that most of a file's texts have; a double one where they are as many."""
    counts = {_DOUBLE: 0, _SINGLE: 0}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                quote = token.string[-1]
                counts[quote] += not token.string.endswith(quote * 3)
    except (tokenize.TokenError, SyntaxError):
        return _DOUBLE
    return _SINGLE if counts[_SINGLE] > counts[_DOUBLE] else _DOUBLE


def with_quotes(
    new: cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel,
    old: Iterable[cst.CSTNode],
    quote: str,
) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel:
    """Return new code whose texts are written as in the old code, or with a quote."""
    if isinstance(new, cst.RemovalSentinel):
        return new
    requoting = _Requoting([one for node in old for one in _texts(node)], quote)
    if isinstance(new, cst.FlattenSentinel):
        return cst.FlattenSentinel([_visited(one, requoting) for one in new])
    return _visited(new, requoting)


def _visited(node: cst.CSTNode, requoting: _Requoting) -> cst.CSTNode:
    changed = node.visit(requoting)
    assert isinstance(changed, cst.CSTNode)
    return changed


def _texts(node: cst.CSTNode) -> list[cst.SimpleString | cst.FormattedString]:
    found: list[cst.SimpleString | cst.FormattedString] = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (cst.SimpleString, cst.FormattedString)):
            found.append(one)
        waiting += one.children
    return found


class _Requoting(cst.CSTTransformer):
    """Gives new texts the quotes of equal old ones, or those of the file."""

    def __init__(self, old: list[cst.SimpleString | cst.FormattedString], quote: str) -> None:
        super().__init__()
        self._kept = {id(one) for one in old}
        self._old = {one.evaluated_value: one for one in old if isinstance(one, cst.SimpleString)}
        self._written = {_code(one) for one in old}
        self._quote = quote

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        """Return the text with its quotes."""
        if id(original_node) in self._kept or original_node.value in self._written:
            return updated_node
        same = self._old.get(original_node.evaluated_value)
        if same is not None:
            return same.deep_clone()
        other = _DOUBLE if self._quote == _SINGLE else _SINGLE
        inner = original_node.raw_value
        if original_node.quote != other or self._quote in inner or "\\" in inner:
            return updated_node
        return updated_node.with_changes(
            value=f"{original_node.prefix}{self._quote}{inner}{self._quote}"
        )

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        """Return the text with its quotes."""
        code = _code(original_node)
        if code in self._written or original_node.end not in (_SINGLE, _DOUBLE):
            return updated_node
        if self._quote in code[len(original_node.start) : -1] or "\\" in code:
            return updated_node
        start = original_node.start[:-1] + self._quote
        return updated_node.with_changes(start=start, end=self._quote)


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
