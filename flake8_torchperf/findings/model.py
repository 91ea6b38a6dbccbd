"""A finding: a site that a rule objects to, with its place in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.findings.catalogue import Rule
    from flake8_torchperf.sites.model import Site


@dataclass(frozen=True, slots=True)
class Finding:
    """``line`` and ``end_line`` count from 1, ``column`` and ``end_column`` from 0, in characters.

    ``site`` and ``rule`` are None only for TPF900, which reports a file that could not be read.
    """

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    rule: Rule | None
    site: Site | None
