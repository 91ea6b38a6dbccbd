"""Turns the sites of one analysis result into findings with positions and messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.findings.heat_text import hidden_by
from flake8_torchperf.findings.locate import locate
from flake8_torchperf.findings.match import Raw, find, rule_for
from flake8_torchperf.findings.message import HOST_READS, LOGGED, format_message, with_reason
from flake8_torchperf.findings.rows.consecutive_reads import in_rows, with_followers
from flake8_torchperf.findings.rows.kept_waits import without_idle
from flake8_torchperf.findings.rows.same_mask import by_mask
from flake8_torchperf.idioms.logging_calls import logged
from flake8_torchperf.idioms.loop_kinds import head_of
from flake8_torchperf.interpreter.events.waiting_wrappers import IN_HELPER
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.worth.features import OUTRIGHT, features, is_repeated
from flake8_torchperf.judgement.worth.fitted import weights
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Strength, Tensor, tensor_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Sequence

    from flake8_torchperf.findings.catalogue import Catalogue
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.options import Options
    from flake8_torchperf.syntax.positions import Place, Snippet


def report(
    result: Judged,
    catalogue: Catalogue,
    options: Options,
    qualify: Callable[[ast.expr], str],
) -> list[Finding]:
    """Return the findings among the sites of a result.

    ``qualify`` returns the full name that an expression stands for in the module. Positions are
    computed only if there are findings.
    """
    raws = _one_loop_one_finding(_objections(result, catalogue, options))
    found = _logging(raws, result.snippet, options, qualify)
    # Scope "all" reports each read by itself.
    if options.scope is Level.COLD:
        rows = [[raw] for raw in found]
    else:
        rows = in_rows(found, result.snippet.nodes, result.queued)
        rows = by_mask(rows, result.snippet.nodes)
    least = least_worth(options)
    if least:
        told: list[list[Raw]] = []
        rest: list[list[Raw]] = []
        for row in rows:
            worth = any(is_worth(raw.site, raw.rule.code, least) for raw in row)
            (told if worth else rest).append(row)
        needed = Strength[options.confidence.upper()]
        doubted = {id(site.node) for site in result.sites if not _believed(site, needed)}
        told = without_idle(told, doubted)
        heads = _heads_around(told) if rest else ()
        around = [row for row in rest if id(row[0].site.node) in heads]
        left = [row for row in rest if id(row[0].site.node) not in heads]
        rows = [*with_followers(told, left), *around]
    return [finding for row in rows for finding in _row(row, result.snippet, catalogue, options)]


def is_objected_to(result: Judged, catalogue: Catalogue, options: Options) -> bool:
    """True if a rule objects to a site of a result, of whatever worth."""
    return bool(_objections(result, catalogue, options))


def _objections(result: Judged, catalogue: Catalogue, options: Options) -> list[Raw]:
    needed = Strength[options.confidence.upper()]
    believed = [
        site for site in result.sites if _believed(site, needed) and _told(site, options.scope)
    ]
    return find(believed, catalogue, options.scope)


def least_worth(options: Options) -> float:
    """Return the worth from which findings are reported.

    Without a setting, that of the default scope is the threshold of the table.
    """
    if options.min_worth is not None:
        return options.min_worth
    return weights().threshold if options.scope is Level.HOT else 0.0


def is_worth(site: JudgedSite, code: str, least: float) -> bool:
    """True if a rule's finding at a site has this worth, or something outweighs all weights.

    The user or a measurement does, and so does what a function's own text repeats.
    """
    evidence = features(site, code)
    if not OUTRIGHT.isdisjoint(evidence) or is_repeated(evidence):
        return True
    return weights().worth(evidence) >= least


def _heads_around(told: Sequence[list[Raw]]) -> frozenset[int]:
    """Return the nodes in what the loops around findings go over, by identity.

    A loop over elements, and a wait in it that is told, are one problem.
    """
    loops = {id(loop.node): loop.node for row in told for raw in row for loop in raw.site.loops}
    heads = (head_of(node) for node in loops.values() if node is not None)
    return frozenset(id(node) for head in heads if head is not None for node in walk([head.iter]))


def _logging(
    raws: list[Raw], snippet: Snippet, options: Options, qualify: Callable[[ast.expr], str]
) -> list[Raw]:
    """Return the findings, with a trait on reads that are only logged, or without such reads."""
    if not any(raw.rule.family == HOST_READS for raw in raws):
        return raws
    found = logged(snippet.nodes, qualify)
    kept: list[Raw] = []
    for raw in raws:
        if raw.rule.family != HOST_READS or id(raw.site.node) not in found:
            kept.append(raw)
        elif options.logging != "ignore":
            kept.append(Raw(raw.rule, replace(raw.site, traits=raw.site.traits | {LOGGED})))
    return kept


def _told(site: JudgedSite, scope: Level) -> bool:
    """True unless the site calls a helper at scope "all", which reports the helper's own wait."""
    return scope is not Level.COLD or IN_HELPER not in site.traits


def _believed(site: JudgedSite, needed: Strength) -> bool:
    """True if the reason is strong enough; a site without a tensor needs none."""
    tensor = tensor_of(site.operand) if site.operand is not None else None
    return tensor is None or tensor.reason.strength >= needed


# A loop with more operations per parameter than this is an update rule, not a lone operation.
MAX_OPERATIONS = 2
# Kinds of sites that wait for the value of one tensor.
_WAITS = frozenset((
    SiteKind.HOST_READ, SiteKind.HOST_REDUCTION, SiteKind.HOST_COMPARISON, SiteKind.FORMAT,
    SiteKind.HOST_ACCUMULATION, SiteKind.BRANCH, SiteKind.NUMBER_USE,
))  # fmt: skip


def _one_loop_one_finding(raws: Iterable[Raw]) -> list[Raw]:
    """Return the findings without operations per parameter that belong to longer loops.

    An operation per parameter is reported only if its loop runs at most `MAX_OPERATIONS` of them.
    Each expression has one finding: if an operation contains a wait, or a wait contains the
    operation, only the wait is reported. Of nested operations only the outermost is reported.
    """
    kept = list(raws)
    operations = [raw for raw in kept if raw.site.kind is SiteKind.PARAMETER_LOOP]
    if not operations:
        return kept
    counts = Counter(id(raw.site.loops[-1].node) for raw in operations)
    waits = {id(raw.site.node): raw.site.node for raw in kept if raw.site.kind in _WAITS}
    parts = {id(inner) for node in waits.values() for inner in walk([node])}
    dropped: set[int] = set()
    for raw in operations:
        node = raw.site.node
        inside = {id(inner) for inner in walk([node])}
        parts |= inside - {id(node)}
        if counts[id(raw.site.loops[-1].node)] > MAX_OPERATIONS or not inside.isdisjoint(waits):
            dropped.add(id(raw))
    dropped.update(id(raw) for raw in operations if id(raw.site.node) in parts)
    return [raw for raw in kept if id(raw) not in dropped]


def _row(row: list[Raw], snippet: Snippet, catalogue: Catalogue, options: Options) -> list[Finding]:
    """Return a finding for each wait of a row, in the order of the file.

    Each finding also has a second message, used if it is the first of its row to be reported.
    """
    if len(row) == 1:
        return [_finding(row[0], locate(row[0].site, snippet), snippet, catalogue, options)]
    row = sorted(row, key=lambda raw: _place(raw, snippet))
    line, column, _, _ = _place(row[0], snippet)
    found = []
    for index, raw in enumerate(row):
        site = locate(raw.site, snippet)
        alone = _finding(raw, site, snippet, catalogue, options)
        others = [other.site for other in row[:index] + row[index + 1 :]]
        last = index + 1 == len(row)
        lead = "" if last else _message(raw, site, others, snippet, catalogue, options)
        found.append(replace(alone, row=f"{line}:{column}", lead=lead))
    return found


def _finding(
    raw: Raw, site: JudgedSite, snippet: Snippet, catalogue: Catalogue, options: Options
) -> Finding:
    message = _message(raw, site, (), snippet, catalogue, options)
    return Finding(raw.rule.code, message, *_place(raw, snippet), raw.rule, site)


def _message(
    raw: Raw,
    site: JudgedSite,
    others: Sequence[JudgedSite],
    snippet: Snippet,
    catalogue: Catalogue,
    options: Options,
) -> str:
    """Return the message of a finding at its located site that leads ``others``, if any."""
    if not all(LOGGED in other.traits for other in others):
        site = replace(site, traits=site.traits - {LOGGED})
    message = format_message(raw.rule, site, snippet, others)
    if options.explain:
        hidden = _hidden(raw, catalogue) if options.scope is Level.COLD else ""
        message = with_reason(message, _reason(site, snippet), hidden)
    return message


def _reason(site: JudgedSite, snippet: Snippet) -> str:
    """Return why the operand is believed to be a tensor."""
    if not isinstance(site.operand, Tensor):
        return ""
    return site.operand.reason.describe(_line_in(snippet))


def _hidden(raw: Raw, catalogue: Catalogue) -> str:
    """Return why the default scope leaves a finding out; "" if the default scope reports it.

    Only the heat from the finding's own file counts. The default scope also follows calls in other
    files of the package, which may give another heat.
    """
    heat = raw.site.heat
    if heat.cause is Cause.CONTRACT:
        return ""
    if rule_for(raw.site, catalogue, Level.HOT) is not None:
        return ""
    if heat.level is Level.COLD:
        return hidden_by(heat)
    return f"{raw.rule.code} asks for code that runs more often"


def _place(raw: Raw, snippet: Snippet) -> Place:
    return snippet.position(raw.site.node) or snippet.start


def _line_in(snippet: Snippet) -> LineOf:
    def line_of(node: ast.AST) -> int | None:
        place = snippet.position(node)
        return None if place is None else place[0]

    return line_of


if TYPE_CHECKING:
    LineOf = Callable[[ast.AST], int | None]
