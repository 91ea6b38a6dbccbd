"""Where the linter's time goes: CPU seconds per stage, in total and for the slowest files.

Every file is linted in this one process, without flake8; building the file's own tree, which flake8
does in any case, is not counted. A stage's time does not include that of a stage inside it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

from perf.running import at_least_one, existing, python_files

# CPU seconds by stage.
Spent: TypeAlias = "defaultdict[str, float]"

# The functions that a stage starts in, by module.
STAGES = {
    "suspects": [
        ("flake8_torchperf.linter", "read_module"),
        ("flake8_torchperf.linter", "compiled_in"),
        ("flake8_torchperf.linter", "nominate"),
        ("flake8_torchperf.linter", "with_compiled"),
        ("flake8_torchperf.judgement.review.selection", "Selection.chosen"),
        ("flake8_torchperf.judgement.review.selection", "Selection.module_level"),
        ("flake8_torchperf.judgement.frequency.call_graph", "Calls.callers_first"),
    ],
    "parse": [
        ("flake8_torchperf.project.lazy_index", "_parsed"),
        ("flake8_torchperf.interpreter.stated_types.annotations", "parse_expression_text"),
    ],
    "index": [("flake8_torchperf.project.mapped_files", "_read_file")],
    "interpret": [
        ("flake8_torchperf.interpreter.driver.function_analysis", "interpret_function"),
        ("flake8_torchperf.interpreter.driver.function_analysis", "interpret_module"),
    ],
    "judgement": [("flake8_torchperf.judgement.judge", "judge")],
    "positions": [
        ("flake8_torchperf.findings.report", "locate"),
        ("flake8_torchperf.findings.report", "format_message"),
    ],
    "rules": [("flake8_torchperf.findings.report", "report")],
    "start": [
        ("flake8_torchperf.findings.catalogue", "load_catalogue"),
        ("flake8_torchperf.knowledge.table", "load"),
    ],
}
REST = "rest"


@dataclass(frozen=True)
class Stages:
    """The files that are linted, and how many of the slowest are shown."""

    paths: Sequence[Path]
    every: int
    scope: str
    files: int

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """The options of the command line."""
        parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="files or trees")
        parser.add_argument("--every", type=int, default=1, metavar="N", help="every n-th file")
        parser.add_argument("--scope", choices=("loop", "hot", "all"), default="hot")
        parser.add_argument("--files", type=int, default=10, help="dearest shown (default: 10)")

    def measure(self) -> int:
        """Lint every file in this process and print."""
        existing(self.paths)
        at_least_one(every=self.every)
        taken, findings = lint_all(python_files(self.paths, self.every), self.scope, Clock())
        report(taken, findings, self.files)
        return 0


@dataclass
class Clock:
    """CPU seconds per stage; the innermost stage that runs gets the time."""

    spent: Spent = field(default_factory=lambda: defaultdict(float))
    running: list[str] = field(default_factory=lambda: [REST])
    since: float = field(default_factory=time.process_time)

    def turn(self) -> None:
        """Give the time since the last turn to the stage that ran."""
        now = time.process_time()
        self.spent[self.running[-1]] += now - self.since
        self.since = now

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, its time counted for a stage."""

        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self.running.append(stage)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self.running.pop()

        return wrapper


def install(clock: Clock) -> None:
    """Put the clock around the functions that stages start in."""
    for stage, places in STAGES.items():
        for module_name, name in places:
            owner: Any = importlib.import_module(module_name)
            *outer, last = name.split(".")
            for part in outer:
                owner = getattr(owner, part)
            setattr(owner, last, clock.timed(stage, getattr(owner, last)))


def lint_all(files: Sequence[Path], scope: str, clock: Clock) -> tuple[dict[Path, Spent], int]:
    """Lint every file; return the time per file and stage, and the number of findings."""
    from flake8_torchperf import linter
    from flake8_torchperf.options import SCOPE_LEVELS, Options
    from flake8_torchperf.prefilter import concerns
    from flake8_torchperf.project.files import split_lines

    install(clock)
    options = Options(scope=SCOPE_LEVELS[scope])
    taken: dict[Path, Spent] = {}
    findings = 0
    for file in files:
        text = file.read_bytes().decode("utf-8-sig", errors="replace")
        lines = split_lines(text)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        clock.spent, clock.since = defaultdict(float), time.process_time()
        if concerns(lines, str(file)):
            findings += len(linter.lint_tree(tree, lines, str(file), options))
        clock.turn()
        taken[file] = clock.spent
    return taken, findings


def report(taken: dict[Path, Spent], findings: int, shown: int) -> None:
    """Print a line per stage, and one for each of the slowest files."""
    stages = (*STAGES, REST)
    total = {stage: sum(spent[stage] for spent in taken.values()) for stage in stages}
    whole = sum(total.values())
    lines = sum(file.read_bytes().count(b"\n") for file in taken)
    print(f"{len(taken)} files, {lines} lines, {findings} findings, {whole:.2f} CPU s")
    for stage in stages:
        share, each = total[stage] / whole, 1e6 * total[stage] / max(1, lines)
        print(f"  {stage:12}{total[stage]:8.3f} s {share:6.1%} {each:8.1f} us a line")
    print(f"the {shown} dearest files, CPU ms:")
    dearest = sorted(taken, key=lambda file: -sum(taken[file].values()))[:shown]
    print("  " + "".join(f"{stage:>11}" for stage in ("all", *stages)))
    for file in dearest:
        spent = taken[file]
        cells = (sum(spent.values()), *(spent[stage] for stage in stages))
        print("  " + "".join(f"{1000 * cell:11.1f}" for cell in cells), f" {file}")
