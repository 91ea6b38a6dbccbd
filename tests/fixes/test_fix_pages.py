"""Every fix that a page names does what the page shows, and the result lints clean and runs."""

from __future__ import annotations

import ast
import difflib
from typing import Any

import pytest
from fixing import SHOWN, outcome, unmarked

from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.documentation import (
    FixExample,
    expected_findings,
    read_documentation,
)
from flake8_torchperf.findings.rule import SAFE, Rule
from flake8_torchperf.fixes.engine.registry import load
from flake8_torchperf.fixes.engine.rounds import Choice
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

RULES = [rule for rule in load_catalogue().rules if rule.fixes]
CASES = [(rule, fix) for rule in RULES for fix in read_documentation(rule).fixes]
every_fix = pytest.mark.parametrize(
    ("rule", "fix"), CASES, ids=[f"{rule.code}-{fix.name}" for rule, fix in CASES]
)
SIZES = (0, 1, 7)


def choice_of(rule: Rule, fix: FixExample) -> Choice:
    """What a person asks for who wants this fix."""
    if fix.safety == SAFE:
        return Choice()
    return Choice(unsafe=True, suggested=frozenset((rule.code,)))


@every_fix
def test_its_module_is_there(rule: Rule, fix: FixExample) -> None:
    module = load(fix.safety, fix.name)
    assert callable(module.plan)
    assert callable(module.rewrite)


@every_fix
def test_the_text_before_becomes_the_text_after(rule: Rule, fix: FixExample) -> None:
    assert fix.before != fix.after
    done = outcome(unmarked(fix.before), choice_of(rule, fix), Options(), rule.code)
    shown = "\n".join(difflib.unified_diff(fix.after.splitlines(), done.text.splitlines()))
    assert done.text == fix.after, shown
    assert {change.edit.name for change in done.changes} == {fix.name}
    again = outcome(fix.after, choice_of(rule, fix), Options(), rule.code)
    assert not again.changes


@every_fix
def test_what_is_before_is_marked_and_what_is_after_is_clean(rule: Rule, fix: FixExample) -> None:
    marked = expected_findings(fix.before)
    assert marked
    found = lint(fix.before, "page.py", Options())
    told = [(f.line, f.code) for f in found]
    assert set(marked) <= set(told)
    after = lint(fix.after, "page.py", Options())
    rows = {f.row or id(f) for f in after}  # a row of waits is one to a reader
    assert len(rows) == fix.left < len(told), [f.message for f in after]


@every_fix
def test_a_safe_fix_is_marked_in_the_message(rule: Rule, fix: FixExample) -> None:
    found = [f for f in lint(fix.before, "page.py", Options()) if f.code == rule.code]
    names = {edit.name for f in found for edit in f.edits}
    assert (fix.name in names) == (fix.safety == SAFE)
    for f in found:
        assert f.message.endswith(" [fix]") == any(edit.safety == SAFE for edit in f.edits)
        assert len(f.message) <= 140


@every_fix
def test_both_texts_run(rule: Rule, fix: FixExample) -> None:
    torch = pytest.importorskip("torch")
    for n in SIZES:
        before, after = (_called(torch, fix, text, n) for text in (fix.before, fix.after))
        if fix.safety == SAFE:
            _same(torch, before, after)


def _called(torch: Any, fix: FixExample, text: str, n: int) -> Any:
    """What the example returns, or the exception it raises, on the same numbers each time."""
    torch.manual_seed(0)
    names: dict[str, Any] = {"torch": torch, "n": n}
    exec(compile(fix.setup, "setup", "exec"), names)
    exec(compile(ast.parse(text), "example", "exec"), names)
    values = {name: eval(code, names) for name, code in fix.inputs.items()}
    try:
        return names[fix.call](**values), values
    except (RuntimeError, ValueError, IndexError) as error:
        return type(error).__name__


def _same(torch: Any, before: Any, after: Any) -> None:
    """Results and what became of the inputs, to the last bit; gradients are those of both."""
    if isinstance(before, str):
        assert before == after
    else:
        torch.testing.assert_close(before, after, rtol=0, atol=0, equal_nan=True)


def test_a_fix_stands_on_few_pages() -> None:
    names = [fix.name for _, fix in CASES]
    assert names
    assert SHOWN.safeties == {"safe", "unsafe", "suggested"}
