"""A run's report as plain data, for `--json`: file reports enter, a dictionary leaves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from flake8_torchperf import __version__
from flake8_torchperf.runtime.workload.device_reports import UNHEARD, was_silenced
from flake8_torchperf.runtime.workload.matching import VERDICTS, FileReport, Judged, Missed
from flake8_torchperf.runtime.workload.plan import Observed


def shown_path(path: str) -> str:
    """Relative to the current directory where that is shorter and stays below it."""
    here = os.path.realpath(os.getcwd()) + os.sep
    return path[len(here) :] if path.startswith(here) else path


def as_data(
    command: Sequence[str], returncode: int, observed: Observed, files: Sequence[FileReport]
) -> dict[str, Any]:
    """The whole report. Lines count from 1, columns too, as flake8 prints them."""
    data: dict[str, Any] = {
        "version": __version__,
        "torch": observed.torch,
        "device": observed.device,
        "level": observed.level,
        "command": list(command),
        "exit_status": returncode,
        "ended": observed.ended,
        "seconds": observed.seconds,
        "totals": dict(observed.totals),
        "notes": _notes(observed, files),
    }
    for verdict in VERDICTS:
        data[verdict.replace(" ", "_")] = [
            _finding(file, one) for file in files for one in file.judged if one.verdict == verdict
        ]
    data["missed"] = [_missed(file, one) for file in files for one in file.missed if not one.inside]
    data["inside_calls"] = [
        _missed(file, one) for file in files for one in file.missed if one.inside
    ]
    data["files"] = [_file(file) for file in files]
    data["metrics"] = observed.metrics
    return data


def _notes(observed: Observed, files: Sequence[FileReport]) -> list[str]:
    silenced = [UNHEARD] if was_silenced(observed) else []
    of_files = [f"{one.path}: {one.note}" for one in files if one.note]
    return [*observed.notes, *silenced, *of_files]


def _finding(file: FileReport, judged: Judged) -> dict[str, Any]:
    finding = judged.finding
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
        "reason": judged.reason,
    }


def _missed(file: FileReport, missed: Missed) -> dict[str, Any]:
    return {
        "path": shown_path(file.path),
        "line": missed.span[0],
        "statement": list(missed.span),
        "kinds": dict(missed.kinds),
        "made_on_host": missed.on_host,
        "inferred": missed.inferred,
        "seconds": missed.seconds,
        "source": missed.text,
    }


def _file(file: FileReport) -> dict[str, Any]:
    return {
        "path": shown_path(file.path),
        "executed_lines": len(file.executed),
        "lines": {
            str(line): {name: value for name, value in asdict(counts).items() if value}
            for line, counts in sorted(file.counts.items())
        },
    }
