"""A finding: a site that a rule objects to, with its place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.absint.domain.site import Site
    from flake8_torchperf.findings.catalogue import Rule


@dataclass(frozen=True, slots=True)
class Edit:
    """What a fix would change for one finding.

    ``nodes`` are the expressions and statements that are rewritten, ``facts`` what the fix found
    out about them, ``imports`` the modules that the new text names and the file does not import.
    ``safety`` ("safe", "unsafe" or "suggested") and ``name`` are those of the fix; planning fills
    them in.
    """

    nodes: tuple[ast.AST, ...]
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    imports: tuple[str, ...] = ()
    safety: str = ""
    name: str = ""

    def of(self, safety: str, name: str) -> Edit:
        """The same edit, as made by a fix of this safety and name."""
        return replace(self, safety=safety, name=name)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is reported, where, and what it rests on.

    ``message`` is one printable line without the code. The place is that of the expression objected
    to: lines count from 1, columns from 0 and in characters (flake8 prints them from 1), and
    ``end_column`` is the first one behind it. ``rule`` is the page that objects; ``site`` is what
    the interpreter saw, with the operand's value and the reason it is known to be a tensor.
    Findings with the same ``row`` wait straight behind each other: ``lead`` is the message of one
    that is reported for those after it, with `MORE` for their number. ``edits`` are the changes
    that fixes offer, safest first.
    """

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    rule: Rule
    site: Site
    row: str = ""
    lead: str = ""
    edits: tuple[Edit, ...] = ()

    def offering(self, edits: tuple[Edit, ...], mark: str) -> Finding:
        """The same finding with the edits of fixes, and what the message says of them."""
        lead = self.lead + mark if self.lead else ""
        return replace(self, edits=edits, message=self.message + mark, lead=lead)
