"""The conditions of `torchperf run --fail-on`: read from text, and held against a report's data.

Lines with `# noqa` are in no count, but for host reads per step, which are known only as a sum.
Knows nothing about torch.
"""

from __future__ import annotations

import linecache
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flake8_torchperf.history.run_comparison import COPIES
from flake8_torchperf.runtime.api.free_lines import allowed_lines
from flake8_torchperf.runtime.counting.counts import counted, mean_in_words

Report = Mapping[str, Any]

CONDITION_COUNTS = ("waits", "host_reads", "transfers", "graph_breaks")
"""The counts that a condition may name."""
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_TERM = re.compile(r"(\w+)\s*(/\s*step)?\s*([<>=!]+)\s*(\d+(?:\.\d+)?|\.\d+)")
_FORM = 'write them as "waits>0" or "waits/step>=1 and transfers>10"'
_NO_STEPS = "the run counted no steps; ask for them with --warmup N or --step NAME"
# The costs of a statement after the warm-up that make up a count.
_COSTS = {"waits": ("waits",), "transfers": COPIES}


class ConditionError(ValueError):
    """A condition that can't be read or decided. The text is one line."""


@dataclass(frozen=True)
class Term:
    """One comparison: ``waits/step > 0``."""

    name: str
    per_step: bool
    comparison: str
    number: float

    def holds(self, value: float) -> bool:
        """True if the comparison is true of a value."""
        return _COMPARISONS[self.comparison](value, self.number)


@dataclass(frozen=True)
class Condition:
    """Comparisons that fail a run if all of them hold; ``text`` is what the user wrote."""

    text: str
    terms: tuple[Term, ...]


def read_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Return the conditions in the values of the option. Raises ConditionError.

    A comma separates conditions, `and` joins the comparisons of one.
    """
    return tuple(_condition(part.strip()) for text in texts for part in text.split(","))


def _condition(text: str) -> Condition:
    if not text:
        raise ConditionError(f"a condition is empty; {_FORM}")
    return Condition(text, tuple(_term(one.strip()) for one in re.split(r"\band\b", text)))


def _term(text: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None:
        raise ConditionError(f"{text!r} is no condition; {_FORM}")
    name, step, comparison, number = found.groups()
    if name not in CONDITION_COUNTS:
        raise ConditionError(f"{name!r} is not counted; name one of {', '.join(CONDITION_COUNTS)}")
    if comparison not in _COMPARISONS:
        known = " ".join(_COMPARISONS)
        raise ConditionError(f"{comparison!r} in {text!r} is no comparison; use one of {known}")
    return Term(name, step is not None, comparison, float(number))


def add_gate(report: dict[str, Any], texts: Iterable[str]) -> None:
    """Add to a report, as ``gate``, which of the conditions fail the run, and for which lines.

    Raises ConditionError for a condition per step where the report has no steps.
    """
    report["gate"] = []
    report["gate"] = _rows(read_conditions(texts), report)


def _rows(conditions: Sequence[Condition], report: Report) -> list[dict[str, Any]]:
    rows = []
    for one in conditions:
        values = [_value(term, report) for term in one.terms]
        failed = all(term.holds(value) for term, value in zip(one.terms, values, strict=True))
        told = [
            {"name": term.name, "per_step": term.per_step, "value": value}
            for term, value in zip(one.terms, values, strict=True)
        ]
        lines = [line for term in one.terms for line in _lines(term, report)] if failed else []
        rows.append({"condition": one.text, "failed": failed, "values": told, "lines": lines})
    return rows


def _value(term: Term, report: Report) -> int | float:
    if term.per_step:
        steps = _steps(report)
        exempt = _exempt(term, report) if term.name in _COSTS else 0
        return float(steps["per_step"][term.name]) - exempt / int(steps["counted"])
    if term.name == "waits":
        return sum(int(row["times"]) for row in _spent(term, report) if not _is_exempt(row))
    return int(report["totals"][term.name]) - _exempt(term, report)


def _exempt(term: Term, report: Report) -> int:
    return sum(int(row["times"]) for row in _spent(term, report) if _is_exempt(row))


def _is_exempt(row: Mapping[str, Any]) -> bool:
    return row["line"] in allowed_lines(row["path"])


def _steps(report: Report) -> Mapping[str, Any]:
    """Return the steps of a report. Raises ConditionError if it counted none."""
    steps: Mapping[str, Any] | None = report.get("steps")
    if steps is None or steps.get("per_step") is None:
        raise ConditionError((steps or {}).get("note") or _NO_STEPS)
    return steps


def _lines(term: Term, report: Report) -> list[dict[str, Any]]:
    """Return the lines that a count consists of, those with most first.

    ``per_step`` is each line's mean, None for a count of the whole run.
    """
    spent = list(_spent(term, report))
    found = [row for row in spent if not _is_exempt(row)]
    if not _is_by_statement(term):
        rest = int(report["totals"][term.name]) - sum(row["times"] for row in spent)
        if rest > 0:
            found.append({"path": "", "line": 0, "times": rest, "source": "", "name": term.name})
    # Graph breaks are known per step only in all; their line holds those of the whole run.
    steps = int(_steps(report)["counted"]) if term.per_step and term.name in _COSTS else 0
    for row in found:
        row["per_step"] = row["times"] / steps if steps else None
    return sorted(found, key=lambda row: (-row["times"], row["path"], row["line"]))


def _is_by_statement(term: Term) -> bool:
    return term.name == "waits" or (term.per_step and term.name in _COSTS)


def _spent(term: Term, report: Report) -> Iterator[dict[str, Any]]:
    if _is_by_statement(term):
        return _by_statement(term, report)
    return _by_line(term.name, report)


def _by_statement(term: Term, report: Report) -> Iterator[dict[str, Any]]:
    for file in report["files"]:
        # Statements of one line share their costs.
        for row in {row["line"]: row for row in reversed(file["statements"])}.values():
            costs = row["counted"] if term.per_step else row
            if times := sum(costs[name] for name in _COSTS[term.name]):
                yield _line(file["path"], row["line"], times, row["text"], term.name)


def _by_line(name: str, report: Report) -> Iterator[dict[str, Any]]:
    for file in report["files"]:
        for number, counts in file["lines"].items():
            if times := counts.get(name, 0):
                source = linecache.getline(file["path"], int(number)).strip()
                yield _line(file["path"], int(number), times, source, name)


def _line(path: str, line: int, times: int, source: str, name: str) -> dict[str, Any]:
    return {"path": path, "line": line, "times": times, "source": source, "name": name}


def gate_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the text of a gate: a line for each condition, and the lines behind one that fails."""
    for row in rows:
        values = ", ".join(
            _told(value["value"], value["name"], per_step=value["per_step"])
            for value in row["values"]
        )
        yield f"gate: {'failed by' if row['failed'] else 'passed'} {row['condition']}: {values}"
        for line in row["lines"]:
            each = line["per_step"]
            count = line["times"] if each is None else each
            times = _told(count, line["name"], per_step=each is not None)
            if line["path"]:
                yield f"  {line['path']}:{line['line']}: {times}: {line['source']}"
            elif line["name"] == "graph_breaks":
                yield f"  {times}, counted for the whole run; --trace FILE tells where"
            else:
                yield f"  {times} in no line of yours"


def _told(value: float, name: str, *, per_step: bool) -> str:
    if not per_step:
        return counted(int(value), name)
    return f"{mean_in_words(value, name, digits=4)} per step"
