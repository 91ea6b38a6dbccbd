"""The changes of safe fixes, for reports that offer them: findings in, replaced lines out.

Imports libcst, but only where a finding has a safe fix.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING

from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.fixes.engine.source_files import NotWrittenError, read_source
from flake8_torchperf.linter import lint
from flake8_torchperf.plugin import TorchPerfPlugin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.cli.report.reported import Reported


@dataclass(frozen=True)
class Replacement:
    """``text`` for the lines from ``line`` to before ``end_line``; ``name`` is the fix's.

    ``diff`` is the same change as a unified diff, with three lines of context.
    """

    line: int
    end_line: int
    text: str
    name: str
    diff: str


def replacements(found: Iterable[Reported]) -> dict[Reported, Replacement]:
    """Return the change of each finding that has a safe fix, each as if it were the only one."""
    by_file: dict[str, list[Reported]] = {}
    for one in found:
        if one.told.fixable and not is_notebook(one.path):
            by_file.setdefault(one.path, []).append(one)
    made: dict[Reported, Replacement] = {}
    for path, ones in by_file.items():
        made.update(_in_file(path, ones))
    return made


def _in_file(path: str, ones: Iterable[Reported]) -> dict[Reported, Replacement]:
    from flake8_torchperf.fixes.engine.apply import apply_edits

    try:
        text = read_source(path).text
    except NotWrittenError:
        return {}  # standard input, or a deleted file: the finding is reported without its fix
    planned = {(f.line, f.column, f.code): f for f in lint(text, path, TorchPerfPlugin.options())}
    made: dict[Reported, Replacement] = {}
    for one in ones:
        finding = planned.get((one.told.line, one.told.column, one.code))
        edits = [] if finding is None else [e for e in finding.edits if e.safety == SAFE]
        applied = apply_edits(text, edits[:1])
        if applied.edits:
            made[one] = _changed(path, text, applied.text, applied.edits[0].name)
    return made


def _changed(path: str, before: str, after: str, name: str) -> Replacement:
    """Return the one run of lines in which two texts differ."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    text = "".join(new[start : len(new) - end])
    diff = "".join(unified_diff(old, new, f"a/{path}", f"b/{path}"))
    return Replacement(start + 1, len(old) - end + 1, text, name, diff)
