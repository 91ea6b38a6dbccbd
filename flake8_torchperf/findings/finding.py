"""A finding: a site that a rule objects to, with its place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.findings.catalogue import Rule
    from flake8_torchperf.judgement.judged_site import JudgedSite


@dataclass(frozen=True, slots=True)
class Edit:
    """The changes that a fix would make for one finding.

    ``nodes`` are the expressions and statements to rewrite, ``facts`` what the fix found out about
    them, ``imports`` the modules that the new code uses and the file does not import. ``safety``
    ("safe", "unsafe" or "suggested") and ``name`` are those of the fix; planning fills them in.
    """

    nodes: tuple[ast.AST, ...]
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    imports: tuple[str, ...] = ()
    safety: str = ""
    name: str = ""

    def of(self, safety: str, name: str) -> Edit:
        """Return the same edit with the safety and name of its fix."""
        return replace(self, safety=safety, name=name)


@dataclass(frozen=True, slots=True)
class Finding:
    """A reported problem: its message, its place and the evidence for it.

    ``message`` is one printable line without the code. The place is that of the reported
    expression: lines count from 1, columns from 0 and in characters (flake8 prints them from 1),
    and ``end_column`` is the first column after the expression. ``rule`` is the page that objects;
    ``site`` is the interpreter's evidence, with the operand's value and the reason to believe that
    it is a tensor. The waits of findings with the same ``row`` follow directly on each other:
    ``lead`` is the message of a finding that also reports the later ones of its row, with `MORE`
    for their number, and ``behind`` are their nodes. ``edits`` are the changes that fixes offer,
    safest first.
    """

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    rule: Rule
    site: JudgedSite
    row: str = ""
    lead: str = ""
    behind: tuple[ast.AST, ...] = ()
    edits: tuple[Edit, ...] = ()

    def offering(self, edits: tuple[Edit, ...], mark: str) -> Finding:
        """Return the finding with the edits of fixes, and ``mark`` appended to its messages."""
        lead = self.lead + mark if self.lead else ""
        return replace(self, edits=edits, message=self.message + mark, lead=lead)
