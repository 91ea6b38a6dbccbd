"""The waits that regions of `allow_sync` allowed in a run, by statement and reason."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flake8_torchperf.runtime.counting.counts import Counts, counted, total
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.exchange import QUEUED, Observed, SyncRow
from flake8_torchperf.runtime.workload.matching import (
    NOT_IN_RUN,
    REFUTED,
    UNDECIDED,
    FileReport,
    Matched,
)
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun
from flake8_torchperf.runtime.workload.waits import statement_waits
from flake8_torchperf.syntax.statement_lines import Span, Statements

_Key = tuple[str, Span, str]


def allowed_waits(observed: Observed, sources: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return a row for each statement and reason, those that waited most often first.

    ``sources`` are the lines of the files. Rows hold the numbers of waits, host reads and
    transfers; statements that did none of these are left out.
    """
    heard = device_reports.was_heard(observed)
    statements = {path: Statements("\n".join(lines)) for path, lines in sources.items()}

    def key(path: str, line: int, reason: str) -> _Key:
        real = os.path.realpath(path)
        known = statements.get(real)
        return real, (line, line) if known is None else known.span(line), reason

    spent: dict[_Key, list[Counts]] = defaultdict(list)
    for one in observed.allowed:
        spent[key(one["path"], one["line"], one["reason"])].append(Counts(**one["counts"]))
    calls: dict[_Key, list[SyncRow]] = defaultdict(list)
    for row in observed.syncs:
        if row.allowed and row.category != QUEUED:
            calls[key(row.path, row.line, row.allowed)].append(replace(row, allowed=""))
    found = []
    for place in sorted({*spent, *calls}):
        path, (first, last), reason = place
        counts = total(spent[place])
        waits = statement_waits(calls[place], counts, heard=heard)[0]
        if waits or counts.host_reads or counts.transfers:
            text = sources.get(path, ())[first - 1 : last]
            told = {"reason": reason, "path": path, "line": first, "waits": waits}
            spending = {"host_reads": counts.host_reads, "transfers": counts.transfers}
            source = " ".join(line.strip() for line in text)
            found.append({**told, **spending, "source": source})
    return sorted(found, key=lambda row: (-row["waits"], row["path"], row["line"]))


def allowed_remark(row: Mapping[str, Any]) -> str:
    """Return the text of a row for a reader: "3 waits (the loss is logged)"."""
    names = ("waits",) if row["waits"] else ("host_reads", "transfers")
    spent = ", ".join(counted(row[name], name) for name in names if row[name])
    return f"{spent} ({row['reason']})"


def judge_allowed(files: Sequence[FileReport], run: MergedRun) -> tuple[FileReport, ...]:
    """Return the reports without verdicts that a finding's line is free, where it is allowed.

    What a region allows is in no count, so the counts refute nothing there.
    """
    observed = run.merged
    if observed is None or not (observed.allowed or any(row.allowed for row in observed.syncs)):
        return tuple(files)
    rows = allowed_waits(observed, {file.path: file.source for file in files})
    reasons = {(row["path"], row["line"]): row["reason"] for row in reversed(rows)}

    def judged(file: FileReport, one: Matched) -> Matched:
        reason = reasons.get((file.path, one.span[0]))
        if reason is None or one.verdict not in (REFUTED, NOT_IN_RUN):
            return one
        return replace(one, verdict=UNDECIDED, reason=f"allowed where it ran: {reason}")

    return tuple(
        replace(file, judged=tuple(judged(file, one) for one in file.judged)) for file in files
    )
