"""The report of ``torchperf run`` as text: its data in, lines for a reader out.

A terminal gets colours where rich is installed; a pipe or a file gets the same lines plain.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TextIO

from flake8_torchperf.options import Options
from flake8_torchperf.runtime.counting.counts import counted, human_time, mean_in_words
from flake8_torchperf.runtime.workload.callers.report import in_words as ways_in_words
from flake8_torchperf.runtime.workload.copies.report import remark
from flake8_torchperf.runtime.workload.gate.allowed import allowed_remark, judge_allowed
from flake8_torchperf.runtime.workload.gate.conditions import gate_lines
from flake8_torchperf.runtime.workload.matching import FileReport, match_findings
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun
from flake8_torchperf.runtime.workload.summary import as_data

Row = Mapping[str, Any]
_READS = ("host_reads", "transfers")
# Source text longer than this is cut.
_SOURCE_WIDTH = 80
_REMARKS = {"looks_asynchronous": remark, "allowed": allowed_remark}
_TITLES = (
    ("not_reached", "not reached: findings in lines that did not run", "dim"),
    ("undecided", "undecided: findings this run cannot judge", "dim"),
    (
        "not_in_this_run",
        "not in this run: findings in lines that ran without what may wait or cost in them",
        "dim",
    ),
    ("refuted", "refuted: findings in lines that ran and cannot do it", "yellow"),
    ("allowed", "allowed: waits in regions of allow_sync, in no other number", "green"),
    ("inside_calls", "inside calls: a library that these lines call synchronised", "dim"),
    (
        "missed_on_host",
        "missed on the host: lines that read or copied tensors made on the host, without a finding",
        "dim",
    ),
    (
        "looks_asynchronous",
        "look asynchronous: copies with non_blocking=True for which Python may wait all the same",
        "magenta",
    ),
    ("missed", "missed on the device: lines that synchronised and carry no finding", "magenta"),
    ("confirmed", "confirmed: findings that this run bears out", "red"),
)


def print_report(data: Row, out: TextIO) -> None:
    """Print the most important part last, where a terminal still shows it."""
    write = _writer(out)
    for key, title, style in _TITLES:
        rows = data[key]
        if rows:
            write(f"\n{title} ({len(rows)})", f"bold {style}")
            for line in _lines(key, rows):
                write(line, style)
    for row in data.get("broken_contracts", ()):
        write(_broken(row), "bold red")
    for line in _steps(data):
        write(line, "cyan")
    for line in [*_processes(data), *(f"note: {note}" for note in data["notes"])]:
        write(line, "yellow")
    _write_gate(data.get("gate", ()), write)
    write(f"\n{_summary(data)}", "bold")


def _write_gate(rows: Sequence[Row], write: Any) -> None:
    if rows:
        write("", "")
    for row in rows:
        for line in gate_lines([row]):
            write(line, "bold red" if row["failed"] else "green")


def judged_report(
    command: Sequence[str], returncode: int, run: MergedRun, options: Options
) -> tuple[dict[str, Any], Sequence[FileReport]]:
    """Return the report on a run as data, and its files with the verdicts on their findings."""
    files = judge_allowed(match_findings(run, options), run)
    return as_data(command, returncode, run, files), files


def as_text(data: Row) -> str:
    """Return the text that `print_report` prints, without styles."""
    out = io.StringIO()
    print_report(data, out)
    return out.getvalue()


def _writer(out: TextIO) -> Any:
    if out.isatty() and find_spec("rich"):
        from rich.console import Console
        from rich.text import Text

        console = Console(file=out, soft_wrap=True, highlight=False)
        return lambda line, style: console.print(Text(line, style=style))
    return lambda line, style: print(line, file=out)


def _lines(key: str, rows: Sequence[Row]) -> Iterator[str]:
    if key in ("missed", "missed_on_host", "inside_calls"):
        for row in sorted(rows, key=lambda row: -sum(row["kinds"].values())):
            words = _words if row["inferred"] else str  # a device reports operations: __setitem__
            kinds = ", ".join(f"{words(kind)} {times}x" for kind, times in row["kinds"].items())
            how = "inferred" if row["inferred"] else "reported by the device"
            place = f"{row['path']}:{row['line']}"
            yield f"  {place}: {kinds} ({how}{_spread(row)}): {_short(row['source'])}"
            yield from _callers(row)
        return
    if key in _REMARKS:
        for row in rows:
            yield f"  {row['path']}:{row['line']}: {_REMARKS[key](row)}: {_short(row['source'])}"
        return
    for row in rows:
        place = f"  {row['path']}:{row['line']}:{row['column']}: {row['code']} {row['message']}"
        if key == "confirmed":
            # Where only reads are counted, nothing is timed.
            spent = f", {human_time(row['seconds'])} in operations" if row["seconds"] else ""
            if row["waited"]:
                spent = f", waited {human_time(row['waited'])}{spent}"
            place += f" [{counted(row['count'], row['counter'])}{spent}{_spread(row)}]"
        elif row["reason"]:
            place += f" [{row['reason']}]"
        yield place
        yield from _callers(row)


def _callers(row: Row) -> Iterator[str]:
    """Yield the lines on who led to a statement."""
    yield from (f"      {line}" for line in ways_in_words(row["callers"]))


def _broken(row: Row) -> str:
    how = "inferred" if row["inferred"] else "reported by the device"
    return (
        f"broken contract: {row['path']}:{row['line']}: {row['operation']} waited {row['times']}x "
        f"({how}) on the way from {row['contract']}: {_short(row['source'])}"
    )


def _spread(row: Row) -> str:
    """Name the rank that spent most at a statement, and say how much less the fastest spent."""
    ranks = row["ranks"]
    if not ranks or len(ranks["counts"]) < 2:
        return ""
    name = str(ranks["slowest"])
    if any(ranks["seconds"].values()):
        most, spread = ranks["seconds"][name], ranks["spread"]["seconds"]
        return f"; slowest rank {name}: {human_time(most)}, spread {human_time(spread)}"
    return f"; most on rank {name}: {ranks['counts'][name]}, spread {ranks['spread']['count']}"


# How many of the statements that wait in each step are listed.
_IN_STEP = 10


def _steps(data: Row) -> Iterator[str]:
    """Yield a line on what a step cost, and one for each statement that waits in it."""
    steps = data["steps"]
    if steps is None:
        return
    if steps["note"]:
        yield f"\nsteps: {steps['note']}"
        return
    counted_steps = steps["counted"]
    spent = ", ".join(mean_in_words(each, name) for name, each in steps["per_step"].items())
    if steps["waited"] is not None:
        waited, took = (steps[name] / counted_steps for name in ("waited", "seconds"))
        spent += f", waited {human_time(waited)} of {human_time(took)}"
    yield (
        f"\nsteps: {counted_steps:,} after {steps['warmup']} of warm-up, "
        f"ended by {_marker(steps)}; in each {spent}"
    )
    rows = [
        (row["counted"]["waits"], file["path"], row)
        for file in data["files"]
        for row in file["statements"]
        if row["counted"]["waits"]
    ]
    rows.sort(key=lambda one: -one[0])
    for waits, path, row in rows[:_IN_STEP]:
        each = mean_in_words(waits / counted_steps, "waits")
        yield f"{path}:{row['line']}: {each} per step: {row['text']}"
    if more := rows[_IN_STEP:]:
        statements = "statement" if len(more) == 1 else "statements"
        yield f"... and {len(more)} more {statements}, in the JSON report"


def _marker(steps: Row) -> str:
    """Name what ended the steps, with the optimizers that step together."""
    classes = steps["optimizers"]
    if not classes:
        return str(steps["marker"])
    if len(classes) == 1:
        return f"{steps['marker']} of {classes[0]}"
    return f"{steps['marker']} of {len(classes)} optimizers ({', '.join(classes)}), once for all"


def _processes(data: Row) -> Iterator[str]:
    """Yield a line on the ranks, and one on the workers of DataLoaders, where there are any."""
    ranks, workers = data["ranks"], data["data_workers"]
    if len(ranks) > 1:
        slowest = max(ranks, key=lambda one: one["seconds"])
        spread = slowest["seconds"] - min(one["seconds"] for one in ranks)
        yield (
            f"ranks: {len(ranks)}, counted together; rank {slowest['rank']} ran longest, "
            f"{human_time(slowest['seconds'])}, spread {human_time(spread)}"
        )
    if workers:
        reads, waits = (
            sum(one["totals"][name] for one in workers) for name in ("host_reads", "device_syncs")
        )
        yield (
            f"data workers: {len(workers)} processes of DataLoaders, counted apart: "
            f"{reads} host reads, {waits} waits for a device"
        )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _short(text: str) -> str:
    return text if len(text) <= _SOURCE_WIDTH else text[: _SOURCE_WIDTH - 3] + "..."


def _summary(data: Row) -> str:
    verdicts = ", ".join(
        f"{len(data[key])} {_words(key)}"
        for key in ("confirmed", "refuted", "not_in_this_run", "not_reached", "undecided", "missed")
    )
    if data["missed_on_host"]:
        verdicts += f", {len(data['missed_on_host'])} missed on the host"
    if seeming := sum(row["times"] for row in data["looks_asynchronous"]):
        verdicts += f", {seeming:,} copies only look asynchronous"
    if allowed := sum(row["waits"] for row in data["allowed"]):
        verdicts += f", {counted(allowed, 'waits')} allowed"
    totals = data["totals"]
    shown = ("dispatches", "host_reads", "transfers") if data["level"] == "full" else _READS
    spent = ", ".join(counted(totals[name], name) for name in shown)
    return (
        f"torchperf run: {verdicts}; {spent} in {data['seconds']:.2f} s on {data['device']} "
        f"with torch {data['torch']}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    )
