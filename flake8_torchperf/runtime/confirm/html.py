"""Writes verdicts as one HTML page that opens offline: annotated source and a plot per function.

Needs jinja2, which escapes everything that is shown.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flake8_torchperf import __version__
from flake8_torchperf.runtime.confirm.report import (
    Circumstances,
    ConfirmedFinding,
    isolation_notes,
    summary,
)
from flake8_torchperf.runtime.confirm.scaling import Law
from flake8_torchperf.runtime.html_page import render as fill

WIDTH, HEIGHT, MARGIN = 460, 220, 48
CURVE_POINTS = 40


@dataclass(frozen=True)
class Line:
    """One source line with its counts at the largest size."""

    number: int
    text: str
    dispatches: int
    host_reads: int
    codes: str


def render(all_judged: Sequence[ConfirmedFinding], session: Circumstances) -> str:
    """Return the whole page."""
    groups: dict[int, list[ConfirmedFinding]] = {}
    for one in all_judged:
        groups.setdefault(id(one.group), []).append(one)
    return fill(
        "confirm.html",
        version=__version__,
        session=session,
        notes=isolation_notes(session),
        summary=summary(all_judged),
        functions=[_function(few) for few in groups.values()],
    )


def _function(judged: list[ConfirmedFinding]) -> dict[str, Any]:
    group = judged[0].group
    shown = next((one.verdict for one in judged if one.verdict.probes), judged[0].verdict)
    return {
        "path": str(group.path),
        "name": group.function,
        "verdicts": [
            {
                "line": one.target.finding.line,
                "code": one.target.finding.code,
                "message": one.target.finding.message,
                "status": one.verdict.status,
                "reason": one.verdict.reason,
            }
            for one in judged
        ],
        "inputs": dict(shown.inputs),
        "size": shown.probes[-1]["size"] if shown.probes else 0,
        "lines": _lines(judged, shown.probes[-1]["lines"] if shown.probes else {}),
        "plot": _plot(shown.probes, shown.laws.get("dispatches")),
    }


def _lines(judged: list[ConfirmedFinding], spent: Mapping[str, Mapping[str, int]]) -> list[Line]:
    group = judged[0].group
    codes: dict[int, list[str]] = {}
    for one in judged:
        codes.setdefault(one.target.finding.line, []).append(one.target.finding.code)
    made: list[Line] = []
    for number in range(group.first_line, group.last_line + 1):
        counts = spent.get(str(number), {})
        made.append(
            Line(
                number,
                linecache.getline(str(group.path), number).rstrip(),
                counts.get("dispatches", 0),
                counts.get("host_reads", 0),
                " ".join(dict.fromkeys(codes.get(number, ()))),
            )
        )
    return made


def _plot(probes: Sequence[Mapping[str, Any]], law: Law | None) -> dict[str, Any] | None:
    """Return coordinates for the SVG: dispatches against size, measured and as the law has it."""
    if not probes or law is None:
        return None
    widest = max(one["size"] for one in probes)
    highest = max(1, *(one["dispatches"] for one in probes), law.at(widest))

    def place(n: float, count: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * n / widest
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * count / highest
        return round(x, 1), round(y, 1)

    steps = (widest * i / CURVE_POINTS for i in range(CURVE_POINTS + 1))
    curve = [place(n, max(0.0, _height(law, n))) for n in steps]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "margin": MARGIN,
        "points": [
            {"x": x, "y": y, "n": one["size"], "count": one["dispatches"]}
            for one in probes
            for x, y in [place(one["size"], one["dispatches"])]
        ],
        "curve": " ".join(f"{x},{y}" for x, y in curve),
        "widest": widest,
        "highest": highest,
        "law": _words(law),
    }


def _height(law: Law, n: float) -> float:
    return float(law.per_call) + float(law.per_element) * n + float(law.curvature) * n * n


def _words(law: Law) -> str:
    parts = [f"{float(law.per_call):,.2f}"]
    if law.per_element:
        parts.append(f"{float(law.per_element):,.2f} n")
    if law.curvature:
        parts.append(f"{float(law.curvature):,.4f} n²")
    return f"{law.kind}: {' + '.join(parts)}"
