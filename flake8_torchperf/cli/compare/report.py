"""A comparison of runs as text for a terminal, as JSON, and as Markdown for a pull request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flake8_torchperf.findings.message import printable
from flake8_torchperf.history.run_comparison import COPIES, Comparison, CostChange
from flake8_torchperf.history.run_record import COSTS

_TITLES = {"waits": "waits", "on_host": "reads on the host alone"}
_COPIES = {
    "waiting_transfers": "waiting",
    "non_blocking_transfers": "non-blocking",
    "seeming_transfers": "look asynchronous",
}
_TICKS = re.compile(r"`+")


def as_text(comparison: Comparison) -> str:
    """Return the changes by kind, then the sums."""
    return "\n".join(_text(comparison)) + "\n"


def _text(comparison: Comparison) -> Iterator[str]:
    for note in comparison.notes:
        yield f"note: {note}"
    for cost, title in _TITLES.items():
        for how, changes in comparison.by(cost).items():
            yield f"{title}: {how} ({len(changes)})"
            for one in changes:
                numbers = f"{_number(one.before[cost])} -> {_number(one.after[cost])}"
                yield f"  {_place(one)}: {numbers}: {printable(one.text)}"
    copies = [one for one in comparison.changes if one.copies]
    if copies:
        yield f"transfers: changed ({len(copies)})"
        for one in copies:
            yield f"  {_place(one)}: {_copied(one)}: {printable(one.text)}"
    yield _sums(comparison)


def _place(change: CostChange) -> str:
    return printable(f"{change.path}:{change.line} {change.function}")


def _copied(change: CostChange) -> str:
    return f"{_split(change.before)} -> {_split(change.after)}"


def _split(costs: Mapping[str, float]) -> str:
    """Return how many copies waited and how many did not: "48 waiting", "none"."""
    parts = [f"{_number(costs[one])} {_COPIES[one]}" for one in COPIES if costs[one]]
    return ", ".join(parts) or "none"


def _sums(comparison: Comparison) -> str:
    before, after = comparison.before, comparison.after
    unit = f" per {comparison.unit}" if comparison.unit else ""
    return (
        f"torchperf compare{unit}: {_number(before['waits'])} -> {_number(after['waits'])} waits; "
        f"reads on the host alone {_number(before['on_host'])} -> {_number(after['on_host'])}; "
        f"transfers {_split(before)} -> {_split(after)}"
    )


def _number(times: float) -> str:
    """Return a count, or a mean with at most two decimals, of which none is lost to 0."""
    if times == int(times):
        return f"{int(times):,}"
    return f"{times:,.2f}" if times >= 0.01 else f"{times:.1g}"


def as_json(comparison: Comparison) -> str:
    """Return the comparison as data."""
    data: dict[str, Any] = {
        "unit": comparison.unit or "run",
        "notes": list(comparison.notes),
        "totals": {
            cost: {"before": comparison.before[cost], "after": comparison.after[cost]}
            for cost in COSTS
        },
        "statements": [
            {
                "path": one.path,
                "line": one.line,
                "function": one.function,
                "text": one.text,
                "waits": one.of("waits"),
                "on_host": one.of("on_host"),
                "transfers": one.copies,
                "before": dict(one.before),
                "after": dict(one.after),
            }
            for one in comparison.changes
            if one.copies or one.of("waits") or one.of("on_host")
        ],
    }
    return json.dumps(data, indent=1) + "\n"


def as_markdown(comparison: Comparison) -> str:
    """Return the comparison for a comment in a pull request."""
    return "\n".join(_markdown(comparison)) + "\n"


def _markdown(comparison: Comparison) -> Iterator[str]:
    unit = f" per {comparison.unit}" if comparison.unit else ""
    before, after = comparison.before, comparison.after
    yield f"### torchperf: {_number(before['waits'])} → {_number(after['waits'])} waits{unit}"
    yield ""
    for note in comparison.notes:
        yield f"> {_cell(note)}"
        yield ""
    rows = [
        f"| {how} | {_cell(_place(one))} | {_number(one.before['waits'])} | "
        f"{_number(one.after['waits'])} | {_code(one.text)} |"
        for how, changes in comparison.by("waits").items()
        for one in changes
    ]
    yield from _table("| waits | where | before | after | statement |", rows)
    rows = [
        f"| {_cell(_place(one))} | {_split(one.before)} | {_split(one.after)} | {_code(one.text)} |"
        for one in comparison.changes
        if one.copies
    ]
    yield from _table("| transfers | before | after | statement |", rows)
    yield (
        f"Reads on the host alone: {_number(before['on_host'])} → {_number(after['on_host'])}. "
        f"Transfers: {_split(before)} → {_split(after)}."
    )


def _table(head: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield head
        yield "|" + "---|" * (head.count("|") - 1)
        yield from rows
        yield ""


def _cell(text: str) -> str:
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", printable(text))


def _code(text: str) -> str:
    """Return source text as code in a cell, where a pipe ends the cell even in code."""
    longest = max((len(one) for one in _TICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{printable(text).replace('|', chr(92) + '|')}{space}{fence}"


REPORTS: Mapping[str, Callable[[Comparison], str]] = {
    "text": as_text,
    "json": as_json,
    "markdown": as_markdown,
}
