"""Selects the edits that leave less to report, by comparing the findings before and after."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.heat import Cost
from flake8_torchperf.values.site import SIZED_KINDS, SiteKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flake8_torchperf.findings.finding import Edit, Finding

# A finding per element is worse than one per step, which is worse than one per call.
_WEIGHTS = {Cost.ELEMENT: 100, Cost.STEP: 10, Cost.REQUEST: 10, Cost.EPOCH: 1, Cost.CALL: 1}
# The kinds of sites at which Python waits for a value. Straight behind one, another costs little:
# 13 us after 4,057 us on an H100 with a busy queue.
_WAITS = frozenset((
    SiteKind.HOST_READ, SiteKind.HOST_REDUCTION, SiteKind.HOST_COMPARISON, SiteKind.FORMAT,
    SiteKind.HOST_ACCUMULATION, SiteKind.BRANCH, SiteKind.NUMBER_USE, *SIZED_KINDS,
))  # fmt: skip


def gaining(
    text: str,
    offered: Sequence[tuple[Finding, Edit]],
    find: Callable[[str], Sequence[Finding]],
    apply: Callable[[Sequence[Edit]], str],
) -> Sequence[tuple[Finding, Edit]]:
    """Return the edits of a text that reduce the findings in the function of their own finding.

    No function may have more findings than before. Edits that join several waits of one row must
    leave fewer waits in it. An edit that leaves another wait in its statement or in the next one
    is no gain. All edits are tried together first; if that is not a gain, each is tried alone.
    """
    found = find(text)
    rewritten = {id(part) for _, edit in offered for node in edit.nodes for part in ast.walk(node)}
    # The operands of what is rewritten are computed as before.
    rewritten -= {id(part) for one, _ in offered for part in _below(one.site.node)}
    left = [one for one in found if not one.edits and id(one.site.node) not in rewritten]
    waiting = {one.line for one in left if one.site.kind in _WAITS}
    near = _lines_near(ast.parse(text)) if waiting else {}
    offered = [one for one in offered if not _is_waited_for(one[0], waiting, near)]
    if not offered:
        return []
    before, waits = _burden(found), _waits(found)

    def gains(some: Sequence[tuple[Finding, Edit]]) -> bool:
        changed = find(apply([edit for _, edit in some]))
        after, fewer = _burden(changed), _waits(changed)
        if not after <= before:
            return False
        for name in {finding.site.function for finding, _ in some}:
            joined = all(_joins(*one) for one in some if one[0].site.function == name)
            if after[name] == before[name] and not (joined and fewer[name] < waits[name]):
                return False
        return True

    if gains(offered):
        return offered
    return [] if len(offered) == 1 else [one for one in offered if gains([one])]


def _burden(found: Sequence[Finding]) -> Counter[str]:
    """Return the weighted number of findings in each function; one in a loop weighs more."""
    burden: Counter[str] = Counter()
    for one in found:
        burden[one.site.function] += _WEIGHTS[one.site.heat.cost] + len(one.site.loops)
        # A wrong number is worse than the wait for the right one.
        burden[one.site.function] += one.site.kind is SiteKind.RACE
    return burden


def _waits(found: Sequence[Finding]) -> Counter[str]:
    """Return the number of waits in each function, with those that are reported with another."""
    waits: Counter[str] = Counter()
    for one in found:
        waits[one.site.function] += 1 + len(one.behind)
    return waits


def _joins(finding: Finding, edit: Edit) -> bool:
    """True if an edit rewrites several waits of a finding's row."""
    inside = {id(inner) for node in edit.nodes for inner in ast.walk(node)}
    return sum(id(node) in inside for node in (finding.site.node, *finding.behind)) > 1


def _is_waited_for(finding: Finding, waiting: set[int], near: dict[int, set[int]]) -> bool:
    """True if Python waits in the statement of a finding, or in the next one, after its fix too.

    ``waiting`` are the lines of the waits that are left, ``near`` those that follow on each line.
    """
    return finding.site.kind in _WAITS and not waiting.isdisjoint(near.get(finding.line, ()))


def _below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes inside a node, without the node itself."""
    return (part for part in ast.walk(node) if part is not node)


def _lines_near(tree: ast.AST) -> dict[int, set[int]]:
    """Return, for each line, those of its statement and of the one that follows it in its block."""
    near: dict[int, set[int]] = {}
    for block in _blocks(tree):
        for at, statement in enumerate(block):
            lines = {*_header(statement)}
            if at + 1 < len(block):
                lines.update(_header(block[at + 1]))
            near.update(dict.fromkeys(_header(statement), lines))
    return near


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield all blocks of statements in a tree."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _header(statement: ast.stmt) -> range:
    """Return the lines of a statement, without those of its blocks."""
    block = getattr(statement, "body", None)
    end = statement.end_lineno or statement.lineno
    if isinstance(block, list) and block:
        end = max(block[0].lineno - 1, statement.lineno)
    return range(statement.lineno, end + 1)
