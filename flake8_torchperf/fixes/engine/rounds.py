"""Fixes one file's text in rounds, until nothing changes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.findings.rule import SAFE, SUGGESTED, UNSAFE
from flake8_torchperf.fixes.engine.gains import gaining
from flake8_torchperf.fixes.engine.lines.width import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.findings.finding import Edit, Finding

Judge: TypeAlias = "Callable[[str, Sequence[tuple[Finding, Edit]]], Sequence[bool]]"

# A fix may make another one possible. Ours need at most three rounds; a text that still changes
# after this many is left as it is then.
MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """The fixes that the user asked for.

    ``unsafe`` is set by ``--unsafe``. ``suggested`` holds the codes that ``--select`` names in
    full, or is None for all codes, as with ``--suggested``.
    """

    unsafe: bool = False
    suggested: frozenset[str] | None = frozenset()

    @property
    def safeties(self) -> frozenset[str]:
        """The safeties of the fixes to plan."""
        more = {UNSAFE} if self.unsafe else set()
        if self.suggests:
            more.add(SUGGESTED)
        return frozenset((SAFE, *more))

    @property
    def suggests(self) -> bool:
        """True if suggested fixes are made."""
        return self.suggested is None or bool(self.suggested)

    def edit(self, finding: Finding) -> Edit | None:
        """Return the safest of the finding's edits that the user asked for.

        An edit whose nodes enclose those of another edit comes first: a loop before a condition in
        the loop.
        """
        chosen: Edit | None = None
        for edit in finding.edits:
            if self._asks_for(edit, finding) and (chosen is None or _holds(edit, chosen)):
                chosen = edit
        return chosen

    def _asks_for(self, edit: Edit, finding: Finding) -> bool:
        if edit.safety == SUGGESTED:
            return self.suggested is None or finding.code in self.suggested
        return edit.safety == SAFE or (edit.safety == UNSAFE and self.unsafe)


def _holds(edit: Edit, other: Edit) -> bool:
    """True if every node of ``other`` lies inside a node of ``edit``, without being that node."""
    return all(any(_within(inner, node) for node in edit.nodes) for inner in other.nodes)


def _within(inner: ast.AST, node: ast.AST) -> bool:
    return inner is not node and any(below is inner for below in ast.walk(node))


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """One fix that was made: its edit, and the finding as it was in the text of that round."""

    finding: Finding
    edit: Edit
    round: int


@dataclass(frozen=True, slots=True)
class FixedText:
    """The result of fixing one text.

    ``first`` are the findings before, ``left`` those after; ``found`` and ``changes`` are in the
    order in which they were made. ``open`` is True if the text still changed in the last round.
    """

    text: str
    changes: tuple[AppliedFix, ...]
    first: tuple[Finding, ...]
    left: tuple[Finding, ...]
    open: bool = False


def fixed(
    text: str,
    find: Callable[[str], Sequence[Finding]],
    choice: Choice,
    judge: Judge | None = None,
    width: int | None = None,
) -> FixedText:
    """Fix ``text`` until nothing changes.

    ``find`` lints a text and returns the findings that may be fixed, without those that are ignored
    or have a ``# noqa``. ``judge``, where given, is called before edits are made, with the text and
    all edits of that round; an edit that it turns down is not made. ``width`` is the line length
    that the project states; without it, the text shows its own.
    """
    first: tuple[Finding, ...] | None = None
    found: tuple[Finding, ...] = ()
    changes: list[AppliedFix] = []
    find = lru_cache(maxsize=4)(find)  # judging the gain of fixes lints the text that comes next
    for number in range(MAX_ROUNDS):
        found = tuple(find(text))
        first = found if first is None else first
        new, made = _round(text, find, choice, judge, width)
        if not made:
            return FixedText(text, tuple(changes), first, found)
        by_edit = {id(edit): finding for finding in found for edit in finding.edits}
        changes += [AppliedFix(by_edit[id(edit)], edit, number) for edit in made]
        text = new
    found = tuple(find(text))
    left_open = any(choice.edit(finding) is not None for finding in found)
    return FixedText(text, tuple(changes), first or (), found, left_open)


def followed(first: FixedText, second: FixedText) -> FixedText:
    """Return the result of two successive runs of rounds on a text."""
    rounds = max((change.round for change in first.changes), default=-1) + 1
    later = (replace(change, round=change.round + rounds) for change in second.changes)
    return replace(second, changes=(*first.changes, *later), first=first.first)


def _round(
    text: str,
    find: Callable[[str], Sequence[Finding]],
    choice: Choice,
    judge: Judge | None,
    width: int | None,
) -> tuple[str, Sequence[Edit]]:
    offered = [(one, edit) for one in find(text) if (edit := choice.edit(one)) is not None]
    if not offered:
        return text, ()
    from flake8_torchperf.fixes.engine.apply import Applied, apply_edits  # imports libcst

    @lru_cache(maxsize=4)
    def applied_to(edits: tuple[Edit, ...]) -> Applied:
        """Apply edits, with the results cached: they are tried, weighed and made in turn."""
        return apply_edits(text, edits)

    # Of those that overlap, only the first can be made in this round.
    made = {id(edit) for edit in applied_to(tuple(edit for _, edit in offered)).edits}
    offered = [(one, edit) for one, edit in offered if id(edit) in made]
    offered = list(gaining(text, offered, find, lambda edits: applied_to(tuple(edits)).text))
    allowed = [True] * len(offered) if judge is None else judge(text, offered)
    edits = tuple(edit for (_, edit), right in zip(offered, allowed, strict=True) if right)
    applied = applied_to(edits)
    new, fits = wrapped(text, applied.text, width)
    if not fits:
        # A line that cannot be wrapped is harder to read than the code that it replaces.
        short = tuple(edit for edit in edits if wrapped(text, applied_to((edit,)).text, width)[1])
        applied = applied_to(short)
        new, _ = wrapped(text, applied.text, width)
    return (new, applied.edits) if applied.edits else (text, ())
