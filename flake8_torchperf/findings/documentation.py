"""Reads the part of a rule page that linting does not need: documentation, evidence, examples.

Used by `torchperf explain`, by `confirm` and by the tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from flake8_torchperf.findings.page import (
    PageError,
    PageText,
    check_keys,
    choice,
    read_text,
    string,
    strings,
)
from flake8_torchperf.findings.rule import SAFE, Rule

SECTIONS = (
    "What it does",
    "Why it is slow",
    "Bad",
    "Good",
    "When to ignore it",
    "References",
)
# The section in which a page shows the code before and after each of its fixes.
FIXES = "Fixes"
# A repository's own page documents a house rule, which need not be about speed or cite sources.
REPOSITORY_SECTIONS = ("What it does", "Bad", "Good")
COUNTERS = (
    "host_reads",
    "dispatches",
    "transfers",
    "dynamic_shapes",
    "allocations",
    "graph_breaks",
    "synchronisations",
    "device_syncs",
    "iterations",
    "copies_to_device",
    "early_reads",
    # Measured by the example runner itself: graphs that torch.compile made, functions it gave up
    # on, calls of torch.compile, kernels that Triton compiled, and autograd nodes that the returned
    # tensor keeps alive.
    "compiled_graphs",
    "skipped_frames",
    "compile_calls",
    "kernel_compiles",
    "autograd_nodes",
)
LAWS = ("call", "element")
SHOWS = ("line", "use")
EVIDENCE_KEYS = ("counter", "law", "at_least", "good_at_most", "needs", "shows")
EXAMPLE_KEYS = ("call", "inputs", "setup", "host")
FIX_KEYS = ("changes", "allows", "call", "inputs", "setup", "left")
# The words of `allows`: the changes that a fix may make if it is not safe. rules/README.md
# explains them, and `fix --verify` checks that a fix makes no others.
ALLOWANCES = frozenset(
    {
        "tensor-for-number", "dtype", "other-error",
        "other-gradients", "other-random-numbers", "other-if-not-finite",
    }
)  # fmt: skip
MARKER = re.compile(r"#\s*(TPF[0-9]{3}(?:\s*,\s*TPF[0-9]{3})*)\s*$")


@dataclass(frozen=True, slots=True)
class EvidenceSpec:
    """The counts that confirm a finding of a rule.

    ``law`` "call": the bad example counts at least ``at_least`` of ``counter`` per call and the
    good one at most ``good_at_most``. ``law`` "element": the count grows with the input size n, by
    ``at_least`` or more per unit of n in the bad example and not at all in the good one. ``needs``
    "cuda" marks evidence that no other machine can show. ``shows`` "use": the evidence appears
    where the object made on the reported line is used, in the loop over a loader or the step of an
    optimizer.
    """

    counter: str
    law: str
    at_least: float
    good_at_most: float = 0.0
    needs: str = ""
    shows: str = "line"


@dataclass(frozen=True, slots=True)
class Example:
    """The two snippets of a page, and how to run them.

    ``call`` is called with ``inputs``, evaluated with n and torch in scope. ``host`` are the inputs
    that stay on the host while the others are made on a device. ``bad_line`` and ``good_line`` are
    the 1-based lines of the page where the snippets begin.
    """

    call: str
    inputs: Mapping[str, str] = field(hash=False)
    setup: str
    bad: str
    good: str
    bad_line: int
    good_line: int
    host: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FixExample:
    """One fix of a page: its effect ("" if safe), and the code before and after it.

    ``call``, ``inputs`` and ``setup`` say how to run both, as in `Example`. ``left`` is the number
    of findings left in the code after the fix. ``allows`` gives the words of `ALLOWANCES` for the
    effects that ``changes`` describes in prose.
    """

    name: str
    safety: str
    changes: str
    before: str
    after: str
    call: str
    inputs: Mapping[str, str] = field(hash=False)
    setup: str = ""
    left: int = 0
    allows: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Documentation:
    """The part of a page that people and tests read; ``sections`` keep the page's order.

    A repository's page may leave out ``evidence`` and ``example``; our own never do.
    """

    rule: Rule
    sections: Mapping[str, str] = field(hash=False)
    evidence: EvidenceSpec | None
    example: Example | None
    fixes: tuple[FixExample, ...] = ()


def read_documentation(rule: Rule) -> Documentation:
    """Read the whole page of ``rule``. Raises `PageError`."""
    return parse_documentation(PageText(rule.path, read_text(rule.path)), rule)


def parse_documentation(text: PageText, rule: Rule) -> Documentation:
    """Check the tail and the body of a page. Raises `PageError`."""
    data = text.toml(text.tail, text.tail_line)
    check_keys(text, data, ("evidence", "example", "fix"))
    sections, lines = _sections(text, rule)
    for table in ("evidence", "example"):
        if rule.own and table not in data:
            raise PageError(text.path, 1, f"[{table}] is missing; add it to the front matter")
    evidence = _evidence(text, data["evidence"]) if "evidence" in data else None
    example = _example(text, data["example"], sections, lines) if "example" in data else None
    fixes = _fix_examples(text, rule, data.get("fix", {}), sections, example)
    return Documentation(rule, sections, evidence, example, fixes)


@cache
def evidence_of(rule: Rule) -> EvidenceSpec | None:
    """Return the evidence that confirms a finding of this rule; None if its page declares none."""
    text = PageText(rule.path, read_text(rule.path))
    data = text.toml(text.tail, text.tail_line)
    return _evidence(text, data["evidence"]) if "evidence" in data else None


def expected_findings(snippet: str) -> list[tuple[int, str]]:
    """Return (line, code) for every ``# TPFxxx`` marker that ends a line, in source order."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(snippet.splitlines(), start=1):
        marker = MARKER.search(line)
        if marker:
            found.extend((number, code.strip()) for code in marker[1].split(","))
    return found


def _sections(text: PageText, rule: Rule) -> tuple[dict[str, str], dict[str, int]]:
    """Return the body's ``## `` sections, and the page's line on which the text of each begins."""
    title = f"# {rule.name} ({rule.code})"
    sections: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    current: list[str] = []
    fenced = titled = False
    for number, line in enumerate(text.body.splitlines(), start=text.body_line):
        if line.startswith("```"):
            fenced = not fenced
        if fenced or not line.startswith("#") or (line.startswith("### ") and FIXES in sections):
            current.append(line)
        elif line == title:
            titled = True
        elif line.startswith("## "):
            current = sections.setdefault(line[3:].strip(), [])
            lines[line[3:].strip()] = number + 1
        else:
            problem = f"heading {line!r}; write {title!r} once and '## ' for sections"
            raise PageError(text.path, number, problem)
    if not titled:
        raise PageError(text.path, text.body_line, f"no title; write {title!r}")
    for name in SECTIONS if rule.own else REPOSITORY_SECTIONS:
        if not "".join(sections.get(name, ())).strip():
            problem = f"section '## {name}' is missing or empty; write it"
            raise PageError(text.path, lines.get(name, text.body_line), problem)
    return {name: "\n".join(body).strip() for name, body in sections.items()}, lines


def _snippet(
    text: PageText, name: str, sections: Mapping[str, str], lines: Mapping[str, int]
) -> tuple[str, int]:
    """Return the one fenced Python block of a section, and the page's line on which it begins."""
    page = text.body.splitlines()
    start = lines[name] - text.body_line
    begin: int | None = None
    for index in range(start, len(page)):
        if begin is None and page[index].startswith("## "):
            break
        if begin is None and page[index].strip() == "```python":
            begin = index + 1
        elif begin is not None and page[index].startswith("```"):
            if sections[name].count("```") != 2:
                problem = f"section '## {name}' holds several code blocks; keep one"
                raise PageError(text.path, lines[name], problem)
            return "\n".join(page[begin:index]) + "\n", text.body_line + begin
    problem = f"section '## {name}' has no finished ```python block; add the example"
    raise PageError(text.path, lines[name], problem)


def _number(text: PageText, table: Mapping[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise text.error(f"{key!r} must be a number, 0 or more", key, "evidence")
    return float(value)


def _evidence(text: PageText, table: Any) -> EvidenceSpec:
    check_keys(text, table, EVIDENCE_KEYS, "evidence")
    for key in ("counter", "law"):
        if key not in table:
            raise text.error(f"[evidence] needs {key!r}", "counter", "evidence")
    return EvidenceSpec(
        counter=choice(text, table, "counter", COUNTERS, "evidence"),
        law=choice(text, table, "law", LAWS, "evidence"),
        at_least=_number(text, table, "at_least", 1.0),
        good_at_most=_number(text, table, "good_at_most", 0.0),
        needs=choice(text, table, "needs", ("", "cuda"), "evidence") if "needs" in table else "",
        shows=choice(text, table, "shows", SHOWS, "evidence") if "shows" in table else "line",
    )


def _example(
    text: PageText, table: Any, sections: Mapping[str, str], lines: Mapping[str, int]
) -> Example:
    check_keys(text, table, EXAMPLE_KEYS, "example")
    if "call" not in table:
        raise text.error("[example] needs 'call': the function to run", "call", "example")
    inputs = table.get("inputs", {})
    if not isinstance(inputs, dict):
        problem = "'inputs' must be a table, such as inputs = { x = \"torch.randn(n)\" }"
        raise text.error(problem, "inputs", "example")
    bad, bad_line = _snippet(text, "Bad", sections, lines)
    good, good_line = _snippet(text, "Good", sections, lines)
    return Example(
        call=string(text, table, "call", "example"),
        inputs={name: string(text, inputs, name, "example") for name in inputs},
        setup=string(text, table, "setup", "example") if "setup" in table else "",
        bad=bad,
        good=good,
        bad_line=bad_line,
        good_line=good_line,
        host=_host_inputs(text, table, inputs),
    )


def _fix_examples(
    text: PageText,
    rule: Rule,
    tables: Mapping[str, Any],
    sections: Mapping[str, str],
    example: Example | None,
) -> tuple[FixExample, ...]:
    """Return the example of each fix of the page, from the section ``## Fixes``."""
    names = [name for _, name in rule.fixes]
    for name in tables:
        if name not in names:
            raise text.error(f"[fixes] names no {name!r}", name, "fix")
    parts = re.split(r"(?m)^### (.+)$", sections.get(FIXES, ""))
    shown = {title.strip(): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    if list(shown) != names:
        problem = f"'## {FIXES}' needs a '### ' for each name in [fixes], in that order"
        raise PageError(text.path, 1, problem)
    return tuple(
        _fix_example(text, safety, name, tables.get(name, {}), shown[name], example)
        for safety, name in rule.fixes
    )


def _fix_example(
    text: PageText,
    safety: str,
    name: str,
    table: Mapping[str, Any],
    body: str,
    example: Example | None,
) -> FixExample:
    at = f"fix.{name}"
    check_keys(text, table, FIX_KEYS, at)
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", body)
    if len(blocks) != 2:
        problem = f"'### {name}' needs two ```python blocks: the code before and after the fix"
        raise PageError(text.path, 1, problem)
    changes = string(text, table, "changes", at) if "changes" in table else ""
    if bool(changes) == (safety == SAFE):
        problem = "write 'changes' for a fix that is not safe, and for no other"
        raise text.error(problem, "changes", at)
    allows = frozenset(strings(text, table, "allows", at))
    if safety == SAFE and allows:
        raise text.error("a safe fix allows nothing; leave 'allows' out", "allows", at)
    if unknown := sorted(allows - ALLOWANCES):
        names = ", ".join(sorted(ALLOWANCES))
        raise text.error(f"'allows' has no word {unknown[0]!r}; write {names}", "allows", at)
    inputs = table.get("inputs", example.inputs if example else {})
    return FixExample(
        name=name,
        safety=safety,
        changes=changes,
        before=blocks[0],
        after=blocks[1],
        call=string(text, table, "call", at)
        if "call" in table
        else example.call
        if example
        else "",
        inputs=dict(inputs),
        setup=string(text, table, "setup", at)
        if "setup" in table
        else (example.setup if example else ""),
        left=int(table.get("left", 0)),
        allows=allows,
    )


def _host_inputs(
    text: PageText, table: Mapping[str, Any], inputs: Mapping[str, Any]
) -> tuple[str, ...]:
    names = strings(text, table, "host", "example")
    for name in names:
        if name not in inputs:
            raise text.error(f"'host' names {name!r}, which is no input", "host", "example")
    return names
