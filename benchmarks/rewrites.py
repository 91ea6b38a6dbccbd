"""Count the findings in real libraries that fixes rewrite, and check the new texts.

    python benchmarks/rewrites.py PATH ... [--scope hot] [--unsafe] [--out FILE] [--shown N]

Fixes every Python file below the paths in memory, in scope all if none is named, and prints, by
code, the findings, those with a safe fix and those with any fix. Each new text must parse, and a
second run must change nothing; failures are listed, and the exit status is 1. `--out` writes the
changes as JSON lines, `--shown` prints N of them, drawn at random, in readable form.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.fixes.engine.rounds import Choice, fixed
from flake8_torchperf.fixes.engine.source_files import NotWrittenError, read_source
from flake8_torchperf.linter import lint
from flake8_torchperf.options import SCOPE_LEVELS, Options
from flake8_torchperf.plugin import TorchPerfPlugin

EVERY = frozenset(("safe", "unsafe", "suggested"))
SEED = 26


@dataclass
class Result:
    """The findings, changes and failures of a run over files."""

    found: Counter[str] = field(default_factory=Counter)
    safe: Counter[str] = field(default_factory=Counter)
    fixable: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    changes: list[dict[str, object]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    files: int = 0


def main() -> int:
    """Fix the files and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--scope", choices=SCOPE_LEVELS, default="all")
    parser.add_argument("--unsafe", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shown", type=int, default=0)
    arguments = parser.parse_args()
    options = Options(scope=SCOPE_LEVELS[arguments.scope])
    TorchPerfPlugin.use(options)
    started, result = time.monotonic(), Result()
    for path in _files(arguments.paths):
        _fix(path, Choice(unsafe=arguments.unsafe), options, result)
    print_table(result)
    print(f"\n{result.files} files, {time.monotonic() - started:.0f} s")
    for failure in result.failures:
        print(failure)
    if arguments.out:
        lines = [json.dumps(change) for change in result.changes]
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    random.Random(SEED).shuffle(result.changes)
    for change in result.changes[: arguments.shown]:
        print(f"\n{change['file']}:{change['line']} {change['code']} {change['fix']}")
        print(change["diff"])
    return 1 if result.failures else 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _fix(path: Path, choice: Choice, options: Options, result: Result) -> None:
    """Fix one file and check that the new text parses and that a second run changes nothing."""
    try:
        source = read_source(str(path))
        ast.parse(source.text)
    except (NotWrittenError, SyntaxError, ValueError, RecursionError):
        return

    def find(text: str) -> list[Finding]:
        return lint(text, str(path), options, EVERY)

    result.files += 1
    try:
        done = fixed(source.text, find, choice)
        if done.text != source.text:
            ast.parse(done.text)
            if fixed(done.text, find, choice).text != done.text:
                result.failures.append(f"{path}: a second run changes something")
    except Exception as error:  # the benchmark measures whether any error occurs
        result.failures.append(f"{path}: {type(error).__name__}: {error}")
        return
    if done.open:
        result.failures.append(f"{path}: the rounds did not end")
    for finding in done.first:
        result.found[finding.code] += 1
        result.safe[finding.code] += any(edit.safety == SAFE for edit in finding.edits)
        result.fixable[finding.code] += bool(finding.edits)
    for change in done.changes:
        result.made[change.finding.code] += 1
        result.changes.append(
            {
                "file": str(path),
                "line": change.finding.line,
                "code": change.finding.code,
                "fix": change.edit.name,
                "safety": change.edit.safety,
                "diff": _diff(source.text, done.text, change.finding),
            }
        )


def _diff(before: str, after: str, finding: Finding) -> str:
    """Return the part of a file's diff about one line, or all of it after the first round."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    told: list[str] = []
    for tag, low, high, start, end in matcher.get_opcodes():
        if tag != "equal" and low <= finding.end_line and high >= finding.line - 1:
            told += [f"- {row}" for row in old[low:high]]
            told += [f"+ {row}" for row in new[start:end]]
    return "\n".join(told)


def print_table(result: Result) -> None:
    """Print the findings by code, as Markdown."""
    print("| code | findings | safe fix | any fix | made |\n|---|---|---|---|---|")
    columns = (result.found, result.safe, result.fixable, result.made)
    for code in sorted(result.found):
        print(f"| {code} | " + " | ".join(f"{column[code]:,}" for column in columns) + " |")
    totals = [column.total() for column in columns]
    print("| all | " + " | ".join(f"{total:,}" for total in totals) + " |")
    if totals[0]:
        print(f"\nsafe fix: {totals[1] / totals[0]:.1%}, any fix: {totals[2] / totals[0]:.1%}")


if __name__ == "__main__":
    raise SystemExit(main())
