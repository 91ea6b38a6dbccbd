"""Holds what the linter says of each owned file against what its lines did in this run.

What the child observed enters, verdicts by finding and the synchronisations without a finding
leave. Compared by statement: a read on the third line of a call belongs to the call.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flake8_torchperf.findings.documentation import EvidenceSpec
from flake8_torchperf.findings.model import Finding
from flake8_torchperf.hotness.model import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.plugin import internal_error
from flake8_torchperf.runtime.claims import evidence_of
from flake8_torchperf.runtime.evidence import Counts, total
from flake8_torchperf.runtime.noqa import allowed_lines
from flake8_torchperf.runtime.workload.plan import Observed, SyncRow
from flake8_torchperf.runtime.workload.statements import Span, Statements

CONFIRMED, REFUTED, NOT_REACHED, UNDECIDED = "confirmed", "refuted", "not reached", "undecided"
VERDICTS = (CONFIRMED, REFUTED, NOT_REACHED, UNDECIDED)

# Counted for a whole run, not for a line; `torchperf confirm` runs a snippet alone.
_NOT_BY_LINE = frozenset({"graph_breaks"})
_READS_ONLY = frozenset(
    {"host_reads", "transfers", "copies_to_device", "synchronisations", "device_syncs"}
)
_EVERY = frozenset(Counts.__dataclass_fields__)


@dataclass(frozen=True)
class Judged:
    """A finding and what this run says of it.

    ``count`` is how often the flagged statement raised ``counter``, the evidence that the rule's
    page names; ``seconds`` the time spent in the operations of that statement.
    """

    finding: Finding
    verdict: str
    span: Span
    counter: str
    count: int
    seconds: float
    reason: str


@dataclass(frozen=True)
class Missed:
    """A statement that synchronised and carries no finding.

    ``kinds`` maps each way to how often; ``on_host`` tells that all those tensors were made on the
    host (then nothing waits where the program itself runs on an accelerator), ``inside`` that it
    happened in a library that the statement calls, beyond what a linter of this file can see.
    """

    span: Span
    text: str
    kinds: Mapping[str, int]
    seconds: float
    on_host: bool = False
    inside: bool = False


@dataclass(frozen=True)
class FileReport:
    """One owned file: its text, what each line did, what was found in it."""

    path: str
    source: tuple[str, ...]
    executed: frozenset[int]
    counts: Mapping[int, Counts]
    judged: tuple[Judged, ...]
    missed: tuple[Missed, ...]
    note: str = ""


def judge(observed: Observed) -> tuple[FileReport, ...]:
    """A report for each owned file that did anything, by path.

    A file that was only imported is not involved: nothing in it was called and nothing dispatched.
    """
    executed = _by_real_path(observed.executed.items())
    evidence: dict[str, list[Mapping[str, Any]]] = {}
    for line in observed.lines:
        evidence.setdefault(os.path.realpath(line["path"]), []).append(line)
    syncs: dict[str, list[SyncRow]] = {}
    for row in observed.syncs:
        syncs.setdefault(os.path.realpath(row.path), []).append(row)
    context = _Context(observed.device, _READS_ONLY if observed.level == "reads" else _EVERY)
    reports = (
        _file(path, executed[path], evidence.get(path, []), syncs.get(path, []), context)
        for path in sorted(executed)
        if os.path.isfile(path)
    )
    return tuple(one for one in reports if one is not None)


@dataclass(frozen=True)
class _Context:
    """What could be counted here."""

    device: str
    counted: frozenset[str]

    def cannot_decide(self, spec: EvidenceSpec | None) -> str:
        """Why this evidence cannot be judged in this run; "" where it can."""
        if spec is None:
            return "its page declares no evidence"
        if spec.needs == "cuda" and not self.device.startswith("cuda"):
            return "only a CUDA machine can show it"
        if spec.counter not in _EVERY or spec.counter in _NOT_BY_LINE:
            return f"{spec.counter.replace('_', ' ')} are not counted by line: torchperf confirm"
        if spec.counter not in self.counted:
            return f"--level reads does not count {spec.counter.replace('_', ' ')}"
        return ""


def _by_real_path(items: Iterable[tuple[str, frozenset[int]]]) -> dict[str, frozenset[int]]:
    merged: dict[str, frozenset[int]] = {}
    for name, lines in items:
        path = os.path.realpath(name)
        merged[path] = merged.get(path, frozenset()) | lines
    return merged


def _file(
    path: str,
    executed: frozenset[int],
    evidence: list[Mapping[str, Any]],
    syncs: list[SyncRow],
    context: _Context,
) -> FileReport | None:
    counts: dict[int, Counts] = {}
    for line in evidence:
        counts[line["line"]] = counts.get(line["line"], Counts()) + Counts(**line["counts"])
    try:
        with open(path, encoding="utf-8") as file:
            source = file.read()
    except (OSError, UnicodeDecodeError) as error:
        return FileReport(path, (), executed, counts, (), (), f"not linted: {error}")
    statements = Statements(source)
    if not counts and not any((at := statements.at(line)) and at.function for line in executed):
        return None
    findings, note = _lint(source, path)
    # A line that spent something ran, whatever took the trace function away.
    ran = executed | frozenset(counts)
    file_view = _FileView(statements, ran, counts, context)
    allowed = allowed_lines(path)
    judged = tuple(file_view.judge(one) for one in findings if one.line not in allowed)
    found = {file_view.statements.span(one.line) for one in findings}
    lines = tuple(source.splitlines())
    missed = _missed(file_view, found, syncs, lines, lambda line: line in allowed)
    return FileReport(path, lines, ran, counts, judged, missed, note)


def _lint(source: str, path: str) -> tuple[list[Finding], str]:
    """The findings, in cold code too, or a note why there are none; as the flake8 plugin does it.

    A run may have taken hours: a mistake in the linter must not lose what it showed.
    """
    try:
        return lint(source, path, Options(scope=Level.COLD)), ""
    except SyntaxError as error:
        return [], f"not linted: {error}"
    except Exception as error:
        if os.environ.get("TORCHPERF_DEBUG") == "1":
            raise
        return [], internal_error(error)


@dataclass(frozen=True)
class _FileView:
    statements: Statements
    ran: frozenset[int]
    counts: Mapping[int, Counts]
    context: _Context

    def judge(self, finding: Finding) -> Judged:
        span = self.statements.span(finding.line)
        spec = evidence_of(finding.rule)
        spent = self.spent(self._region(span, finding.line, spec))
        counter = spec.counter if spec else ""
        count = int(getattr(spent, counter, 0)) if counter else 0
        reason = ""
        if self.ran.isdisjoint(range(span[0], span[1] + 1)):
            verdict = NOT_REACHED
        elif reason := self.context.cannot_decide(spec):
            verdict = UNDECIDED
        else:
            verdict = CONFIRMED if spec and count >= max(1.0, spec.at_least) else REFUTED
        return Judged(finding, verdict, span, counter, count, spent.seconds, reason)

    def spent(self, span: Span) -> Counts:
        """What the lines of a span spent together."""
        return total(
            self.counts[line] for line in range(span[0], span[1] + 1) if line in self.counts
        )

    def _region(self, span: Span, line: int, spec: EvidenceSpec | None) -> Span:
        """Where the evidence shows: for work done per element of a loop, in the whole loop."""
        statement = self.statements.at(line)
        if spec and spec.law == "element" and statement:
            node = statement.node
            if isinstance(node, (ast.For, ast.While)):
                return span[0], node.end_lineno or span[1]
        return span


def _missed(
    view: _FileView,
    found: set[Span],
    syncs: list[SyncRow],
    lines: tuple[str, ...],
    is_allowed: Callable[[int], bool],
) -> tuple[Missed, ...]:
    kinds: dict[Span, dict[str, int]] = {}
    on_device: set[Span] = set()
    seen: set[Span] = set()
    for row in syncs:
        span = view.statements.span(row.line)
        seen.add(span)
        if row.category in ("sync", "host"):
            here = kinds.setdefault(span, {})
            here[row.kind] = here.get(row.kind, 0) + row.times
        if row.category == "sync":
            on_device.add(span)
    inside: dict[Span, dict[str, int]] = {}
    for line, counts in view.counts.items():
        span = view.statements.span(line)
        if span not in seen:
            for counter in ("host_reads", "dynamic_shapes", "synchronisations"):
                if times := getattr(counts, counter):
                    here = inside.setdefault(span, {})
                    here[counter] = here.get(counter, 0) + times
    rows = [(span, ways, False) for span, ways in kinds.items()]
    rows += [(span, ways, True) for span, ways in inside.items()]
    return tuple(
        Missed(
            span,
            " ".join(text.strip() for text in lines[span[0] - 1 : span[1]]),
            ways,
            view.spent(span).seconds,
            on_host=not within and span not in on_device,
            inside=within,
        )
        for span, ways, within in sorted(rows, key=lambda row: row[0])
        if span not in found and not is_allowed(span[0])
    )
