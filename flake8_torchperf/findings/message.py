"""Words the message of a finding, from a rule's template, a site and its source.

A message says what happens, how often, and what to write instead, in at most `LONGEST` characters.
The words of a rule's page are never cut; expressions and names from the source are cut to fit.
"""

from __future__ import annotations

import ast
from string import Formatter
from typing import TYPE_CHECKING

from flake8_torchperf.findings.heat_text import place
from flake8_torchperf.idioms.host_twins import host_twin
from flake8_torchperf.judgement.row import LOOP_AT
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import tensor_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flake8_torchperf.findings.heat_text import FrequencyWords
    from flake8_torchperf.findings.rule import Rule
    from flake8_torchperf.judgement.judged_site import JudgedSite
    from flake8_torchperf.syntax.positions import Snippet

LONGEST = 140
# In a message longer than this, expressions are cut, but not below `USUAL_EXPRESSION` characters.
AIM = 100
LONGEST_EXPRESSION = 60
USUAL_EXPRESSION = 32
# The words around an expression are shortened before the expression is cut below this length.
SHORTEST_EXPRESSION = 12
# The end of the message of a finding that a safe fix rewrites; room is reserved for it.
FIXABLE = " [fix]"
# How often a message is shortened to fewer words before its expressions are cut further.
BRIEFEST = 5
_GAP = "..."
# The words for a compiled function without why it is compiled begin so.
_COMPILED = "of the compiled "

# A placeholder in the message that leads a row, for the words about the other findings. It is not
# printable, so no message contains it otherwise.
MORE = "\0"
# Advice for a whole row of reads, of reads of one tensor, of copies, and of reads for text.
READ_TOGETHER = "stack them for one .tolist()"
READ_ONCE = "read it once, and use the number"
COPY_TOGETHER = "copy them as one tensor"
FORMAT_TOGETHER = "format after the loop"
# Advice for several indexes by one mask.
MASK_TOGETHER = "index by its nonzero() once"
# The family of rules about host reads; the trait of a site whose value is only logged, and the
# advice for that site.
HOST_READS = "host reads"
LOGGED = "logged"
LOG_SELDOM = "log every n steps, or collect and log once"

# The fields that are cut if a message is too long.
_FROM_SOURCE = ("expression", "operand", "name", "function", "over")


def format_message(
    rule: Rule, site: JudgedSite, snippet: Snippet, others: Sequence[JudgedSite] = ()
) -> str:
    """Return the one-line message of ``rule`` for ``site``, without its code.

    The words of a user's page may be longer than a message should be; expressions then still get
    `USUAL_EXPRESSION` characters. ``others`` are the rest of the row that the site leads; `MORE`
    in the message stands for how many of them are reported with it.
    """
    shortest = SHORTEST_EXPRESSION if rule.own else USUAL_EXPRESSION
    advice = rule.advice(site.operation, site.traits)
    if LOGGED in site.traits and rule.own:
        advice = LOG_SELDOM
    elif others:
        advice = _together((site, *others)) or advice
    elif rule.family == HOST_READS and (twin := _twin(site, snippet)):
        advice = f"read {twin} instead"
    node = site.operand_node if site.operand_node is not None else site.node
    found = {
        "expression": snippet.code(site.node),
        "operand": snippet.code(node),
        "function": site.function,
        "over": site.loops[-1].over if site.loops else "",
        "operation": site.operation,
        "compiled": site.compiled,
    }
    for brief in range(BRIEFEST + 1):
        told = place(site, brief=brief)
        promised = site.heat.cause is Cause.CONTRACT
        where = told.words if promised else f"{site.heat.often} ({told.words})"
        parts = {"instead": advice, "where": where}
        parts["where"] += _room_for(others)
        parts["loop"] = _loop(site, told)
        template = _joined(rule.message, parts) + (FIXABLE if rule.has_safe_fix else "")
        values = {name: printable(_one_line(text)) for name, text in found.items()}
        values["name"] = printable(told.name)
        longest = _longest(template, values)
        if longest >= shortest:
            break
    if longest < shortest:
        values["compiled"] = _compiled(template, values, shortest)
        longest = shortest
    text = printable(_one_line(_filled(template, _cut(values, longest))))
    text = text.replace(_room_for(others), MORE) if others else text
    return text.removesuffix(FIXABLE) if rule.has_safe_fix else text


def _twin(site: JudgedSite, snippet: Snippet) -> str:
    """Return the copy on the host of what a site reads; "" if none is known."""
    node = site.operand_node if site.operand_node is not None else site.node
    return host_twin(node, snippet.nodes) if isinstance(node, ast.expr) else ""


def _joined(template: str, parts: Mapping[str, str]) -> str:
    """Return the template with those fields filled in that are templates themselves."""
    pieces = []
    for literal, name, _, _ in Formatter().parse(template):
        pieces.append(literal.replace("{", "{{").replace("}", "}}"))
        if name is not None and name in parts:
            pieces.append(_joined(parts[name], parts))
        elif name is not None:
            pieces.append(f"{{{name}}}")
    return "".join(pieces)


def _longest(template: str, values: Mapping[str, str]) -> int:
    """Return the length to cut expressions and names to, so that the message is short enough."""
    fields = [name for _, name, _, _ in Formatter().parse(template) if name in _FROM_SOURCE]
    rest = len(_filled(template, {**values, **dict.fromkeys(_FROM_SOURCE, "")}))
    lengths = sorted(len(values[name]) for name in fields)
    usual = max(_share(AIM - rest, lengths), USUAL_EXPRESSION)
    return min(usual, _share(LONGEST - rest, lengths))


def _share(room: int, lengths: Sequence[int]) -> int:
    """Return the length that each text may have; shorter texts leave their room to the others."""
    for index, length in enumerate(lengths):
        share = room // (len(lengths) - index)
        if length > share:
            return min(share, LONGEST_EXPRESSION)
        room -= length
    return LONGEST_EXPRESSION


def _cut(values: Mapping[str, str], longest: int) -> dict[str, str]:
    return {
        name: shorten(text, longest) if name in _FROM_SOURCE else text
        for name, text in values.items()
    }


def _compiled(template: str, values: Mapping[str, str], shortest: int) -> str:
    """Return the words for the compiled function, fewer if there is no room for why it is compiled.

    Its name is cut if that leaves no room either.
    """
    told = values["compiled"]
    over = len(_filled(template, _cut(values, shortest))) - LONGEST
    room = max(len(told) - over, shortest)
    name, *more = told.split(", ")
    if len(told) > room and more and not name.startswith(_COMPILED):
        told = ", ".join((f"{_COMPILED}{name.removeprefix('of ')}", *more[1:]))
    return shorten(told, room) if told else ""


def leading(lead: str, lines: Sequence[int]) -> str:
    """Return the message of a finding that also reports the findings in these lines."""
    if len(lines) == 1:
        more = f", and 1 more wait at line {lines[0]}"
    else:
        more = f", and {len(lines)} more waits to line {max(lines)}"
    return lead.replace(MORE, more)


def _room_for(others: Sequence[JudgedSite]) -> str:
    """Return the longest text that can take the place of `MORE` for these sites."""
    if not others:
        return ""
    last = max(getattr(site.node, "end_lineno", 0) for site in others)
    return leading(MORE, (last,) * len(others))


def _together(row: Sequence[JudgedSite]) -> str:
    """Return the advice for a whole row; "" if no single advice fits all of its waits.

    A copy to the device keeps its own: it may not be needed, or need not wait.
    """
    if any("to-device" in site.traits for site in row):
        return ""
    copies = [site.kind is SiteKind.TRANSFER and site.operation != "tolist" for site in row]
    if all(copies):
        return COPY_TOGETHER
    if row[0].kind is SiteKind.FORMAT:
        return FORMAT_TOGETHER
    if any(site.kind is SiteKind.MASK_INDEX for site in row[1:]):
        return MASK_TOGETHER
    reads = (SiteKind.HOST_READ, SiteKind.TRANSFER)
    if any(copies) or not all(site.kind in reads for site in row):
        return ""
    read = (site.operand_node for site in row)
    names = {dotted_name(one) if isinstance(one, ast.expr) else "" for one in read}
    if len(names) == 1 and "" not in names:
        return READ_ONCE
    tensors = [tensor_of(site.operand) for site in row if site.operand is not None]
    partly = any(tensor is not None and tensor.partly for tensor in tensors)
    return "" if partly else READ_TOGETHER  # `torch.stack` takes no numbers


def with_reason(message: str, reason: str, hidden: str = "") -> str:
    """Return ``message`` with the notes that ``--torchperf-explain`` adds.

    ``reason`` is why the operand is believed to be a tensor, ``hidden`` why the finding is left out
    by default.
    """
    notes = {"hidden by default": hidden, "reason": reason}
    told = [f"{title}: {' '.join(text.split())}" for title, text in notes.items() if text]
    return f"{message} ({printable('; '.join(told))})" if told else message


def printable(text: str) -> str:
    """Return ``text`` with control characters escaped, so that a terminal only shows them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shorten(text: str, longest: int = LONGEST_EXPRESSION) -> str:
    """Return ``text`` cut in its middle to ``longest`` characters."""
    if len(text) <= longest:
        return text
    kept = longest - len(_GAP)
    tail = kept // 2
    return f"{text[: kept - tail]}{_GAP}{text[len(text) - tail :]}"


def _loop(site: JudgedSite, told: FrequencyWords) -> str:
    """Return words for the innermost loop, or for the heat of the place if there is no loop."""
    if not site.loops:
        return told.words
    loop = site.loops[-1]
    return f"the {LOOP_AT.format(line=loop.line)}{' over {over}' if loop.over else ''}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """Return the template with its fields filled in; an empty ``compiled`` leaves no gap."""
    if not fields["compiled"]:
        template = template.replace(" {compiled}", "")
    return template.format_map(fields)
