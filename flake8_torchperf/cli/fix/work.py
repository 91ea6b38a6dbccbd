"""Fix one file in rounds: a name in, the fixed text and the findings left to report out.

flake8 decides which findings count: a finding is not fixed if its code is not selected, if it is
ignored for the file, or if it has a ``# noqa``.
"""

from __future__ import annotations

import ast
import functools
import io
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from flake8.processor import FileProcessor

from flake8_torchperf.cache.current import Current
from flake8_torchperf.cli.check_files import (
    UNREADABLE,
    LintWork,
    cannot_have_findings,
    look_into,
)
from flake8_torchperf.cli.fix.verification import Verified, verdicts
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.findings.rule import SAFE, SUGGESTED
from flake8_torchperf.fixes.engine.lines.line_length import line_length
from flake8_torchperf.fixes.engine.rounds import Choice, FixedText, fixed, followed
from flake8_torchperf.fixes.engine.source_files import (
    FileText,
    NotWrittenError,
    decoded,
    read_bytes,
)
from flake8_torchperf.history.finding_record import led, rows_of
from flake8_torchperf.pipeline import internal_error, reported_by, without_old
from flake8_torchperf.project.file_index import upwards
from flake8_torchperf.project.files import expect
from flake8_torchperf.reserved import INTERNAL_ERROR, STRAY_CONTRACT
from flake8_torchperf.suppression import Suppression
from flake8_torchperf.syntax.parsing import require_python

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.history.finding_record import FindingRecord, Place
    from flake8_torchperf.pipeline import Decide
    from flake8_torchperf.runtime.verify.limits import Limits
    from flake8_torchperf.runtime.verify.session import Verifier


@dataclass(frozen=True)
class FixWork(LintWork):
    """The work of linting a file, the fixes to make, and the limits for running them, if any."""

    choice: Choice = field(default_factory=Choice)
    limits: Limits | None = None
    # The contents of files after the changes shown so far, by the path under which they are read.
    pending: dict[str, bytes] = field(default_factory=dict)

    @functools.cached_property
    def suppression(self) -> Suppression:
        """flake8's decisions, made once per process."""
        return Suppression(self.options)


@dataclass(frozen=True)
class FixMade:
    """One fix that was made: where in the text of its round, for which code, and by which fix."""

    line: int
    column: int
    code: str
    name: str
    safety: str
    round: int


@dataclass(frozen=True)
class FixableCounts:
    """Findings by code: all of them, those with a safe fix, and those with any fix."""

    found: Counter[str] = field(default_factory=Counter)
    safe: Counter[str] = field(default_factory=Counter)
    fixable: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Fixed:
    """The outcome of fixing one file.

    ``source`` is None if the file has no findings that count, or can't be read. ``problem`` says
    why it can't be analysed (then ``unread`` is True), or that the fixes did not come to an end;
    ``line`` is the place of the problem, 0 for the whole file. ``left`` counts the findings after
    the fixes. ``reads`` are the other modules that were looked into. ``verified`` are the verdicts
    of ``--verify``, ``notes`` what the code that it ran could do. ``sure`` is the text before
    suggested fixes were made.
    """

    filename: str
    source: FileText | None = None
    text: str = ""
    made: tuple[FixMade, ...] = ()
    before: FixableCounts = field(default_factory=FixableCounts)
    left: int = 0
    problem: str = ""
    line: int = 0
    unread: bool = False
    reads: Mapping[str, str] = field(default_factory=dict)
    verified: tuple[Verified, ...] = ()
    notes: tuple[str, ...] = ()
    sure: str = ""

    @property
    def fixed(self) -> int:
        """The number of fixes made, without the suggested ones."""
        return sum(one.safety != SUGGESTED for one in self.made)

    @property
    def unparsed(self) -> bool:
        """True if the file was not analysed, which a check reports as well."""
        return self.unread and self.problem.startswith("not analysed: ")

    @property
    def changed(self) -> bool:
        """True if there is a new text to write."""
        return self.source is not None and self.source.text != self.text


def fix_file(filename: str, work: FixWork) -> Fixed:
    """Fix the text of one file; nothing is written."""
    expect(work.pending)
    try:
        pending = work.pending.get(as_read(filename))
        source = _source(filename, pending)
    except NotWrittenError as error:
        return Fixed(filename, problem=f"not analysed: {error}", unread=True)
    if cannot_have_findings(source.data, filename):
        return _without_findings(filename, source.text)
    linted = Linted(filename, work)
    verifier = _verifier(filename, work)
    try:
        judge = None if verifier is None else verifier.judge
        width = line_length(filename)
        surely = replace(work.choice, suggested=frozenset())
        sure = fixed(source.text, linted.find, surely, judge, width)
        outcome = sure
        if work.choice.suggests:
            outcome = followed(sure, fixed(sure.text, linted.find, work.choice, judge, width))
    except Exception as error:
        # A bug in one fix must not keep the other files from being fixed.
        if os.environ.get("TORCHPERF_DEBUG") == "1":
            raise
        told = internal_error(error).removeprefix(f"{INTERNAL_ERROR} ")
        problem = told.replace("not analysed", "not fixed")
        return Fixed(filename, problem=problem, unread=True)
    problem = linted.problem
    if outcome.open:
        problem = "its fixes did not come to an end; please report this"
    return Fixed(
        filename,
        source,
        outcome.text,
        _made(outcome),
        _counts(outcome.first),
        len(outcome.left),
        problem,
        linted.line,
        bool(linted.problem),
        linted.reads,
        verdicts(outcome, verifier),
        () if verifier is None else tuple(verifier.notes),
        sure.text,
    )


def _source(filename: str, pending: bytes | None) -> FileText:
    """Return the text of a file, or of a notebook's cells. Raises NotWrittenError."""
    data = read_bytes(filename) if pending is None else pending
    if not is_notebook(filename):
        return decoded(filename, data)
    from flake8_torchperf.cli.notebooks.written import notebook_source

    return notebook_source(filename, data)


def _without_findings(filename: str, text: str) -> Fixed:
    try:
        require_python(text)
    except SyntaxError as error:
        problem = f"not analysed: SyntaxError: {error.msg}"
        return Fixed(filename, problem=problem, line=error.lineno or 1, unread=True)
    return Fixed(filename)


def _verifier(filename: str, work: FixWork) -> Verifier | None:
    if work.limits is None:
        return None
    from flake8_torchperf.runtime.verify.session import Verifier

    return Verifier(filename, work.ours, work.limits)


class Linted:
    """Lints the texts that one file holds, from round to round or while it is typed.

    ``reads`` are the other modules that were looked into, ``tree`` is the ast of the last text.
    ``problem`` says why a text could not be analysed, ``line`` where, and ``mistake`` where that is
    ours. ``stray`` holds line, column and message of each comment that states no contract.
    """

    def __init__(self, filename: str, work: FixWork) -> None:
        self._filename = filename
        self.stray: list[tuple[int, int, str]] = []
        self._work = work
        self.reads: dict[str, str] = {}
        self.tree: ast.Module | None = None
        self.problem = ""
        self.line = 0
        self.mistake = ""

    def find(self, text: str) -> list[Finding]:
        """Return the findings that count in a text, in the order of the file."""
        lines = io.StringIO(text, newline=None).readlines()
        read = FileProcessor(self._filename, self._work.options, lines=lines)
        reads: dict[str, str] = {}
        # The files that were read decide which files to fix once more.
        looked = look_into(
            read,
            self._work,
            reads,
            safeties=self._work.choice.safeties,
            parses_all=False,  # editors ask with every key, and `fix_file` parses by itself
        )
        if looked.passed_over:
            reads = looked.source.read_in_vain()
        self.reads.update(reads)
        self.tree = looked.source.tree
        for one in looked.records:
            if one.code in (*UNREADABLE, INTERNAL_ERROR):
                self.problem, self.line = f"not analysed: {one.message}", one.line
            if one.code == INTERNAL_ERROR:
                self.problem = self.mistake = one.message
        new, _ = without_old(looked.records, self._filename, self._work.ours.baseline)
        is_reported = reported_by(self._work.suppression, self._filename)
        self.stray = [
            (one.line, one.column, one.message)
            for one in new
            if one.code == STRAY_CONTRACT and is_reported(one)
        ]
        findings = {(f.line, f.column, f"{f.code} {f.message}"): f for f in looked.findings}
        return _in_rows(list({one.place: one for one in new}.values()), findings, is_reported)


def _in_rows(
    records: Sequence[FindingRecord], findings: Mapping[Place, Finding], is_reported: Decide
) -> list[Finding]:
    """Return the findings that are reported, one for each row of waits.

    Their fixes do not rewrite expressions of suppressed findings.
    """
    reported = {one.place for one in records if is_reported(one)}
    silenced = {
        id(findings[one.place].site.node)
        for one in records
        if one.place in findings and one.place not in reported
    }
    return [
        _without(_led(one, others, findings), silenced)
        for one, others in rows_of(records, is_reported)
        if one.place in findings and one.place in reported
    ]


def _led(
    first: FindingRecord, others: Sequence[FindingRecord], findings: Mapping[Place, Finding]
) -> Finding:
    finding = findings[first.place]
    if not others:
        return finding
    behind = tuple(findings[one.place].site.node for one in others)
    return replace(finding, message=led(first, others).message, behind=behind)


def _without(finding: Finding, silenced: set[int]) -> Finding:
    """Return the finding without the edits that rewrite a silenced expression."""
    if not silenced:
        return finding
    edits = tuple(
        edit
        for edit in finding.edits
        if not any(id(inner) in silenced for node in edit.nodes for inner in ast.walk(node))
    )
    return replace(finding, edits=edits)


def _made(outcome: FixedText) -> tuple[FixMade, ...]:
    return tuple(
        FixMade(f.line, f.column, f.code, change.edit.name, change.edit.safety, change.round)
        for change in outcome.changes
        for f in (change.finding,)
    )


def _counts(found: tuple[Finding, ...]) -> FixableCounts:
    safe = (f for f in found if any(edit.safety == SAFE for edit in f.edits))
    return FixableCounts(
        Counter(finding.code for finding in found),
        Counter(finding.code for finding in safe),
        Counter(finding.code for finding in found if finding.edits),
    )


def concerned(
    filenames: list[str], done: list[Fixed], written: frozenset[str], pending: Mapping[str, bytes]
) -> list[str]:
    """Return the files whose findings may differ now, because an answer they depend on has changed.

    ``pending`` holds the future contents of files, by their paths.
    """
    by_name = {one.filename: one for one in done}
    folders = {os.path.join(part, "") for path in written for part in _folders(path)}
    changed = written | folders
    expect(pending)
    current = Current()
    return [
        name
        for name in filenames
        if current.differs(by_name[name].reads, changed.intersection(by_name[name].reads))
    ]


@functools.cache
def _folders(path: str) -> tuple[str, ...]:
    return tuple(upwards(os.path.dirname(path)))


def as_read(path: str) -> str:
    """Return a file's path as the linter notes it when it reads the file for another one."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
