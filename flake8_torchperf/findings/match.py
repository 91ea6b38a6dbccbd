"""Matches sites against the rules of a catalogue; the results are `Raw` findings.

A pure function of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from flake8_torchperf.findings.catalogue import Catalogue
from flake8_torchperf.findings.rule import ChainStep, Match, Rule
from flake8_torchperf.judgement.fate import COMPILER_ONLY
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.judged_site import JudgedSite
from flake8_torchperf.values.values import tensor_of

if TYPE_CHECKING:
    import ast

_SCOPE_LEVEL = {"loop": Level.LOOP, "hot": Level.HOT}


@dataclass(frozen=True, slots=True)
class Raw:
    """A site and the rule that objects to it, without position or message yet."""

    rule: Rule
    site: JudgedSite


def find(sites: Iterable[JudgedSite], catalogue: Catalogue, scope: Level) -> list[Raw]:
    """Return the findings among ``sites``, in their order, one for each node.

    ``scope`` is the coldest level to report: LOOP for ``--torchperf-scope=loop``, HOT for "hot",
    COLD for "all". Of several sites on one node the rule of the highest priority reports; a finding
    on a node that another finding covers is dropped.
    """
    best: dict[int, Raw] = {}  # by identity of the node: equal expressions are reported separately
    for site in sites:
        rule = rule_for(site, catalogue, scope)
        if rule is None:
            continue
        raw, held = Raw(rule, site), best.get(id(site.node))
        if held is None or _outranks(raw, held):
            best[id(site.node)] = raw
    covered = _covered_nodes(best)
    return [raw for node, raw in best.items() if node not in covered]


def rule_for(site: JudgedSite, catalogue: Catalogue, scope: Level) -> Rule | None:
    """Return the rule of the highest priority that objects to ``site`` at this scope, if any."""
    for rule, match in catalogue.by_kind.get(site.kind, ()):
        if _hot_enough(site, rule, match, scope) and matches(site, match):
            return rule
    return None


def matches(site: JudgedSite, match: Match) -> bool:
    """True if every condition of ``match``, except its heat, holds for ``site``."""
    return (
        site.kind is match.kind
        and _operation_matches(site.operation, match)
        and match.traits <= site.traits
        and match.not_traits.isdisjoint(site.traits)
        and (COMPILER_ONLY not in site.traits or "compiled" in match.traits)
        and _operand_matches(site, match)
    )


def chain_ends_with(chain: tuple[str, ...], steps: tuple[ChainStep, ...]) -> bool:
    """True if the last operations of ``chain`` are ``steps``; optional steps may be missing."""
    if not steps:
        return True
    last, before = steps[-1], steps[:-1]
    if chain and chain[-1] in last.names and chain_ends_with(chain[:-1], before):
        return True
    return last.optional and chain_ends_with(chain, before)


def _hot_enough(site: JudgedSite, rule: Rule, match: Match, scope: Level) -> bool:
    """True if the site is hot enough for the user's scope and for the match, or else the rule.

    A rule or a match whose scope is "all" is reported only if the user asks for everything.
    """
    if match.only_in_all and scope is not Level.COLD:
        return False
    if match.heat is not None and match.heat is not Level.COLD:
        return site.heat.level >= max(match.heat, scope)
    if match.heat is Level.COLD:
        # Wrong in cold code as well; only scope "loop" leaves it out.
        return scope is not Level.LOOP or site.heat.level is Level.LOOP
    if scope is Level.COLD:
        return True
    needed = _SCOPE_LEVEL.get(rule.scope)
    return needed is not None and site.heat.level >= max(needed, scope)


def _operation_matches(operation: str, match: Match) -> bool:
    if not match.operations and not match.operation_globs:
        return True
    return operation in match.operations or any(
        fnmatchcase(operation, glob) for glob in match.operation_globs
    )


def _operand_matches(site: JudgedSite, match: Match) -> bool:
    if not (match.chain or match.dtype or match.not_device):
        return True
    tensor = tensor_of(site.operand) if site.operand is not None else None
    if tensor is None:
        # Without a tensor nothing contradicts "not on the host", but nothing shows chain and dtype.
        return not (match.chain or match.dtype)
    return (
        match.dtype in ("", tensor.dtype)
        and (not match.not_device or tensor.device != match.not_device)
        and chain_ends_with(tensor.chain, match.chain)
    )


def _outranks(challenger: Raw, holder: Raw) -> bool:
    """True if ``challenger`` replaces ``holder`` on a node; ``holder`` stays in a tie."""
    return challenger.rule.priority > holder.rule.priority


def _covered_nodes(best: dict[int, Raw]) -> set[int]:
    """Return the identities of the nodes whose findings another finding replaces.

    If two findings cover each other, only the one of lower priority is dropped.
    """
    covered: set[int] = set()
    for own, raw in best.items():
        for node in raw.site.covers:
            other = best.get(id(node))
            if other is None or id(node) == own:
                continue
            mutual = own in _identities(other.site.covers)
            if not mutual or not _outranks(other, raw):
                covered.add(id(node))
    return covered


def _identities(nodes: Iterable[ast.AST]) -> set[int]:
    return {id(node) for node in nodes}
