"""Writes verdicts as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flake8_torchperf import __version__
from flake8_torchperf.runtime.confirm.plan import Group, Target
from flake8_torchperf.runtime.confirm.scaling import Law
from flake8_torchperf.runtime.confirm.verdict import SHOWN_COUNTS, CallVerdict


@dataclass(frozen=True, eq=False)
class ConfirmedFinding:
    """One finding with its verdict."""

    group: Group
    target: Target
    verdict: CallVerdict


@dataclass(frozen=True)
class Circumstances:
    """The facts shared by all verdicts: torch's version, the device, the size extrapolated to."""

    torch: str
    device: str
    size: int
    isolation: Mapping[str, str]


def line_of_text(judged: ConfirmedFinding) -> str:
    """Return a finding and its verdict in one line, in the form that editors and CI understand."""
    finding, verdict = judged.target.finding, judged.verdict
    place = f"{judged.group.path}:{finding.line}:{finding.column + 1}"
    return f"{place}: {finding.code} {verdict.status}: {verdict.reason}"


def summary(all_judged: Sequence[ConfirmedFinding]) -> str:
    """Return the last line, with the number of findings for each verdict."""
    if not all_judged:
        return "nothing to confirm"
    counts = Counter(one.verdict.status for one in all_judged)
    return ", ".join(f"{counts[s]} {s}" for s in ("confirmed", "refuted", "inconclusive"))


def isolation_notes(session: Circumstances) -> list[str]:
    """Return a note for each kind of isolation that this machine did not grant."""
    notes: list[str] = []
    network, files, processes = (
        session.isolation.get(name, "") for name in ("network", "files", "processes")
    )
    if network.startswith("kept"):
        notes.append(f"the code ran with the network: {network.partition(': ')[2]}")
    if files.startswith("writable"):
        notes.append(f"the code could write to files: {files.partition(': ')[2]}")
    if processes.startswith("shared"):
        notes.append(f"the code could end other programs of yours: {processes.partition(': ')[2]}")
    if session.device == "cuda" and not files.startswith("writable"):
        notes.append("the code could write to /proc but its settings: CUDA needs it to start")
    return notes


def as_json(all_judged: Sequence[ConfirmedFinding], session: Circumstances) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "version": __version__,
        "torch": session.torch,
        "device": session.device,
        "findings": [_finding(one, session.size) for one in all_judged],
    }


def _finding(judged: ConfirmedFinding, size: int) -> dict[str, Any]:
    finding, group, verdict = judged.target.finding, judged.group, judged.verdict
    laws = verdict.laws
    return {
        "path": str(group.path),
        "line": finding.line,
        "column": finding.column + 1,
        "code": finding.code,
        "message": finding.message,
        "verdict": verdict.status,
        "reason": verdict.reason,
        "snippet": {
            "function": group.function,
            "first_line": group.first_line,
            "last_line": group.last_line,
        },
        "probes": list(verdict.probes),
        "per_call": {name: _float(laws[name].per_call) for name in SHOWN_COUNTS if name in laws},
        "per_element": {
            name: _float(laws[name].per_element) for name in SHOWN_COUNTS if name in laws
        },
        "projected": _projected(laws, size),
    }


def _projected(laws: Mapping[str, Law], size: int) -> dict[str, int]:
    if not laws:
        return {}
    return {"size": size, **{name: laws[name].at(size) for name in SHOWN_COUNTS}}


def _float(value: Any) -> float:
    return float(value)
