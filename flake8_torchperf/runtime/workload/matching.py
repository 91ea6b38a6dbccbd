"""Compares the linter's findings in each owned file with what its lines did in this run.

Returns verdicts by finding, and the synchronisations without a finding. Both are compared by
statement: a read on the third line of a call belongs to the call.
"""

from __future__ import annotations

import ast
import os
import tokenize
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from flake8_torchperf.findings.documentation import EvidenceSpec, evidence_of
from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.pipeline import internal_error
from flake8_torchperf.runtime.api.free_lines import allowed_lines
from flake8_torchperf.runtime.counting.counts import Counts, in_words, total
from flake8_torchperf.runtime.rule_pages.unshown import IN_DATA_WORKERS, unshown
from flake8_torchperf.runtime.rule_pages.use_spans import use_spans
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.exchange import Observed, SyncRow
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun
from flake8_torchperf.runtime.workload.ranks.shares import Shares, part_of
from flake8_torchperf.runtime.workload.waits import (
    HOST_INDEX,
    NO_CALL,
    NO_COPY,
    ON_HOST,
    is_on_host,
    only_on_host,
    was_executed,
    would_wait,
)  # fmt: skip
from flake8_torchperf.syntax.statement_lines import Span, Statements
from flake8_torchperf.values.site import SiteKind

CONFIRMED, REFUTED, NOT_REACHED, UNDECIDED = "confirmed", "refuted", "not reached", "undecided"
NOT_IN_RUN = "not in this run"
VERDICTS = (CONFIRMED, REFUTED, NOT_IN_RUN, NOT_REACHED, UNDECIDED)

# Counted for a whole run, not for a line; `torchperf confirm` runs a snippet alone.
_NOT_BY_LINE = frozenset({"graph_breaks"})
_READS_ONLY = frozenset(
    {"host_reads", "transfers", "copies_to_device", "synchronisations", "device_syncs"}
)
_EVERY = frozenset(Counts.__dataclass_fields__)

Causes: TypeAlias = "Mapping[int, Mapping[str, Mapping[str, int]]]"


@dataclass(frozen=True)
class Matched:
    """A finding and the verdict of this run on it.

    ``count`` is how often the flagged statement raised ``counter``, the evidence that the rule's
    page names, or ``device_syncs`` if the device itself reports its waits; findings of one
    statement share it. ``seconds`` is the time spent in the operations of that statement.
    ``waited`` is how long the host waited there, None if no device reported it. ``ranks`` says how
    count and seconds are spread.
    """

    finding: Finding
    verdict: str
    span: Span
    counter: str
    count: int
    seconds: float
    reason: str
    ranks: Shares | None = None
    waited: float | None = None


@dataclass(frozen=True)
class Missed:
    """A statement that synchronised and has no finding.

    ``kinds`` maps each kind of wait to its count: the operations that CUDA reported, or,
    ``inferred``, the effects of the calls on a device. ``on_host`` says that all those tensors were
    made on the host (then nothing waits if the program itself runs on an accelerator), ``inside``
    that the wait happened in a library that the statement calls, which a linter of this file can't
    see.
    """

    span: Span
    text: str
    kinds: Mapping[str, int]
    seconds: float
    on_host: bool = False
    inside: bool = False
    inferred: bool = True
    ranks: Shares | None = None


@dataclass(frozen=True)
class FileReport:
    """One owned file: its text, what each line did, and its findings.

    ``shares`` says how the host reads and seconds of each statement are spread over the ranks.
    """

    path: str
    source: tuple[str, ...]
    executed: frozenset[int]
    counts: Mapping[int, Counts]
    judged: tuple[Matched, ...]
    missed: tuple[Missed, ...]
    note: str = ""
    shares: Mapping[Span, Shares] = field(default_factory=dict)


def match_findings(run: MergedRun, options: Options) -> tuple[FileReport, ...]:
    """Return a report for each owned file that did anything, by path; ``options`` are the linter's.

    A file that was only imported is left out: nothing in it was called and nothing dispatched.
    """
    if run.merged is None:
        return ()
    parts = _by_path(run.merged)
    ranks = {rank: _by_path(one) for rank, one in run.ranks.items()}
    data_workers = _by_path(run.in_data_workers) if run.in_data_workers else {}
    counted = _READS_ONLY if run.merged.level == "reads" else _EVERY
    context = _Context(run.merged.device, counted, device_reports.was_heard(run.merged), options)
    reports = (
        _file(
            path,
            parts.get(path, _Part()),
            {rank: paths.get(path, _Part()) for rank, paths in ranks.items()},
            data_workers.get(path, _Part()).executed,
            context,
        )
        for path in sorted({*parts, *data_workers})
        if os.path.isfile(path)
    )
    return tuple(one for one in reports if one is not None)


@dataclass
class _Part:
    """The observations of one file."""

    executed: frozenset[int] = frozenset()
    evidence: list[Mapping[str, Any]] = field(default_factory=list)
    syncs: list[SyncRow] = field(default_factory=list)

    @property
    def counts(self) -> dict[int, Counts]:
        """The counts of each line."""
        counts: dict[int, Counts] = {}
        for line in self.evidence:
            counts[line["line"]] = counts.get(line["line"], Counts()) + Counts(**line["counts"])
        return counts


def _by_path(observed: Observed) -> dict[str, _Part]:
    """Return the files in which a line ran, by their real path."""
    parts: dict[str, _Part] = {}
    for name, lines in observed.executed.items():
        part = parts.setdefault(os.path.realpath(name), _Part())
        part.executed |= lines
    for line in observed.lines:
        if (path := os.path.realpath(line["path"])) in parts:
            parts[path].evidence.append(line)
    for row in observed.calls:
        if (path := os.path.realpath(row.path)) in parts:
            parts[path].syncs.append(row)
    return parts


@dataclass(frozen=True)
class _Context:
    """The facts about a run that decide what it can show, and the linter's options."""

    device: str
    counted: frozenset[str]
    heard: bool
    options: Options

    def cannot_decide(self, spec: EvidenceSpec | None) -> str:
        """Say why this evidence cannot be judged in this run; "" where it can."""
        if spec is None:
            return "its page declares no evidence"
        if spec.needs == "cuda" and not self.device.startswith("cuda"):
            return "only a CUDA machine can show it"
        if spec.counter not in _EVERY or spec.counter in _NOT_BY_LINE:
            return f"{in_words(spec.counter)} are not counted by line: torchperf confirm"
        if spec.counter not in self.counted:
            return f"--level reads does not count {in_words(spec.counter)}"
        return ""


def _file(
    path: str,
    part: _Part,
    ranks: Mapping[int, _Part],
    in_data_workers: frozenset[int],
    context: _Context,
) -> FileReport | None:
    executed, counts = part.executed | in_data_workers, part.counts
    try:
        with tokenize.open(path) as file:
            source = file.read()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        return FileReport(path, (), executed, counts, (), (), f"not linted: {error}")
    statements = Statements(source)
    if not counts and not any((at := statements.at(line)) and at.function for line in executed):
        return None
    # A wait that another scope reports is not missed.
    everything, note = _lint(source, path, replace(context.options, scope=Level.COLD))
    findings = everything
    if context.options.scope is not Level.COLD:
        findings, note = _lint(source, path, context.options)
    view = _view(statements, part, in_data_workers, context)
    views = {rank: _view(statements, one, frozenset(), context) for rank, one in ranks.items()}
    allowed = allowed_lines(path)
    told = [_shared(view, views, one) for one in findings if one.line not in allowed]
    judged = apportioned(told)
    found = {statements.span(one.line) for one in everything}
    lines = tuple(source.splitlines())
    of_ranks = {rank: _missed(one, found, lines, allowed) for rank, one in views.items()}
    missed = tuple(_with_ranks(one, of_ranks) for one in _missed(view, found, lines, allowed))
    return FileReport(
        path, lines, view.ran | in_data_workers, counts, judged, missed, note, _spent(views)
    )


def _view(
    statements: Statements, part: _Part, in_data_workers: frozenset[int], context: _Context
) -> _FileView:
    counts = part.counts
    # A line with counts ran, even if the trace function was removed.
    ran = part.executed | frozenset(counts)
    causes = _causes(part.evidence)
    ops: dict[int, set[str]] = {}
    for line in part.evidence:
        ops.setdefault(line["line"], set()).update(line.get("ops", ()))
    syncs = tuple(part.syncs)
    return _FileView(statements, ran, in_data_workers, counts, context, causes, ops, syncs)


def _shared(view: _FileView, ranks: Mapping[int, _FileView], finding: Finding) -> Matched:
    """Return the verdict of the whole run on a finding, with the share of each rank."""
    judged = view.judge(finding)
    if not ranks:
        return judged
    each = {rank: one.judge(finding) for rank, one in ranks.items()}
    counts = {rank: one.count if one.counter == judged.counter else 0 for rank, one in each.items()}
    return replace(judged, ranks=Shares(counts, {rank: one.seconds for rank, one in each.items()}))


def apportioned(judged: Sequence[Matched]) -> tuple[Matched, ...]:
    """Return the verdicts with each statement's counts divided among its findings, which add up."""
    alike: dict[tuple[Span, str], list[int]] = {}
    for number, one in enumerate(judged):
        alike.setdefault((one.span, one.counter), []).append(number)
    found = list(judged)
    for numbers in alike.values():
        for place, number in enumerate(numbers):
            found[number] = _part_of(judged[number], place, len(numbers))
    return tuple(found)


def _part_of(judged: Matched, place: int, parts: int) -> Matched:
    """Return a verdict with one of so many equal parts of what its statement counted."""
    if parts == 1:
        return judged
    return replace(
        judged,
        count=part_of(judged.count, place, parts),
        seconds=judged.seconds / parts,
        ranks=None if judged.ranks is None else judged.ranks.part(place, parts),
        waited=None if judged.waited is None else judged.waited / parts,
    )


def _spent(ranks: Mapping[int, _FileView]) -> dict[Span, Shares]:
    """Return the share of each rank in the host reads and seconds of each statement."""
    spans = {view.statements.span(line) for view in ranks.values() for line in view.counts}
    shares = {}
    for span in sorted(spans):
        each = {rank: view.spent(span) for rank, view in ranks.items()}
        shares[span] = Shares(
            {rank: spent.host_reads for rank, spent in each.items()},
            {rank: spent.seconds for rank, spent in each.items()},
        )
    return shares


def _with_ranks(missed: Missed, ranks: Mapping[int, Sequence[Missed]]) -> Missed:
    if not ranks:
        return missed
    each = {
        rank: [one for one in rows if (one.span, one.inside) == (missed.span, missed.inside)]
        for rank, rows in ranks.items()
    }
    counts = {rank: sum(sum(one.kinds.values()) for one in rows) for rank, rows in each.items()}
    seconds = {rank: sum(one.seconds for one in rows) for rank, rows in each.items()}
    return replace(missed, ranks=Shares(counts, seconds))


def _causes(evidence: list[Mapping[str, Any]]) -> Causes:
    """Return the causes of counters, by line: {12: {"device_syncs": {"aten::index_put_": 3}}}."""
    found: dict[int, dict[str, dict[str, int]]] = {}
    for line in evidence:
        here = found.setdefault(line["line"], {})
        for counter, causes in line.get("events", {}).items():
            _add(here.setdefault(counter, {}), causes)
    return found


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, times in more.items():
        sums[name] = sums.get(name, 0) + times


def _lint(source: str, path: str, options: Options) -> tuple[list[Finding], str]:
    """Return the findings, or a note why there are none, as the flake8 plugin does it.

    A run may have taken hours, so an error in the linter must not lose its results.
    """
    try:
        return lint(source, path, options.of_any_worth()), ""
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
    in_data_workers: frozenset[int]
    counts: Mapping[int, Counts]
    context: _Context
    causes: Causes
    ops: Mapping[int, set[str]]
    syncs: tuple[SyncRow, ...]

    def judge(self, finding: Finding) -> Matched:
        span = self.statements.span(finding.line)
        spec = evidence_of(finding.rule)
        spans = self._regions(span, finding, spec)
        spent = total(self.spent(one) for one in spans)
        counter = spec.counter if spec else ""
        count = int(getattr(spent, counter, 0)) if counter else 0
        reason = ""
        lines = range(span[0], span[1] + 1)
        if self.ran.isdisjoint(lines) and not self.in_data_workers.isdisjoint(lines):
            verdict, reason = UNDECIDED, IN_DATA_WORKERS
        elif self.ran.isdisjoint(lines):
            verdict = NOT_REACHED
        elif reason := self.context.cannot_decide(spec):
            verdict = UNDECIDED
        elif spec and count < max(1.0, spec.at_least) and spec.shows == "use":
            verdict, reason = UNDECIDED, "its cost falls where what this line makes is used"
        elif not count and (reason := unshown(finding.site.kind, counter)):
            verdict = UNDECIDED
        else:
            verdict, reason, counter, count = self._decide(finding, spec, spans, spent)
        waited = spent.waited if self.context.heard else None
        return Matched(finding, verdict, span, counter, count, spent.seconds, reason, waited=waited)

    def _decide(
        self, finding: Finding, spec: EvidenceSpec | None, spans: Sequence[Span], spent: Counts
    ) -> tuple[str, str, str, int]:
        """Return the verdict on a finding whose line ran, its reason, the counter and its count."""
        counter = spec.counter if spec else ""
        count = int(getattr(spent, counter, 0)) if counter else 0
        rows = [row for row in self.syncs if any(a <= row.line <= b for a, b in spans)]
        operations = {
            name for a, b in spans for n in range(a, b + 1) for name in self.ops.get(n, ())
        }
        executed = was_executed(finding.site, counter, spent, rows, operations)
        if self.context.heard and device_reports.decides(counter, self.caused(spans, counter)):
            waits = device_reports.waits(spent)
            told = "device_syncs" if spent.device_syncs else counter
            if waits:
                return CONFIRMED, "", told, waits
            # No counter counts the assignment or index itself; it was executed with its statement.
            must = counter == "device_syncs" and not self.statements.conditional(
                finding.line, finding.column
            )
            if executed or must:
                return REFUTED, device_reports.NO_WAIT, counter, waits
            return NOT_IN_RUN, NO_CALL, counter, waits
        if not self.context.heard and only_on_host(counter, count, rows):
            return REFUTED, ON_HOST, counter, count
        if not self.context.heard and finding.site.kind is SiteKind.LIST_INDEX:
            # The witness saw each index; what the page counts, allocations, has other causes too.
            copies = sum(row.times for row in rows if row.kind == HOST_INDEX)
            if copies:
                return CONFIRMED, "", "copies_to_device", copies
            if executed and not self.statements.conditional(finding.line, finding.column):
                return REFUTED, NO_COPY, counter, 0
            return NOT_IN_RUN, NO_CALL, counter, 0
        if spec and count >= max(1.0, spec.at_least):
            return CONFIRMED, "", counter, count
        return (REFUTED, "", counter, count) if executed else (NOT_IN_RUN, NO_CALL, counter, count)

    def spent(self, span: Span) -> Counts:
        """Return the sum of the counts of the lines of a span."""
        return total(
            self.counts[line] for line in range(span[0], span[1] + 1) if line in self.counts
        )

    def caused(self, spans: Iterable[Span], counter: str) -> dict[str, int]:
        """Return the causes of a counter in the lines of these spans, and their counts."""
        found: dict[str, int] = {}
        for first, last in spans:
            for line in range(first, last + 1):
                _add(found, self.causes.get(line, {}).get(counter, {}))
        return found

    def _regions(self, span: Span, finding: Finding, spec: EvidenceSpec | None) -> tuple[Span, ...]:
        """Return where the evidence shows: for work done per element of a loop, the whole loop."""
        if spec and spec.shows == "use" and self.statements.tree is not None:
            return use_spans(finding, self.statements.tree)
        statement = self.statements.at(finding.line)
        if spec and spec.law == "element" and statement:
            node = statement.node
            if isinstance(node, (ast.For, ast.While)):
                return ((span[0], node.end_lineno or span[1]),)
        return (span,)


def _missed(
    view: _FileView,
    found: set[Span],
    lines: tuple[str, ...],
    allowed: Container[int],
) -> tuple[Missed, ...]:
    reported = view.context.heard
    made = _reported(view) if reported else _inferred(view)
    return tuple(
        Missed(
            one.span,
            " ".join(text.strip() for text in lines[one.span[0] - 1 : one.span[1]]),
            one.kinds,
            view.spent(one.span).seconds,
            on_host=one.on_host,
            inside=one.inside,
            inferred=not reported,
        )
        for one in sorted(made, key=lambda one: one.span)
        if one.span not in found and one.span[0] not in allowed
    )


@dataclass(frozen=True)
class _Waiting:
    """A statement that waits, with or without a finding; the fields are `Missed`'s."""

    span: Span
    kinds: Mapping[str, int]
    on_host: bool = False
    inside: bool = False


def _reported(view: _FileView) -> Iterator[_Waiting]:
    """Yield the statements at which the device reported a wait, or the program asked for one."""
    direct = {view.statements.span(row.line) for row in view.syncs if row.category == "device"}
    spans = {view.statements.span(line) for line in view.causes}
    for span in spans:
        asked = view.caused([span], "synchronisations")
        kinds = view.caused([span], "device_syncs")
        if kinds or asked:
            _add(kinds, asked)
            yield _Waiting(span, kinds, inside=span not in direct and not asked)


def _inferred(view: _FileView) -> Iterator[_Waiting]:
    """Yield the statements whose calls would wait on a device, or in which libraries waited."""
    kinds: dict[Span, dict[str, int]] = {}
    on_device: set[Span] = set()
    seen: set[Span] = set()
    for row in view.syncs:
        span = view.statements.span(row.line)
        seen.add(span)
        if would_wait(row) or is_on_host(row):
            _add(kinds.setdefault(span, {}), {row.kind: row.times})
        if would_wait(row):
            on_device.add(span)
    for span, ways in kinds.items():
        yield _Waiting(span, ways, on_host=span not in on_device)
    inside: dict[Span, dict[str, int]] = {}
    for line, counts in view.counts.items():
        span = view.statements.span(line)
        for counter in ("host_reads", "dynamic_shapes", "synchronisations"):
            if span not in seen and (times := getattr(counts, counter)):
                _add(inside.setdefault(span, {}), {counter: times})
    for span, ways in inside.items():
        yield _Waiting(span, ways, inside=True)
