"""Findings as an editor shows them: diagnostics and hovers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from flake8_torchperf.judgement.worth.bands import Band, band_of
from flake8_torchperf.judgement.worth.fitted import weights
from flake8_torchperf.reserved import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.server.messages import Note, Problem
    from flake8_torchperf.server.text import Units

SOURCE = "torchperf"
# By the rule's own severity, else by the worth, which alone makes no error: the code does run.
STATED = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Hint,
}
WEIGHED = {
    Band.HIGH: types.DiagnosticSeverity.Warning,
    Band.MEDIUM: types.DiagnosticSeverity.Information,
    Band.LOW: types.DiagnosticSeverity.Hint,
}


def diagnostic(problem: Problem, uri: str, units: Units) -> types.Diagnostic:
    """Return one finding, its whole expression underlined."""
    page = types.CodeDescription(problem.page) if problem.page else None
    return types.Diagnostic(
        range=units.span(problem.span),
        message=problem.message,
        severity=_severity(problem),
        code=problem.code,
        code_description=page,
        source=SOURCE,
        related_information=[_related(note, problem, uri, units) for note in problem.notes] or None,
    )


def _severity(problem: Problem) -> types.DiagnosticSeverity:
    if problem.code == INTERNAL_ERROR:
        return types.DiagnosticSeverity.Error
    if problem.severity or not problem.evidence:
        return STATED.get(problem.severity, types.DiagnosticSeverity.Warning)
    return WEIGHED[band_of(problem.evidence.split())]


def _related(
    note: Note, problem: Problem, uri: str, units: Units
) -> types.DiagnosticRelatedInformation:
    where = note.path and Path(note.path).as_uri()
    if note.line < 0:
        place = types.Location(uri, units.span(problem.span))
    elif where and where != uri:
        start = types.Position(note.line, 0)
        place = types.Location(where, types.Range(start, start))
    else:
        place = types.Location(uri, units.line(note.line))
    return types.DiagnosticRelatedInformation(place, note.text)


def hover(problem: Problem, page: str) -> str:
    """Return a finding as Markdown; ``page`` is the text of its rule's page."""
    title = f"[{problem.code} {problem.name}]({problem.page})" if problem.page else problem.code
    told = problem.cost
    if problem.evidence:
        told += f", worth {weights().worth(problem.evidence.split()):.2f}"
    parts = [f"**{title}**: {told}", problem.message]
    if problem.notes:
        parts.append("\n".join(_listed(problem.notes)))
    if problem.why:
        parts.append(f"Why: {problem.why} (`{problem.row}`)")
    if problem.measured:
        parts.append(f"Profile: {problem.measured}.")
    if page:
        parts += ["---", page]
    return "\n\n".join(parts)


def _listed(notes: Iterable[Note]) -> Iterable[str]:
    for note in notes:
        line = f"line {note.line + 1}" if note.line >= 0 else ""
        where = f" ({Path(note.path).name}, {line})" if note.path else f" ({line})" if line else ""
        yield f"- {note.text}{where}"
