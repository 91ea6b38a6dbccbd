"""The report of ``torchperf run`` as one HTML page that opens offline.

First the statements that cost most, in a table that sorts, then the source of the functions that
hold them or a finding. The template escapes everything in the file reports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

from flake8_torchperf.runtime.counting.counts import Counts, counted, human_time, total
from flake8_torchperf.runtime.html_page import render
from flake8_torchperf.runtime.workload.callers.report import in_words as ways_in_words
from flake8_torchperf.runtime.workload.copies.report import remark as copy_remark
from flake8_torchperf.runtime.workload.device_reports import waits
from flake8_torchperf.runtime.workload.gate.allowed import allowed_remark
from flake8_torchperf.runtime.workload.matching import FileReport, Missed
from flake8_torchperf.runtime.workload.summary import MISSED, missed_group, shown_path
from flake8_torchperf.syntax.statement_lines import Span, Statements

SHOWN = 25
"""The most statements in the table: those that cost most."""
# Of code at module level, the lines around a statement that are shown with it.
_CONTEXT = 2
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class _Cost:
    """The counts of one statement, with its file and its lines."""

    file: FileReport
    span: Span
    counts: Counts


def page(data: Mapping[str, Any], files: Sequence[FileReport]) -> str:
    """Return the page's text."""
    views = {one.path: Statements("\n".join(one.source)) for one in files}
    costs = [cost for one in files for cost in _costs(one, views[one.path])]
    dearest = sorted(costs, key=_order, reverse=True)[:SHOWN]
    shown = [_file(one, views[one.path], dearest, data) for one in files]
    return render(
        "run.html",
        run=data,
        dearest=[_row(one) for one in dearest],
        statements=len(costs),
        timed=any(one.counts.seconds for one in dearest),
        waited=any(waits(one.counts) for one in dearest),
        dispatched=any(one.counts.dispatches for one in dearest),
        ranked=any(one.file.shares for one in dearest),
        files=[one for one in shown if one["parts"] or one["note"]],
    )


def _order(cost: _Cost) -> tuple[float, int, int]:
    return cost.counts.seconds, waits(cost.counts) + cost.counts.host_reads, cost.counts.dispatches


def _costs(file: FileReport, statements: Statements) -> Iterator[_Cost]:
    spans = sorted({statements.span(line) for line in file.counts})
    for first, last in spans:
        lines = (file.counts[n] for n in range(first, last + 1) if n in file.counts)
        yield _Cost(file, (first, last), total(lines))


def _row(cost: _Cost) -> Row:
    file, (first, last), counts = cost.file, cost.span, cost.counts
    path = shown_path(file.path)
    shares = file.shares.get(cost.span)
    kinds = [one.verdict for one in file.judged if one.span == cost.span]
    kinds += [_kind(one) for one in file.missed if one.span == cost.span]
    return {
        "place": f"{path}:{first}",
        "link": _link(f"{path}:{first}"),
        "text": " ".join(line.strip() for line in file.source[first - 1 : last]),
        "kinds": list(dict.fromkeys(kinds)),
        "seconds": counts.seconds,
        "time": human_time(counts.seconds) if counts.seconds else "",
        "waits": waits(counts),
        "host_reads": counts.host_reads,
        "dispatches": counts.dispatches,
        "slowest": shares.slowest if shares else "",
        "spread": shares.spread if shares else 0.0,
        "spread_time": human_time(shares.spread) if shares else "",
    }


def _link(anchor: str) -> str:
    # Saving the page escapes text that is not UTF-8, in the anchor as in its link.
    return "#" + quote(anchor, errors="backslashreplace")


def _file(
    file: FileReport, statements: Statements, dearest: Iterable[_Cost], data: Mapping[str, Any]
) -> Row:
    remarks = _remarks(file, data)
    for row in data["looks_asynchronous"]:
        if row["path"] == shown_path(file.path):
            kind = "looks asynchronous"
            anchor = f"{row['path']}:{row['line']}:{row['kind']}"
            remarks.setdefault(row["line"], []).append(_remark(kind, copy_remark(row), anchor))
    for row in data["allowed"]:
        if row["path"] == shown_path(file.path):
            anchor = f"{row['path']}:{row['line']}:allowed"
            text = _remark("allowed", allowed_remark(row), anchor)
            remarks.setdefault(row["line"], []).append(text)
    spans = [one.span for one in file.judged] + [one.span for one in file.missed]
    spans += [one.span for one in dearest if one.file is file]
    lines = {*remarks, *(line for first, last in spans for line in range(first, last + 1))}
    path = shown_path(file.path)
    parts = [
        {
            "name": name,
            "lines": [_line(file, path, n, remarks.get(n, [])) for n in range(first, last + 1)],
        }
        for name, (first, last) in _parts(statements, lines, len(file.source))
    ]
    return {"path": path, "note": file.note, "parts": parts}


def _parts(statements: Statements, lines: Iterable[int], end: int) -> list[tuple[str, Span]]:
    """Return the functions that hold these lines, and the surroundings of those that none holds."""
    functions: set[tuple[Span, str]] = set()
    loose: list[Span] = []
    for line in sorted(lines):
        span, name = _function(statements.tree, line)
        if name:
            functions.add((span, name))
            continue
        first, last = max(1, line - _CONTEXT), min(end, line + _CONTEXT)
        if loose and first <= loose[-1][1] + 1:
            first = loose.pop()[0]
        loose.append((first, last))
    # A line of a nested function is also a line of the outer one: show it once.
    inner = {
        one
        for one in functions
        for other in functions
        if one != other and other[0][0] <= one[0][0] and one[0][1] <= other[0][1]
    }
    parts = [(span, name) for span, name in functions - inner]
    return [(name, span) for span, name in sorted([*parts, *((one, "") for one in loose)])]


def _function(tree: ast.Module | None, line: int) -> tuple[Span, str]:
    """Return the outermost function around a line, with the classes that hold it: "Net.forward"."""
    names: list[str] = []
    body: Sequence[ast.stmt] = tree.body if tree else ()
    while True:
        around = next((one for one in body if _first(one) <= line <= (one.end_lineno or 0)), None)
        if isinstance(around, ast.ClassDef):
            names.append(around.name)
            body = around.body
        elif isinstance(around, _FUNCTION):
            span = (_first(around), around.end_lineno or around.lineno)
            return span, ".".join([*names, around.name])
        else:
            return (line, line), ""


def _first(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _line(file: FileReport, path: str, number: int, remarks: list[Row]) -> Row:
    counts = file.counts.get(number, Counts())
    return {
        "number": number,
        "anchor": f"{path}:{number}",
        "ran": number in file.executed,
        "counts": counts,
        "time": human_time(counts.seconds) if counts.seconds else "",
        "text": file.source[number - 1],
        "remarks": remarks,
    }


def _remarks(file: FileReport, data: Mapping[str, Any]) -> dict[int, list[Row]]:
    remarks: dict[int, list[Row]] = {}
    path = shown_path(file.path)
    rows = [row for key in ("confirmed", *MISSED) for row in data[key] if row["path"] == path]
    callers = {tuple(row["statement"]): ways_in_words(row["callers"]) for row in rows}
    for judged in file.judged:
        finding = judged.finding
        text = f"{finding.code} {finding.message}"
        if judged.verdict == "confirmed":
            waited = f", waited {human_time(judged.waited)}" if judged.waited else ""
            text += f" [{counted(judged.count, judged.counter)}{waited}]"
        elif judged.reason:
            text += f" [{judged.reason}]"
        anchor = f"{path}:{finding.line}:{finding.column + 1}:{finding.code}"
        led = callers.get(judged.span, ()) if judged.verdict == "confirmed" else ()
        remarks.setdefault(finding.line, []).append(_remark(judged.verdict, text, anchor, led))
    for missed in file.missed:
        space = " " if missed.inferred else "_"  # a device reports operations: __setitem__
        kinds = ", ".join(f"{kind.replace('_', space)} {n}x" for kind, n in missed.kinds.items())
        how = "(inferred)" if missed.inferred else "(reported by the device)"
        kind, line = _kind(missed), missed.span[0]
        anchor = f"{path}:{line}:{kind.replace(' ', '-')}"
        remark = _remark(kind, f"{kinds} {how}", anchor, callers.get(missed.span, ()))
        remarks.setdefault(line, []).append(remark)
    return remarks


def _remark(kind: str, text: str, anchor: str, callers: Sequence[str] = ()) -> Row:
    return {
        "kind": kind, "style": kind.split()[0], "text": text, "anchor": anchor,
        "link": _link(anchor), "callers": callers,
    }  # fmt: skip


def _kind(missed: Missed) -> str:
    return {"inside_calls": "inside a call"}.get(
        group := missed_group(missed), group.replace("_", " ")
    )
