"""A run's report as plain data, for `--json`.

`docs/confirm-and-run.md` describes every field.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flake8_torchperf import __version__
from flake8_torchperf.findings.measured import WAITING_COUNTS
from flake8_torchperf.history.run_record import MARK, VERSION
from flake8_torchperf.runtime.api.free_lines import allowed_lines
from flake8_torchperf.runtime.workload.callers.report import Callers
from flake8_torchperf.runtime.workload.copies.report import seeming
from flake8_torchperf.runtime.workload.device_reports import UNHEARD, was_silenced
from flake8_torchperf.runtime.workload.exchange import KILLED, Observed
from flake8_torchperf.runtime.workload.gate.allowed import allowed_waits
from flake8_torchperf.runtime.workload.matching import VERDICTS, FileReport, Matched, Missed
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun
from flake8_torchperf.runtime.workload.statement_costs import StatementCosts
from flake8_torchperf.runtime.workload.steps.report import as_data as steps_as_data
from flake8_torchperf.runtime.workload.waits import would_wait

NOTHING_RAN = "no line of yours ran where it is counted; --owner names whose lines count"


def shown_path(path: str) -> str:
    """Return the path relative to the current directory, if it is below that."""
    here = os.path.realpath(os.getcwd()) + os.sep
    return path[len(here) :] if path.startswith(here) else path


def as_data(
    command: Sequence[str], returncode: int, run: MergedRun, files: Sequence[FileReport]
) -> dict[str, Any]:
    """Return the whole report. Lines count from 1, columns too, as flake8 prints them.

    Raises ValueError for a run that left no recording.
    """
    observed = run.merged
    if observed is None:
        raise ValueError("there is nothing to report of a run that left no recording")
    data: dict[str, Any] = {
        MARK: VERSION,
        "version": __version__,
        "torch": observed.torch,
        "device": observed.device,
        "level": observed.level,
        "command": list(command),
        "exit_status": returncode,
        "ended": observed.ended,
        "seconds": observed.seconds,
        "totals": dict(observed.totals),
        "ranks": [{"rank": rank, **_process(one)} for rank, one in run.ranks.items()],
        "data_workers": [
            {"rank": one.rank, "worker": one.data_worker, **_process(one)}
            for one in run.data_workers
        ],
        "notes": _notes(observed, files),
    }
    callers = Callers(observed)
    for verdict in VERDICTS:
        rows = [
            _finding(file, one, callers)
            for file in files
            for one in file.judged
            if one.verdict == verdict
        ]
        data[verdict.replace(" ", "_")] = sorted(rows, key=_dearest_first)
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in MISSED}
    for file in files:
        for one in file.missed:
            groups[missed_group(one)].append(_missed(file, one, callers))
    data.update(groups)
    data["looks_asynchronous"] = [
        {**row, "path": shown_path(os.path.realpath(row["path"]))} for row in seeming(observed)
    ]
    data["allowed"] = [
        {**row, "path": shown_path(row["path"])}
        for row in allowed_waits(observed, {file.path: file.source for file in files})
    ]
    costs = StatementCosts(observed)
    data["files"] = [_file(file, costs) for file in files]
    statements = (one for file in data["files"] for one in file["statements"])
    data["steps"] = steps_as_data(observed, statements)
    data["metrics"] = observed.metrics
    return data


def broken_contracts(observed: Observed) -> list[dict[str, Any]]:
    """Return the lines that waited below a function that must not, most often first.

    Where a device reports its waits, those count. Elsewhere the waits are inferred from calls.
    """
    told = observed.device.startswith("cuda")
    found: dict[tuple[str, int, str, str], int] = {}
    for row in observed.syncs:
        waited = row.category == "device" if told else would_wait(row)
        if waited and row.contract and not row.allowed and row.line not in allowed_lines(row.path):
            key = (row.contract, row.line, row.path, row.operation)
            found[key] = found.get(key, 0) + row.times
    return [
        {
            "contract": contract,
            "path": shown_path(path),
            "line": line,
            "operation": operation,
            "times": times,
            "inferred": not told,
            "source": linecache.getline(path, line).strip(),
        }
        for (contract, line, path, operation), times in sorted(
            found.items(), key=lambda one: (-one[1], one[0])
        )
    ]


MISSED = ("missed", "missed_on_host", "inside_calls")
"""The groups of lines without a finding, by how much they matter."""


def missed_group(missed: Missed) -> str:
    """Return the group of `MISSED` that a line belongs to."""
    if missed.inside:
        return "inside_calls"
    return "missed_on_host" if missed.on_host else "missed"


def _process(observed: Observed) -> dict[str, Any]:
    return {
        "ended": observed.ended,
        "seconds": observed.seconds,
        "totals": dict(observed.totals),
    }


def _notes(observed: Observed, files: Sequence[FileReport]) -> list[str]:
    silenced = [UNHEARD] if was_silenced(observed) else []
    nothing = [] if any(observed.executed.values()) else [NOTHING_RAN]
    of_files = [f"{one.path}: {one.note}" for one in files if one.note]
    return [*_cut_short(observed.ended), *observed.notes, *silenced, *nothing, *of_files]


def _cut_short(ended: str) -> list[str]:
    """Say that the program did not run to its end, and what the report then holds."""
    hows = [one for one in ended.split(", ") if one not in ("", "returned", "SystemExit")]
    kept = "the report holds what it last saved" if KILLED in hows else "it is counted until then"
    return [f"the program was cut short ({', '.join(hows)}): {kept}"] if hows else []


def _dearest_first(row: Mapping[str, Any]) -> tuple[float, float, int]:
    """Return a sort key: the wait for a device, then the time in operations, then the count."""
    return -(row["waited"] or 0.0), -row["seconds"], -row["count"]


def _finding(file: FileReport, judged: Matched, callers: Callers) -> dict[str, Any]:
    finding = judged.finding
    waits = judged.verdict == "confirmed" and judged.counter in WAITING_COUNTS
    return {
        "path": shown_path(file.path),
        "line": finding.line,
        "column": finding.column + 1,
        "code": finding.code,
        "message": finding.message,
        "statement": list(judged.span),
        "counter": judged.counter,
        "count": judged.count,
        "seconds": judged.seconds,
        "waited": judged.waited,
        "reason": judged.reason,
        "ranks": judged.ranks and judged.ranks.to_dict(),
        "callers": callers.at(file.path, judged.span) if waits else [],
    }


def _missed(file: FileReport, missed: Missed, callers: Callers) -> dict[str, Any]:
    return {
        "path": shown_path(file.path),
        "line": missed.span[0],
        "statement": list(missed.span),
        "kinds": dict(missed.kinds),
        "made_on_host": missed.on_host,
        "inferred": missed.inferred,
        "seconds": missed.seconds,
        "source": missed.text,
        "ranks": missed.ranks and missed.ranks.to_dict(),
        "callers": callers.at(file.path, missed.span),
    }


def _file(file: FileReport, costs: StatementCosts) -> dict[str, Any]:
    return {
        "path": shown_path(file.path),
        "executed_lines": len(file.executed),
        "lines": {
            str(line): {name: value for name, value in asdict(counts).items() if value}
            for line, counts in sorted(file.counts.items())
        },
        "statements": costs.of(file.path, file.source),
        "ranks": [
            {"statement": list(span), **shares.to_dict()} for span, shares in file.shares.items()
        ],
    }
