"""What a rule's page claims that a run shows, read once per rule. Knows nothing of torch."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from flake8_torchperf.findings.documentation import read_documentation

if TYPE_CHECKING:
    from flake8_torchperf.findings.documentation import EvidenceSpec
    from flake8_torchperf.findings.rule import Rule


@cache
def evidence_of(rule: Rule) -> EvidenceSpec | None:
    """The evidence that confirms a finding of this rule; None where its page declares none."""
    return read_documentation(rule).evidence
