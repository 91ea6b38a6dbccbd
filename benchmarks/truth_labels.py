"""Labels: which statements of a package ran, and which synchronised, in which way. Read, recorded.

The form is that of the labels this project is measured with: `executed` {file: [line or [first,
last]]}, then for each of sync, host, extra, iter and fill {file: [{span, kinds, ops, numel}]}.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow
from flake8_torchperf.runtime.workload.launch import run_workload
from flake8_torchperf.syntax.statement_lines import Span, Statements

CATEGORIES = ("sync", "host", "extra", "iter", "fill")

Place: TypeAlias = "tuple[str, int, int]"
"""A statement: its file relative to the package, first line, last line."""

Rows: TypeAlias = "dict[str, list[dict[str, Any]]]"


@dataclass(frozen=True)
class Labels:
    """The labels of one package, as recorded."""

    package: str
    version: str
    executed: Mapping[str, Sequence[Span]]
    categories: Mapping[str, Rows]

    def places(self, category: str) -> dict[Place, frozenset[str]]:
        """Return the statements of a category with their kinds."""
        return {
            (file, row["span"][0], row["span"][1]): frozenset(row["kinds"])
            for file, rows in self.categories.get(category, {}).items()
            for row in rows
        }

    def executed_places(self) -> set[Place]:
        """Return the statements that ran."""
        return {(file, *span) for file, spans in self.executed.items() for span in spans}

    def count_executed(self) -> int:
        """Return the number of statements that ran."""
        return sum(len(spans) for spans in self.executed.values())

    def save(self, path: Path) -> None:
        """Write the labels, one file of the package a line."""
        data: dict[str, Any] = {"package": self.package, "version": self.version}
        data["executed"] = {
            file: [list(span) if span[0] != span[1] else span[0] for span in spans]
            for file, spans in sorted(self.executed.items())
        }
        data.update(self.categories)
        path.write_text(_by_file(data), encoding="utf-8")


def _by_file(data: Mapping[str, Any]) -> str:
    parts = []
    for key, value in data.items():
        if isinstance(value, dict):
            files = [
                f"{json.dumps(name)}: {json.dumps(value[name], separators=(',', ':'))}"
                for name in sorted(value)
            ]
            parts.append(f'"{key}": {{\n' + ",\n".join(files) + "\n}")
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def load_labels(path: Path) -> Labels:
    """Read a labels file. Ends the program in one line if there is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        executed = {
            file: [(one[0], one[1]) if isinstance(one, list) else (one, one) for one in spans]
            for file, spans in data["executed"].items()
        }
        categories = {name: data.get(name, {}) for name in CATEGORIES}
        return Labels(data["package"], data["version"], executed, categories)
    except OSError as error:
        problem = f"{error.strerror}; name a file that --record has written"
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        problem = "these are no labels; name a file that --record has written"
    raise SystemExit(f"truth: {path}: {problem}")


def package_folder(package: str) -> Path:
    """Return where a package is installed. Ends the program in one line if it is not."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        advice = "install it, or to score name its folder"
        raise SystemExit(f"truth: no package {package} can be imported here; {advice}")
    return Path(next(iter(spec.submodule_search_locations)))


def record(package: str, workload: Sequence[str]) -> tuple[Labels, int]:
    """Run a workload (`-m MODULE ARGS` or `SCRIPT ARGS`); return labels and its exit status.

    The lighter level counts no dispatches, but it still sees how statements wait.
    """
    folder, version = package_folder(package), _version(package)  # or the end, before it has run
    is_module = workload[0] == "-m"
    script, *arguments = workload[1:] if is_module else workload
    outcome = run_workload(script, arguments, is_module=is_module, owners=[package], level="reads")
    if outcome.observed is None:
        raise SystemExit(f"truth: the workload ended with {outcome.returncode} and no results")
    executed, categories = labelled(folder, outcome.observed)
    return Labels(package, version, executed, categories), outcome.returncode


def labelled(folder: Path, observed: Observed) -> tuple[dict[str, list[Span]], dict[str, Rows]]:
    """Return the statements that a run executed, and its waits by category and statement.

    Only statements in functions count: the others run once, at import.
    """
    root = folder.resolve()
    views: dict[str, Statements] = {}
    executed: dict[str, list[Span]] = {}
    for name, lines in observed.executed.items():
        path = Path(os.path.realpath(name))
        if path.is_relative_to(root) and path.is_file():
            file = path.relative_to(root).as_posix()
            views[file] = Statements(path.read_text(encoding="utf-8"))
            spans = _in_functions(views[file], lines)
            if spans:
                executed[file] = spans
    categories: dict[str, Rows] = {name: {} for name in CATEGORIES}
    for place, category, rows in _grouped(observed.syncs, root, views):
        file, first, last = place
        categories[category].setdefault(file, []).append(_row((first, last), rows))
        if (first, last) not in executed.setdefault(file, []):
            executed[file] = sorted([*executed[file], (first, last)])
    return executed, categories


def _in_functions(view: Statements, lines: Iterable[int]) -> list[Span]:
    found = {view.at(line) for line in lines}
    return sorted({one.span for one in found if one is not None and one.function})


def _grouped(
    rows: Sequence[SyncRow], root: Path, views: Mapping[str, Statements]
) -> list[tuple[Place, str, list[SyncRow]]]:
    groups: dict[tuple[Place, str], list[SyncRow]] = {}
    for row in rows:
        path = Path(os.path.realpath(row.path))
        file = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
        statement = views[file].at(row.line) if file in views else None
        if statement is not None and statement.function and row.category in CATEGORIES:
            groups.setdefault(((file, *statement.span), row.category), []).append(row)
    return [(place, category, own) for (place, category), own in sorted(groups.items())]


def _row(span: Span, rows: Sequence[SyncRow]) -> dict[str, Any]:
    kinds: dict[str, int] = {}
    for row in rows:
        kinds[row.kind] = kinds.get(row.kind, 0) + row.times
    return {
        "span": list(span),
        "kinds": dict(sorted(kinds.items())),
        "ops": sorted({row.operation for row in rows}),
        "numel": max(row.numel for row in rows),
    }


def _version(package: str) -> str:
    names = importlib.metadata.packages_distributions().get(package, [package])
    try:
        return importlib.metadata.version(names[0])
    except importlib.metadata.PackageNotFoundError:
        advice = "install it, for labels hold for one version, e.g. with pip install -e"
        raise SystemExit(f"truth: package {package} is not installed; {advice}") from None


def agreement(theirs: Labels, ours: Labels) -> str:
    """Say how far two recordings of the same package agree, in lines for a reader.

    Only statements that ran in both are compared: which tests ran is not the question.
    """
    both = theirs.executed_places() & ours.executed_places()
    lines = [
        f"executed: {len(theirs.executed_places())} and {len(ours.executed_places())} statements, "
        f"{len(both)} in both"
    ]
    for category in CATEGORIES:
        first = {place: own for place, own in theirs.places(category).items() if place in both}
        second = {place: own for place, own in ours.places(category).items() if place in both}
        shared = first.keys() & second.keys()
        same = sum(first[place] == second[place] for place in shared)
        union = len(first.keys() | second.keys())
        lines.append(
            f"{category}: {len(first)} and {len(second)}, {len(shared)} in both "
            f"({len(shared) / union if union else 1:.2f} of either), {same} with the same kinds"
        )
        lines += [
            f"  only first:  {_told(place, first)}" for place in sorted(first.keys() - shared)
        ]
        lines += [
            f"  only second: {_told(place, second)}" for place in sorted(second.keys() - shared)
        ]
    return "\n".join(lines)


def _told(place: Place, own: Mapping[Place, frozenset[str]]) -> str:
    return f"{place[0]}:{place[1]} [{','.join(sorted(own[place]))}]"
