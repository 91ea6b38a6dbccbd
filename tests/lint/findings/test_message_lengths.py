"""Every message says what happens, how often and what to write, in at most 140 characters."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.message import (
    LONGEST,
    MORE,
    SHORTEST_EXPRESSION,
    format_message,
    leading,
)
from flake8_torchperf.findings.rule import Rule
from flake8_torchperf.judgement.heat import Call, Cost, Heat, Level, Measured
from flake8_torchperf.judgement.judged_site import JudgedSite, Loop
from flake8_torchperf.knowledge.conventions import load_conventions
from flake8_torchperf.syntax.positions import Snippet
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SiteKind

LINE = 123_456
LONGEST_COST = max(Cost, key=lambda cost: len(cost.value))
NAME = "_".join(["_a_function_of_a_long_name"] * 9)
CODE = f"receiver.{NAME}(first_argument, second_argument).item(), {NAME}"
NODE = ast.parse(CODE, mode="eval").body
FILE = Snippet([CODE], [NODE])
ROUNDS = ast.parse("for grad in grads: pass").body[0]
LOOPS = (Loop(LINE, "for", CODE, ROUNDS),)
COMPILED = f"of {NAME}, called by the compiled {NAME}, an error under fullgraph"
# What a transform does to a place is told in full, see `recording`.
TRANSFORMED = "calls a compiled function in a transform"
# What may lead a row of reads: see `consecutive_reads`.
IN_A_ROW = ("TPF101", "TPF102", "TPF104", "TPF106")
TOLD_BY_LINE = (Cause.CALLED, Cause.CALLED_IN_LOOP, Cause.LOOP)
LAST = ast.parse("x.item()", mode="eval").body
LAST.end_lineno = LINE
BEHIND = (0, 1, 99)
RULES = load_catalogue().rules
every_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.code for rule in RULES])


def operations(rule: Rule) -> Iterator[tuple[str, frozenset[str]]]:
    """An operation, with traits, for each advice of a page."""
    for keys in rule.instead:
        operation, plus, trait = keys.partition("+")
        if plus:
            yield operation, frozenset((trait,))
            continue
        yield keys.replace("*", "x"), frozenset()
        yield "another", frozenset((keys,))
    for match in rule.matches:
        yield from ((operation, match.traits) for operation in match.operations)


CALLS = (Call(NAME, "", LINE),)
# A week of a thousand steps a second.
A_LOT = Measured(604_800_000, 604_800_000, 1, 604_800.0)


def heats() -> Iterator[Heat]:
    """Each thing that may say how often a place runs, with long names and big numbers.

    The cost and the cause are told side by side: every cause with the longest cost, and every cost
    with one cause.
    """
    row = max((row.id for row in load_conventions().rows), key=len)
    for level, cause in itertools.product((Level.COLD, Level.LOOP), Cause):
        name = row if cause is Cause.CONVENTION else NAME
        name = f"{NAME} -> {NAME}" if cause is Cause.CONTRACT else name
        yield Heat(level, cause, name, ROUNDS, cost=LONGEST_COST, calls=CALLS)
    for cost in Cost:
        yield Heat(Level.LOOP, Cause.LOOP, NAME, ROUNDS, cost=cost, calls=CALLS)
        yield Heat(Level.LOOP, Cause.RAN_OFTEN, NAME, cost=cost, measured=A_LOT)


def site_of(rule: Rule, operation: str, traits: frozenset[str], heat: Heat) -> JudgedSite:
    """A place that the page may be about, as wordy as it can be."""
    kind = rule.matches[0].kind if rule.matches else SiteKind.CALL
    compiled = TRANSFORMED if kind is SiteKind.TRANSFORM else COMPILED
    return JudgedSite(kind, operation, NODE, None, heat, LOOPS, NAME, traits, (), NODE, compiled)


def sites(rule: Rule) -> Iterator[JudgedSite]:
    """Each heat with an advice of each length that the page has, and each advice with one heat.

    A message has one part for the advice and one for the heat, so only their lengths meet.
    """
    every = [*operations(rule)]
    of_each_length = {len(rule.advice(*one)): one for one in every}
    for (operation, traits), heat in itertools.product(of_each_length.values(), heats()):
        yield site_of(rule, operation, traits, heat)
    usual = Heat(Level.LOOP, Cause.LOOP, NAME, ROUNDS, cost=LONGEST_COST, calls=CALLS)
    for operation, traits in every:
        yield site_of(rule, operation, traits, usual)


@every_rule
def test_no_message_is_too_long(rule: Rule) -> None:
    behind = BEHIND if rule.code in IN_A_ROW else BEHIND[:1]
    for site, count in itertools.product(sites(rule), behind):
        if count and site.heat.cause is Cause.CONTRACT:
            continue  # what breaks one is told read by read
        message = format_message(rule, site, FILE, [replace(site, node=LAST)] * count)
        if count:
            assert MORE in message
            message = leading(message, [LINE] * count)
        assert len(message) <= LONGEST, message
        shown = re.search(r"`(?:while |assert )?([^`]+)`", message)
        assert shown is not None, message
        assert len(shown[1]) >= SHORTEST_EXPRESSION, message
        if "{where}" in rule.message:
            promised = site.heat.cause is Cause.CONTRACT
            told = "on the way from _a_functi" if promised else site.heat.cost.value
            assert told in message
        if site.heat.cause in TOLD_BY_LINE and "{where}" in rule.message:
            assert f"at line {LINE})" in message
        if count:
            assert f"line {LINE}; " in message


@every_rule
def test_a_page_says_what_happens_and_after_a_semicolon_what_to_write(rule: Rule) -> None:
    texts = [rule.message.replace("{instead}", advice) for advice in rule.instead.values()]
    for text in texts:
        assert text.count("; ") == 1, text
        assert text.count("`") == 2, text


def test_a_short_expression_leaves_its_room_to_a_long_name() -> None:
    read = ast.parse("x.item()", mode="eval").body
    calls = (Call("compute_the_loss_of_a_batch", "", 7),)
    heat = Heat(Level.STEP, Cause.CALLED, "f", cost=Cost.STEP, calls=calls)
    site = JudgedSite(SiteKind.HOST_READ, "item", read, None, heat)
    rule = load_catalogue().rule("TPF101")
    assert rule is not None
    assert format_message(rule, site, Snippet(["x.item()"], [read])) == (
        "`x.item()` waits per step (called by `compute_the_loss_of_a_batch` at line 7); "
        "keep it a tensor, or read once at the end"
    )
