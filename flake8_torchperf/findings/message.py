"""Words for a finding: a rule's template and a site in, one line of text out.

Must not know flake8, positions or how the rule was chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from flake8_torchperf.sites.model import Site

if TYPE_CHECKING:
    from flake8_torchperf.findings.rule import Rule

LONGEST_EXPRESSION = 60
_GAP = "..."
_PRINTER = cst.Module([])


def format_message(rule: Rule, site: Site) -> str:
    """The one-line message of ``rule`` for ``site``, without its code."""
    node = site.operand_node if site.operand_node is not None else site.node
    fields = {
        "expression": shorten(source_of(site.node)),
        "operand": shorten(source_of(node)),
        "operation": site.operation,
        "where": site.heat.because,
        "loop": _loop(site),
        "function": site.function,
    }
    fields["instead"] = rule.advice(site.operation).format_map(fields)
    return _tidy(rule.message.format_map(fields))


def with_reason(message: str, reason: str) -> str:
    """``message`` with why the operand is believed to be a tensor (``--torchperf-explain``)."""
    return f"{message} (reason: {' '.join(reason.split())})" if reason else message


def source_of(node: cst.CSTNode) -> str:
    """The node's source on one line, runs of white space made one space."""
    code = _PRINTER.code_for_node(node)
    if "#" in code:
        # On the joined line a comment would swallow what follows it.
        bare = node.visit(_WithoutComments())
        code = _PRINTER.code_for_node(bare) if isinstance(bare, cst.CSTNode) else code
    return " ".join(code.split())


class _WithoutComments(cst.CSTTransformer):
    """Takes away the comments that stand inside an expression's brackets."""

    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        return updated_node.with_changes(comment=None)

    def leave_EmptyLine(
        self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine
    ) -> cst.EmptyLine:
        return updated_node.with_changes(comment=None)


def shorten(text: str, longest: int = LONGEST_EXPRESSION) -> str:
    """``text`` cut in its middle to ``longest`` characters."""
    if len(text) <= longest:
        return text
    kept = longest - len(_GAP)
    tail = kept // 2
    return f"{text[: kept - tail]}{_GAP}{text[len(text) - tail :]}"


def _loop(site: Site) -> str:
    """The innermost loop in words; where there is none, what makes the place hot."""
    if not site.loops:
        return site.heat.because
    loop = site.loops[-1]
    over = f" over {shorten(loop.over, 30)}" if loop.over else ""
    return f"the loop at line {loop.line}{over}"


def _tidy(message: str) -> str:
    """One line; an empty placeholder (nothing makes cold code hot) leaves no hole."""
    return " ".join(message.split()).replace(" :", ":").replace(" ,", ",")
