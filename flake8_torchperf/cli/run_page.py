"""The report of ``torchperf run`` as one HTML page that opens offline: annotated source by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flake8_torchperf.runtime.counting.evidence import Counts
from flake8_torchperf.runtime.html_page import render
from flake8_torchperf.runtime.workload.matching import FileReport
from flake8_torchperf.runtime.workload.summary import shown_path


def page(data: Mapping[str, Any], files: Sequence[FileReport]) -> str:
    """The page's text. Everything from the workload is escaped by the template."""
    shown = [_file(one) for one in files if _says_something(one)]
    return render("run.html", run=data, files=shown)


def _says_something(file: FileReport) -> bool:
    return bool(file.judged or file.missed or file.counts)


def _file(file: FileReport) -> dict[str, Any]:
    remarks: dict[int, list[dict[str, str]]] = {}
    for judged in file.judged:
        text = f"{judged.finding.code} {judged.finding.message}"
        if judged.verdict == "confirmed":
            text += f" [{judged.count} {judged.counter.replace('_', ' ')}]"
        elif judged.reason:
            text += f" [{judged.reason}]"
        remark = {"kind": judged.verdict, "text": text}
        remarks.setdefault(judged.finding.line, []).append(remark)
    for missed in file.missed:
        space = " " if missed.inferred else "_"  # a device reports operations: __setitem__
        kinds = ", ".join(f"{kind.replace('_', space)} {n}x" for kind, n in missed.kinds.items())
        made = ", tensor made on the host" if missed.on_host else ""
        how = f" (inferred{made})" if missed.inferred else " (reported by the device)"
        kind = "inside a call" if missed.inside else "missed"
        remarks.setdefault(missed.span[0], []).append({"kind": kind, "text": kinds + how})
    lines = [
        {
            "number": number,
            "ran": number in file.executed,
            "counts": file.counts.get(number, Counts()),
            "text": text,
            "remarks": remarks.get(number, []),
        }
        for number, text in enumerate(file.source, start=1)
    ]
    return {"path": shown_path(file.path), "note": file.note, "lines": lines}
