"""The report of ``torchperf run`` as text: its data enters, lines for a reader leave.

A terminal gets colours where rich is installed; a pipe or a file gets the same lines plain.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TextIO

Row = Mapping[str, Any]
_TITLES = (
    ("not_reached", "not reached: findings in lines that did not run", "dim"),
    ("undecided", "undecided: findings this run cannot judge", "dim"),
    ("refuted", "refuted: findings in lines that ran and never did it", "yellow"),
    ("inside_calls", "inside calls: a library that these lines call synchronised", "dim"),
    ("missed", "missed: lines that synchronised and carry no finding", "magenta"),
    ("confirmed", "confirmed: findings that this run bears out", "red"),
)


def print_report(data: Row, out: TextIO, *, metrics: bool = True) -> None:
    """Print operations first and what matters most last, where a terminal still shows it."""
    write = _writer(out)
    if metrics:
        write("torchperf run: operations", "bold")
        write(data["metrics"].rstrip("\n"), "")
    for key, title, style in _TITLES:
        rows = data[key]
        if rows:
            write(f"\n{title} ({len(rows)})", f"bold {style}")
            for line in _lines(key, rows):
                write(line, style)
    for note in data["notes"]:
        write(f"note: {note}", "yellow")
    write(f"\n{_summary(data)}", "bold")


def as_text(data: Row, *, metrics: bool = True) -> str:
    """What `print_report` prints, plain."""
    out = io.StringIO()
    print_report(data, out, metrics=metrics)
    return out.getvalue()


def _writer(out: TextIO) -> Any:
    if out.isatty() and find_spec("rich"):
        from rich.console import Console
        from rich.text import Text

        console = Console(file=out, soft_wrap=True, highlight=False)
        return lambda line, style: console.print(Text(line, style=style))
    return lambda line, style: print(line, file=out)


def _lines(key: str, rows: Sequence[Row]) -> Iterator[str]:
    if key in ("missed", "inside_calls"):
        # Tensors made on the host last: where the program itself uses an accelerator, they stay.
        ordered = sorted(rows, key=lambda row: (row["made_on_host"], -sum(row["kinds"].values())))
        for row in ordered:
            words = _words if row["inferred"] else str  # a device reports operations: __setitem__
            kinds = ", ".join(f"{words(kind)} {times}x" for kind, times in row["kinds"].items())
            made = ", tensor made on the host" if row["made_on_host"] else ""
            how = f" (inferred{made})" if row["inferred"] else " (reported by the device)"
            yield f"  {row['path']}:{row['line']}: {kinds}{how}: {_short(row['source'])}"
        return
    for row in sorted(rows, key=lambda row: -row["count"]):
        place = f"  {row['path']}:{row['line']}:{row['column']}: {row['code']} {row['message']}"
        if key == "confirmed":
            # Where only reads are counted, nothing is timed.
            spent = f", {row['seconds'] * 1000:.3g} ms in operations" if row["seconds"] else ""
            place += f" [{row['count']} {_words(row['counter'])}{spent}]"
        elif row["reason"]:
            place += f" [{row['reason']}]"
        yield place


def _words(name: str) -> str:
    return name.replace("_", " ")


def _short(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _summary(data: Row) -> str:
    counted = ", ".join(
        f"{len(data[key])} {_words(key)}"
        for key in ("confirmed", "refuted", "not_reached", "undecided", "missed")
    )
    totals = data["totals"]
    spent = f"{totals['host_reads']} host reads, {totals['transfers']} transfers"
    if data["level"] == "full":
        spent = f"{totals['dispatches']} dispatches, {spent}"
    return (
        f"torchperf run: {counted}; {spent} in {data['seconds']:.2f} s on {data['device']} "
        f"with torch {data['torch']}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    )
