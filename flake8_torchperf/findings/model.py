"""A finding: a site that a rule objects to, with its place in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.findings.catalogue import Rule
    from flake8_torchperf.sites.model import Site


@dataclass(frozen=True, slots=True)
class Finding:
    """Lines count from 1, columns from 0 and in characters."""

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    rule: Rule
    site: Site
