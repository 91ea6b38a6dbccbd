"""Findings, reasons and fixes for the page that lints in the browser: a text in, JSON out.

The page's worker imports this module under Pyodide. Findings are those of ``torchperf check``.
Lines count from 1; columns count from 0 in UTF-16 units, as the editor counts them.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.cli.check_files import Needs
from flake8_torchperf.cli.check_options import Face
from flake8_torchperf.cli.check_run import read_options
from flake8_torchperf.cli.fix.work import FixWork
from flake8_torchperf.cli.fix.work import Linted as LintedFile
from flake8_torchperf.findings.documentation import read_documentation
from flake8_torchperf.fixes.engine.rounds import Choice
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.prefilter import says
from flake8_torchperf.project.files import split_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.findings.finding import Edit, Finding

# The name under which the text is linted. There is no such file.
NAME = "pasted.py"
FACE = Face("torchperf try", "", "", local=False)
# Fixes of every safety are planned: each is shown with its safety.
CHOICE = Choice(unsafe=True, suggested=None)
# Of a text that needs no analysis.
NO_TORCH = (
    "The code does not mention torch, so there is nothing to look for: does it lack `import torch`?"
)
_UTF16 = "utf-16-le"
_UNIT = 2  # bytes


def findings(text: str, scope: str, confidence: str, preview: bool) -> str:
    """Return the findings in a text as JSON, or why it can't be analysed and in which line.

    ``hint`` says what a text lacks that has nothing to find. Raises SystemExit if a setting is
    invalid.
    """
    linted, found = _linted(text, scope, confidence, preview)
    lines = split_lines(text)
    told = {
        "problem": linted.problem,
        "line": linted.line,
        "hint": "" if linted.problem or says(text) or not text.strip() else NO_TORCH,
        "findings": [_finding(one, lines) for one in found],
    }
    return json.dumps(told)


@functools.lru_cache(maxsize=1)
def _linted(
    text: str, scope: str, confidence: str, preview: bool
) -> tuple[LintedFile, list[Finding]]:
    """Lint a text; the last one is kept, since a click on a finding asks of the same text."""
    linted = LintedFile(NAME, _work(scope, confidence, preview))
    return linted, list(linted.find(text))


def why(text: str, place: str, scope: str, confidence: str, preview: bool) -> str:
    """Return as JSON what ``torchperf why`` says of a finding, and its fixes with their diffs.

    ``place`` is the finding's ``id``. A diff is empty where the fix can't be made in this text.
    """
    from flake8_torchperf.cli.why.account import account_of

    work = _work(scope, confidence, preview)
    for finding in _linted(text, scope, confidence, preview)[1]:
        if _id(finding) == place:
            account = account_of(text, NAME, finding.line, work.ours)
            told = asdict(account)
            told["fixes"] = [_fix(text, finding, edit) for edit in finding.edits]
            return json.dumps(told)
    return json.dumps(None)


def _accept(_options: argparse.Namespace) -> None:
    """Accept the options unchanged: they name no path."""


@functools.cache
def _work(scope: str, confidence: str, preview: bool) -> FixWork:
    """Return the settings for linting."""
    words = ["--isolated", f"--torchperf-scope={scope}", f"--torchperf-confidence={confidence}"]
    words += ["--torchperf-preview"] if preview else []
    _, options = read_options(words, "try", _accept, FACE)
    ours = replace(TorchPerfPlugin.options(), cache=False)
    return FixWork(options, ours, Needs(syntax=True), choice=CHOICE)


def _id(finding: Finding) -> str:
    return f"{finding.code}:{finding.line}:{finding.column}"


def _finding(finding: Finding, lines: Sequence[str]) -> dict[str, Any]:
    return {
        "id": _id(finding),
        "code": finding.code,
        "rule": finding.rule.name,
        "page": finding.rule.path.stem,
        "message": finding.message,
        "severity": finding.rule.severity,
        "cost": finding.site.heat.cost.value,
        "line": finding.line,
        "column": _units(lines, finding.line, finding.column),
        "endLine": finding.end_line,
        "endColumn": _units(lines, finding.end_line, finding.end_column),
        "fixes": [{"safety": edit.safety, "name": edit.name} for edit in finding.edits],
    }


def _units(lines: Sequence[str], line: int, column: int) -> int:
    """Convert a column from characters to UTF-16 units."""
    return len(lines[line - 1][:column].encode(_UTF16)) // _UNIT


def _fix(text: str, finding: Finding, edit: Edit) -> dict[str, str]:
    changes = {one.name: one.changes for one in read_documentation(finding.rule).fixes}
    return {
        "safety": edit.safety,
        "name": edit.name,
        "changes": changes.get(edit.name, ""),
        "diff": _diff(text, edit),
    }


def _diff(text: str, edit: Edit) -> str:
    """Return the diff of one fix; "" where it can't be made."""
    from flake8_torchperf.fixes.engine.apply import apply_edits  # imports libcst

    applied = apply_edits(text, [edit])
    if not applied.edits:
        return ""
    before, after = text.splitlines(), applied.text.splitlines()
    return "\n".join(difflib.unified_diff(before, after, NAME, NAME, lineterm="", n=2))
