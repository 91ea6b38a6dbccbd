"""Words for a finding: a rule's template, a site and its source in, one line of text out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.site import SiteKind
from flake8_torchperf.findings.heat_text import place, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.absint.domain.site import Site
    from flake8_torchperf.findings.rule import Rule
    from flake8_torchperf.syntax.positions import Snippet

LONGEST_EXPRESSION = 60
_GAP = "..."


# What to do about reads that follow one another, and about copies that do.
READ_TOGETHER = "read them together (torch.stack(...).tolist()) or not in each step"
COPY_TOGETHER = "copy them together as one tensor, or not in each step"


def format_message(rule: Rule, site: Site, snippet: Snippet, behind: Sequence[int] = ()) -> str:
    """The one-line message of ``rule`` for ``site``, without its code.

    ``behind`` are the lines of the reads that wait straight behind this one.
    """
    node = site.operand_node if site.operand_node is not None else site.node
    fields = {
        "expression": shorten(snippet.code(site.node)),
        "operand": shorten(snippet.code(node)),
        "operation": site.operation,
        "where": where(site),
        "loop": _loop(site),
        "function": site.function,
        "compiled": site.compiled,
    }
    template, advice = rule.message, rule.advice(site.operation, site.traits)
    if behind:
        template = template.replace(": {instead}", f"{_others(behind)}: {{instead}}")
        advice = _together(site) or advice
    fields["instead"] = _filled(advice, fields)
    return printable(" ".join(_filled(template, fields).split()))


def _others(lines: Sequence[int]) -> str:
    """How many reads follow, and how far down."""
    if len(lines) == 1:
        return f", and 1 more read at line {lines[0]}"
    return f", and {len(lines)} more reads up to line {max(lines)}"


def _together(site: Site) -> str:
    """The advice for what is read in a row; "" for a wait that takes no value."""
    match site.kind:
        case SiteKind.SYNCHRONIZE:
            return ""
        case SiteKind.TRANSFER if site.operation != "tolist":
            return COPY_TOGETHER
    return READ_TOGETHER


def with_reason(message: str, reason: str, hidden: str = "") -> str:
    """``message`` with what ``--torchperf-explain`` adds.

    ``reason`` is why the operand is believed to be a tensor, ``hidden`` what leaves the finding out
    by default.
    """
    notes = {"hidden by default": hidden, "reason": reason}
    told = [f"{title}: {' '.join(text.split())}" for title, text in notes.items() if text]
    return f"{message} ({printable('; '.join(told))})" if told else message


def printable(text: str) -> str:
    """``text`` without what a terminal would obey: a source's words stay words."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


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
        return place(site)
    loop = site.loops[-1]
    over = f" over {shorten(loop.over, 30)}" if loop.over else ""
    return f"the loop at line {loop.line}{over}"


def _filled(template: str, fields: dict[str, str]) -> str:
    """The template with its fields; an empty one (nothing makes cold code hot) leaves no hole."""
    for name, text in fields.items():
        if not text:
            template = template.replace(f" {{{name}}}", "")
    return template.format_map(fields)
