"""A finding: a site that a rule objects to, with its place in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.absint.domain.site import Site
    from flake8_torchperf.findings.catalogue import Rule


@dataclass(frozen=True, slots=True)
class Finding:
    """What is reported, where, and what it rests on.

    ``message`` is one printable line without the code. The place is that of the expression objected
    to: lines count from 1, columns from 0 and in characters (flake8 prints them from 1), and
    ``end_column`` is the first one behind it. ``rule`` is the page that objects; ``site`` is what
    the interpreter saw, with the operand's value and the reason it is known to be a tensor.
    ``also`` holds line and code of the reads that wait straight behind this one and are no findings
    of their own.
    """

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    rule: Rule
    site: Site
    also: tuple[tuple[int, str], ...] = ()
