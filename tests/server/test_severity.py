"""The severity that an editor shows: the rule's own, or else that of the finding's worth."""

from __future__ import annotations

import pytest
from lsprotocol.types import DiagnosticSeverity
from weighing import weighed

from flake8_torchperf.judgement.worth.bands import Band, band_of
from flake8_torchperf.reserved import INTERNAL_ERROR
from flake8_torchperf.server.messages import Problem
from flake8_torchperf.server.present import diagnostic, hover
from flake8_torchperf.server.text import Units

EVIDENCE = "cost:per-element rule:TPF101"
PLACE = (0, 0, 0, 1)


def severity(problem: Problem) -> DiagnosticSeverity | None:
    return diagnostic(problem, "file:///a.py", Units("x\n", "utf-16")).severity


def problem(*, code: str = "TPF101", severity: str = "", evidence: str = EVIDENCE) -> Problem:
    return Problem(code, "a", "text", "per element", PLACE, severity=severity, evidence=evidence)


@pytest.mark.parametrize(
    ("weight", "shown"),
    [
        (1.0, DiagnosticSeverity.Warning),
        (0.0, DiagnosticSeverity.Information),
        (-2.0, DiagnosticSeverity.Hint),
    ],
)
def test_the_worth_decides(weight: float, shown: DiagnosticSeverity) -> None:
    with weighed({"rule:TPF101": weight}):
        assert severity(problem()) == shown


def test_the_rule_decides_first() -> None:
    with weighed({"rule:TPF101": -9.0}):
        assert severity(problem(severity="error")) == DiagnosticSeverity.Error
        assert severity(problem(code=INTERNAL_ERROR, evidence="")) == DiagnosticSeverity.Error
        assert severity(problem(evidence="")) == DiagnosticSeverity.Warning


@pytest.mark.parametrize("decided", ["runs:named-hot", "runs:contract", "runs:ran-often"])
def test_what_was_decided_is_as_severe_as_its_cost(decided: str) -> None:
    with weighed({}, intercept=-9.0):
        assert band_of({"cost:per-element"}) is Band.LOW
        assert band_of({"cost:per-element", decided}) is Band.HIGH
        assert band_of({"cost:per-step", decided}) is Band.MEDIUM
        assert band_of({"cost:per-call", decided}) is Band.LOW


def test_a_hover_tells_cost_and_worth() -> None:
    with weighed({"rule:TPF101": 1.0}):
        assert hover(problem(), "").startswith("**TPF101**: per element, worth 0.73\n")
