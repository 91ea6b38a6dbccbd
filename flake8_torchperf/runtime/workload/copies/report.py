"""Lists the copies of a run that only look asynchronous, by line, as plain data. Knows no torch."""

from __future__ import annotations

import linecache
from typing import Any

from flake8_torchperf.runtime.api.free_lines import allowed_lines
from flake8_torchperf.runtime.workload.exchange import IN_ONE_PIECE, NON_BLOCKING, Observed

REASONS = {
    "source-pageable": "non_blocking, but the source is pageable",
    "source-not-dense": "non_blocking, but the source is not dense",
    "target-pageable": "non_blocking, but the target is pageable",
    "target-not-dense": "non_blocking, but the target is not dense",
}
"""The reasons why a copy with `non_blocking=True` is staged, by its kind."""


def seeming(observed: Observed) -> list[dict[str, Any]]:
    """Return a row for each line and reason, most often first; paths as they were recorded.

    ``small`` counts those of the copies for which nothing waits although they are staged.
    """
    found: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    for row in observed.queued:
        kind = row.kind.removeprefix(IN_ONE_PIECE)
        if kind == NON_BLOCKING or row.line in allowed_lines(row.path):
            continue
        entry = found.setdefault(
            (row.path, row.line, row.operation, kind),
            {
                "path": row.path,
                "line": row.line,
                "operation": row.operation,
                "kind": kind,
                "reason": REASONS[kind],
                "times": 0,
                "small": 0,
                "numel": 0,
                "source": linecache.getline(row.path, row.line).strip(),
            },
        )
        entry["times"] += row.times
        entry["small"] += row.times if kind != row.kind else 0
        entry["numel"] = max(entry["numel"], row.numel)
    return [row for _, row in sorted(found.items(), key=lambda one: (-one[1]["times"], one[0]))]


def remark(row: Any) -> str:
    """Return the sentence on a row: "to 8x: non_blocking, but the source is pageable"."""
    small = ""
    if row["small"]:
        which = "all" if row["small"] == row["times"] else str(row["small"])
        small = f" ({which} of at most 64 KiB, for which nothing waits)"
    return f"{row['operation']} {row['times']}x: {row['reason']}{small}"
