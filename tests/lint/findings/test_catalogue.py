"""Every rule page: whole, flagged as its example says, and true when executed."""

from __future__ import annotations

import ast

import pytest

from flake8_torchperf.findings.catalogue import load_catalogue, pages_folder
from flake8_torchperf.findings.documentation import (
    FIXES,
    SECTIONS,
    Documentation,
    expected_findings,
    read_documentation,
)
from flake8_torchperf.findings.rule import PREVIEW, Rule
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

RULES = load_catalogue().rules
FAMILIES = {
    "1": "host reads",
    "2": "per-element loops",
    "3": "data-dependent control flow",
    "4": "dynamic shapes",
    "5": "transfers and training loops",
    "6": "compiled code",
}

every_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])


def example_of(page: Documentation) -> tuple[str, str, str]:
    assert page.example is not None
    return page.example.bad, page.example.good, page.example.call


def test_every_page_is_loaded() -> None:
    assert len(RULES) == len(list(pages_folder().glob("TPF*.md"))) >= 17


@every_rule
def test_page_is_whole(rule: Rule) -> None:
    page = read_documentation(rule)
    with_fixes = (*SECTIONS[:4], FIXES, *SECTIONS[4:])
    assert tuple(page.sections) == (with_fixes if rule.fixes else SECTIONS)
    assert page.evidence is not None
    assert rule.own
    assert rule.family == FAMILIES[rule.code[3]]
    assert rule.matches
    assert "{instead}" in rule.message
    assert "http" in page.sections["References"] or "torch " in page.sections["References"]


@every_rule
def test_advice_is_a_clause(rule: Rule) -> None:
    """Messages end with it, after a semicolon."""
    for advice in [rule.message, *rule.instead.values()]:
        assert not advice.endswith((".", " "))
        assert len(advice) <= 80
    for operation, advice in rule.instead.items():
        assert advice[0].islower(), operation


@every_rule
def test_examples_are_well_formed(rule: Rule) -> None:
    bad, good, call = example_of(read_documentation(rule))
    for snippet in (bad, good):
        functions = [n.name for n in ast.walk(ast.parse(snippet)) if isinstance(n, ast.FunctionDef)]
        assert call in functions
        assert all(len(line) <= 100 for line in snippet.splitlines())
    marked = expected_findings(bad)
    assert {code for _, code in marked} == {rule.code}
    assert expected_findings(good) == []


def telling(rule: Rule) -> Options:
    """The options with which a rule is told: a scope, and the preview."""
    scope = Level.COLD if rule.scope == "all" else Level.HOT
    return Options(scope=scope, preview=rule.status == PREVIEW)


@every_rule
def test_bad_example_is_flagged_where_it_says(rule: Rule) -> None:
    bad, _, _ = example_of(read_documentation(rule))
    found = [(f.line, f.code) for f in lint(bad, "bad.py", telling(rule))]
    assert sorted(found) == expected_findings(bad)


@every_rule
def test_good_example_is_silent(rule: Rule) -> None:
    _, good, _ = example_of(read_documentation(rule))
    assert [f"{f.line} {f.code} {f.message}" for f in lint(good, "good.py", telling(rule))] == []


@every_rule
def test_messages_are_one_line(rule: Rule) -> None:
    bad, _, _ = example_of(read_documentation(rule))
    for finding in lint(bad, "bad.py", telling(rule)):
        assert "\n" not in finding.message
        assert "{" not in finding.message
        assert finding.message == " ".join(finding.message.split())


@every_rule
def test_examples_show_the_declared_evidence(rule: Rule) -> None:
    torch = pytest.importorskip("torch")
    from page_examples import run_examples

    page = read_documentation(rule)
    assert page.evidence is not None
    if page.evidence.needs == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    shown = run_examples(page)
    assert shown.confirmed, shown.problem
