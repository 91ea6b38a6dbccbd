"""Which rule reports which site: precedence, covers, scope and what a match may ask."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from flake8_torchperf.findings.catalogue import index, load_catalogue
from flake8_torchperf.findings.match import chain_ends_with, find, rule_for
from flake8_torchperf.findings.message import (
    LONGEST_EXPRESSION,
    format_message,
    shorten,
    with_reason,
)
from flake8_torchperf.findings.rule import ChainStep, Match, Rule
from flake8_torchperf.judgement.heat import Cost, Heat, Level
from flake8_torchperf.judgement.judged_site import JudgedSite, Loop
from flake8_torchperf.syntax.positions import Snippet
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import NONE, Reason, Tensor, Union

# The loop that the heat is of: `for grad in grads:` at line 3.
ROUNDS = ast.parse("for grad in grads: pass").body[0]
LOOP = Heat(Level.LOOP, Cause.LOOP, node=ROUNDS, cost=Cost.STEP)
HOT = Heat(Level.STEP, Cause.STEP_ROOT, "forward", cost=Cost.STEP)
COLD = Heat(Level.COLD, Cause.NOTHING, "f")


def rule(
    code: str, *matches: Match, priority: int = 50, scope: str = "hot", **more: object
) -> Rule:
    fields: dict[str, object] = {
        "code": code,
        "name": code.lower(),
        "family": "tests",
        "scope": scope,
        "priority": priority,
        "message": "{expression} {where}: {instead}",
        "instead": {"default": "do better"},
        "matches": matches,
        "hot": (),
        "path": Path("x.md"),
        "own": True,
    }
    return Rule(**{**fields, **more})  # type: ignore[arg-type]


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def snippet(text: str) -> Snippet:
    """A file that holds one expression."""
    return Snippet(text.splitlines(keepends=True), [expression(text)])


def tensor(*chain: str, dtype: str = "float", device: str = "unknown") -> Tensor:
    return Tensor(Reason("a test says so"), dtype, device, None, chain)


def site(
    kind: SiteKind = SiteKind.HOST_READ,
    operation: str = "item",
    node: ast.AST | None = None,
    operand: object = None,
    heat: Heat = LOOP,
    **more: object,
) -> JudgedSite:
    node = node or expression("t.item()")
    return JudgedSite(kind, operation, node, operand, heat, **more)  # type: ignore[arg-type]


def codes(sites: list[JudgedSite], *rules: Rule, scope: Level = Level.COLD) -> list[str]:
    return [raw.rule.code for raw in find(sites, index(rules), scope)]


READ = Match(SiteKind.HOST_READ)


def test_the_highest_priority_reports_a_site() -> None:
    rules = rule("TPF101", READ, priority=20), rule("TPF203", READ, priority=90)
    assert codes([site()], *rules) == ["TPF203"]


def test_two_sites_on_one_node_give_one_finding() -> None:
    node = expression("total + t.item()")
    sites = [site(node=node), site(SiteKind.HOST_ACCUMULATION, node=node)]
    total = rule("TPF206", Match(SiteKind.HOST_ACCUMULATION), priority=85)
    assert codes(sites, rule("TPF101", READ, priority=20), total) == ["TPF206"]
    assert codes(sites[::-1], rule("TPF101", READ, priority=20), total) == ["TPF206"]


def test_equal_expressions_are_two_causes() -> None:
    assert codes([site(), site()], rule("TPF101", READ)) == ["TPF101", "TPF101"]


def test_a_covered_node_is_silent_whatever_its_priority() -> None:
    read = expression("t.item()")
    cover = site(SiteKind.BRANCH, "if", expression("a and t.item()"), covers=(read,))
    branch = rule("TPF301", Match(SiteKind.BRANCH), priority=10)
    assert codes([cover, site(node=read)], rule("TPF101", READ, priority=90), branch) == ["TPF301"]


def test_a_site_that_nothing_reports_covers_nothing() -> None:
    read = expression("t.item()")
    cover = site(SiteKind.BRANCH, "if", covers=(read,))
    assert codes([cover, site(node=read)], rule("TPF101", READ)) == ["TPF101"]


def test_of_two_that_cover_each_other_the_higher_priority_stays() -> None:
    a, b = expression("a"), expression("b")
    sites = [
        site(SiteKind.BRANCH, node=a, covers=(b,)),
        site(SiteKind.HOST_READ, node=b, covers=(a,)),
    ]
    low = rule("TPF301", Match(SiteKind.BRANCH), priority=10)
    assert codes(sites, low, rule("TPF101", READ, priority=20)) == ["TPF101"]


def test_covers_reach_through_a_dropped_site() -> None:
    a, b, c = (expression(name) for name in "abc")
    sites = [site(node=a, covers=(b,)), site(node=b, covers=(c,)), site(node=c)]
    assert codes(sites, rule("TPF101", READ)) == ["TPF101"]


@pytest.mark.parametrize(
    ("page", "match_heat", "option", "reported"),
    [
        # (page's scope, match's heat, --torchperf-scope) -> heat levels that are reported
        ("hot", None, Level.LOOP, [LOOP]),
        ("hot", None, Level.HOT, [HOT, LOOP]),
        ("hot", None, Level.COLD, [COLD, HOT, LOOP]),
        ("loop", None, Level.LOOP, [LOOP]),
        ("loop", None, Level.HOT, [LOOP]),
        ("loop", None, Level.COLD, [COLD, HOT, LOOP]),
        ("all", None, Level.LOOP, []),
        ("all", None, Level.HOT, []),
        ("all", None, Level.COLD, [COLD, HOT, LOOP]),
        ("hot", Level.LOOP, Level.COLD, [LOOP]),
        ("hot", Level.HOT, Level.COLD, [HOT, LOOP]),
        ("hot", Level.HOT, Level.LOOP, [LOOP]),
        ("hot", Level.COLD, Level.HOT, [COLD, HOT, LOOP]),
        ("hot", Level.COLD, Level.LOOP, [LOOP]),
    ],
)
def test_scope(page: str, match_heat: Level | None, option: Level, reported: list[Heat]) -> None:
    catalogue = index([rule("TPF101", Match(SiteKind.HOST_READ, heat=match_heat), scope=page)])
    heats = [COLD, HOT, LOOP]
    found = find([site(heat=heat) for heat in heats], catalogue, option)
    assert [raw.site.heat for raw in found] == reported


def test_a_colder_rule_still_reports_what_a_hotter_one_leaves() -> None:
    special = rule("TPF203", Match(SiteKind.HOST_READ, heat=Level.LOOP), priority=90)
    rules = special, rule("TPF101", READ, priority=20)
    assert codes([site(heat=HOT), site(heat=LOOP)], *rules) == ["TPF101", "TPF203"]


@pytest.mark.parametrize(
    ("match", "found"),
    [
        (Match(SiteKind.HOST_READ, frozenset({"item"})), True),
        (Match(SiteKind.HOST_READ, frozenset({"float"})), False),
        (Match(SiteKind.HOST_READ, operation_globs=("it*",)), True),
        (Match(SiteKind.HOST_READ, operation_globs=("math.*",)), False),
        (Match(SiteKind.FORMAT), False),
        (Match(SiteKind.HOST_READ, traits=frozenset({"compiled"})), True),
        (Match(SiteKind.HOST_READ, traits=frozenset({"vmap"})), False),
        (Match(SiteKind.HOST_READ, not_traits=frozenset({"compiled"})), False),
        (Match(SiteKind.HOST_READ, dtype="bool"), True),
        (Match(SiteKind.HOST_READ, dtype="float"), False),
        (Match(SiteKind.HOST_READ, not_device="host"), True),
        (Match(SiteKind.HOST_READ, not_device="device"), False),
    ],
)
def test_conditions_of_a_match(match: Match, found: bool) -> None:
    operand = tensor("isinf", "any", dtype="bool", device="device")
    read = site(operand=operand, traits=frozenset({"compiled"}))
    assert codes([read], rule("TPF101", match)) == (["TPF101"] if found else [])


def test_the_tensor_of_an_optional_operand_is_asked() -> None:
    operand = Union((tensor("isinf", dtype="bool"), NONE))
    match = Match(SiteKind.HOST_READ, dtype="bool", chain=(ChainStep(frozenset({"isinf"})),))
    assert codes([site(operand=operand)], rule("TPF101", match)) == ["TPF101"]


def test_without_an_operand_only_negative_conditions_hold() -> None:
    assert codes([site()], rule("TPF101", Match(SiteKind.HOST_READ, not_device="host"))) == [
        "TPF101"
    ]
    assert codes([site()], rule("TPF101", Match(SiteKind.HOST_READ, dtype="bool"))) == []


IS = ChainStep(frozenset({"isinf", "isnan"}))
ANY = ChainStep(frozenset({"any", "all"}))
MAYBE = ChainStep(frozenset({"gt", "ne"}), optional=True)


@pytest.mark.parametrize(
    ("chain", "found"),
    [
        (("isinf", "any"), True),
        (("add", "isnan", "all"), True),
        (("isinf", "any", "gt"), True),
        (("isinf", "any", "gt", "gt"), False),
        (("isinf", "any", "add"), False),
        (("isinf", "view", "any"), False),
        (("any", "isinf"), False),
        (("any",), False),
        ((), False),
    ],
)
def test_chains_are_compared_from_their_end(chain: tuple[str, ...], found: bool) -> None:
    assert chain_ends_with(chain, (IS, ANY, MAYBE)) is found


READ_ITEM = (SiteKind.HOST_READ, "item")
IF = (SiteKind.BRANCH, "if")


@pytest.mark.parametrize(
    ("kind_and_operation", "chain", "heat", "code"),
    [
        (READ_ITEM, ("isinf", "any"), LOOP, "TPF203"),
        (READ_ITEM, ("isinf", "any"), HOT, "TPF101"),
        (READ_ITEM, ("norm",), LOOP, "TPF101"),
        (IF, ("isnan", "any"), LOOP, "TPF203"),
        (IF, ("isfinite", "all"), HOT, "TPF301"),
        (IF, ("isnan", "sum", "gt"), LOOP, "TPF203"),
        ((SiteKind.BRANCH, "while"), ("gt",), LOOP, "TPF302"),
        ((SiteKind.BRANCH, "assert"), ("all",), HOT, "TPF303"),
        ((SiteKind.BRANCH, "not"), ("all",), HOT, "TPF304"),
        ((SiteKind.BRANCH, "not"), ("isfinite", "all"), LOOP, "TPF203"),
        ((SiteKind.HOST_ACCUMULATION, "item"), ("mean",), LOOP, "TPF206"),
        ((SiteKind.TENSOR_ITERATION, "for"), (), HOT, "TPF201"),
        ((SiteKind.NUMBER_USE, "slice"), ("max",), HOT, "TPF107"),
    ],
)
def test_our_own_rules(
    kind_and_operation: tuple[SiteKind, str], chain: tuple[str, ...], heat: Heat, code: str
) -> None:
    kind, operation = kind_and_operation
    found = rule_for(
        site(kind, operation, operand=tensor(*chain), heat=heat), load_catalogue(), Level.HOT
    )
    assert found is not None
    assert found.code == code


def test_our_own_rules_rank_from_special_to_general() -> None:
    order = ["203", "206", "204", "201", "103", "105", "107", "104", "102", "101"]
    ranks = {rule.code: rule.priority for rule in load_catalogue().rules}
    priorities = [ranks[f"TPF{number}"] for number in order]
    assert priorities == sorted(priorities, reverse=True)
    assert len(set(priorities)) == len(priorities)
    assert ranks["TPF204"] == ranks["TPF205"] == ranks["TPF202"]
    assert ranks["TPF302"] == ranks["TPF303"] > ranks["TPF301"] > ranks["TPF304"]


def test_message_is_one_line_with_every_placeholder() -> None:
    file = snippet("torch.isinf(\n    grad\n).any().item()")
    node = file.nodes[0]
    grad = next(n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == "grad")
    written = rule(
        "TPF203",
        message="{expression} by {operation} of {operand} in {function}, {loop}, {where}: {instead}",
        instead={"default": "no", "item": "use {operand}", "math.*": "torch"},
    )
    read = site(
        node=node,
        operand_node=grad,
        function="f",
        loops=(Loop(3, "for", "grads", ROUNDS), Loop(4, "for", "grad")),
    )
    assert format_message(written, read, file) == (
        "torch.isinf(grad).any().item() by item of grad in f, the loop at line 4 over grad, "
        "per step (loop at line 3): use grad"
    )
    assert written.advice("math.sqrt") == "torch"


def test_message_in_cold_code_leaves_no_hole() -> None:
    file = snippet("t.item()")
    cold = site(node=file.nodes[0], heat=COLD)
    assert format_message(rule("TPF101", READ), cold, file) == "t.item() per call (in f): do better"


def test_braces_of_the_source_are_not_placeholders() -> None:
    file = snippet('f"{loss} {where}"')
    message = format_message(rule("TPF104", READ), site(node=file.nodes[0], heat=HOT), file)
    assert message == 'f"{loss} {where}" per step (in forward): do better'


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ('x["a , b"].item()', 'x["a , b"].item()'),
        ("x[i + 1 :].item()", "x[i + 1 :].item()"),
        ("f(n := x.item())", "f(n := x.item())"),
        ("f(\n    x\n    .item()\n)", "f(x.item())"),
        ("losses.argmax(\n    dim=0,\n    keepdim=True,\n).item()",
         "losses.argmax(dim=0, keepdim=True,).item()"),
    ],
)  # fmt: skip
def test_the_code_in_a_message_stands_as_it_was_written(code: str, told: str) -> None:
    file = snippet(code)
    message = format_message(rule("TPF101", READ), site(node=file.nodes[0], heat=COLD), file)
    assert message == f"{told} per call (in f): do better"


def test_long_expressions_are_cut_in_the_middle() -> None:
    cut = shorten("a" * 40 + "b" * 40)
    assert len(cut) == LONGEST_EXPRESSION
    assert cut.startswith("aaaa")
    assert cut.endswith("bbbb")
    assert "ab" not in cut
    assert shorten("short") == "short"


def test_comments_inside_an_expression_are_left_out() -> None:
    file = snippet("f(  # why\n    # more\n    a,\n)")
    assert file.code(file.nodes[0]) == "f(a,)"


def test_reason_is_appended() -> None:
    assert (
        with_reason("m", "annotation of\n `x`, line 3") == "m (reason: annotation of `x`, line 3)"
    )
    assert with_reason("m", "") == "m"
