"""New statements as libcst's nodes, with the comments of those they replace."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.findings.finding import Edit

Statement: TypeAlias = "cst.SimpleStatementLine | cst.BaseCompoundStatement"
Statements: TypeAlias = "cst.FlattenSentinel[cst.CSTNode]"


def parsed(text: str) -> list[Statement]:
    """Return the statements of source text that is written here and not taken from the file."""
    return list(cst.parse_module(text).body)


def replaced(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[Statements]:
    """Return the nodes for ``edit.facts["texts"]``, the whole new texts that a fix has planned."""
    texts: Sequence[str] = edit.facts["texts"]
    return [with_comments_of(node, parsed(t)) for node, t in zip(nodes, texts, strict=True)]


def with_comments_of(old: cst.CSTNode, new: Sequence[Statement], *more: cst.CSTNode) -> Statements:
    """Return new statements with the blank lines above the old one, and all its comments.

    Comments that the new statements do not contain are put above the first of them, and so are the
    comments of ``more``, the statements around the old one that are removed with it.
    """
    assert isinstance(old, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    above: list[cst.EmptyLine] = list(old.leading_lines)
    own = [*new[0].leading_lines]
    kept = [text for node in (*above, *new) for text in _comments(node)]
    for text in [text for node in (old, *more) for text in _comments(node)]:
        if text in kept:
            kept.remove(text)
        else:
            above.append(cst.EmptyLine(comment=cst.Comment(text)))
    first = new[0].with_changes(leading_lines=[*above, *own])
    return cst.FlattenSentinel([first, *new[1:]])


def _comments(node: cst.CSTNode) -> list[str]:
    """Return the comments in a node, in the order of the text."""
    if isinstance(node, cst.Comment):
        return [node.value]
    return [text for child in node.children for text in _comments(child)]


def renamed(node: Statement, name: str, expression: str) -> Statement:
    """Return a statement with an expression in place of every use of a name."""
    new = node.visit(_Renaming(name, cst.parse_expression(expression)))
    assert isinstance(new, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return new


class _Renaming(cst.CSTTransformer):
    """Replaces a name by an expression, but not attributes and keywords of that name."""

    def __init__(self, name: str, expression: cst.BaseExpression) -> None:
        super().__init__()
        self._name = name
        self._expression = expression

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """Replace the name."""
        return self._expression if updated_node.value == self._name else updated_node

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        """Replace in the owner only, not in the attribute's name."""
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """Replace in the value only, not in the keyword."""
        return updated_node.with_changes(keyword=original_node.keyword)


def statements_of(block: cst.BaseSuite) -> list[Statement]:
    """Return the statements of a block; none where it shares the line of its head."""
    if not isinstance(block, cst.IndentedBlock):
        return []
    kinds = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
    return [one for one in block.body if isinstance(one, kinds)]


def without_break(block: cst.BaseSuite) -> cst.BaseSuite:
    """Return a block without the ``break`` at its end."""
    assert isinstance(block, cst.IndentedBlock)
    match block.body[-1]:
        case cst.SimpleStatementLine(body=[cst.Break()]):
            return block.with_changes(body=block.body[:-1])
    return block
