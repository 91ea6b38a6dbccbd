"""A rule's life: preview, stable, retired; and the severity that a page may state."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_torchperf.findings.catalogue import index, load_catalogue, told_rules
from flake8_torchperf.findings.page import PageError, PageText, read_rule
from flake8_torchperf.findings.rule import PREVIEW, RETIRED, STABLE, STATUSES

PAGE = """\
+++
code = "TPF799"
name = "of-ours"
family = "ours"
{status}
scope = "hot"
priority = 5
message = "`{{expression}}` waits"

[instead]
default = "don't"
{match}
+++
"""
MATCH = '\n[[match]]\nkind = "HostRead"\n'


def page(status: str = "", match: str = MATCH) -> PageText:
    text = PAGE.format(status=status, match=match)
    return PageText(Path("TPF799-of-ours.md"), text)


def test_every_rule_says_since_when_it_is_told() -> None:
    for rule in load_catalogue().rules:
        assert rule.since
        assert rule.status in STATUSES


def test_rules_in_preview_are_told_on_request_alone() -> None:
    known = {rule.code: rule.status for rule in load_catalogue().rules}
    assert PREVIEW in known.values()
    told = {rule.code for rule in told_rules((), preview=False).rules}
    assert told == {code for code, status in known.items() if status == STABLE}
    more = {rule.code for rule in told_rules((), preview=True).rules}
    assert more - told == {code for code, status in known.items() if status == PREVIEW}


def test_a_retired_page_needs_no_match_and_is_not_told() -> None:
    rule = read_rule(page(f'status = "{RETIRED}"', match=""), own=False)
    assert rule.status == RETIRED
    assert index([rule]).by_kind == {}
    with pytest.raises(PageError, match="no \\[\\[match\\]\\]"):
        read_rule(page(match=""), own=False)


@pytest.mark.parametrize("line", ['status = "stabel"', 'severity = "fatal"'])
def test_a_misspelt_word_is_named_with_the_nearest(line: str) -> None:
    with pytest.raises(PageError, match="unknown"):
        read_rule(page(line), own=False)


def test_a_page_without_a_status_is_stable() -> None:
    rule = read_rule(page('severity = "note"'), own=False)
    assert (rule.status, rule.since, rule.severity) == (STABLE, "", "note")
