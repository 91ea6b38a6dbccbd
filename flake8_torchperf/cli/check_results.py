"""The files of one run and their records: recalled or linted, then reported by flake8's guide."""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, TypeAlias

from flake8 import defaults

from flake8_torchperf.cache.cached_findings import recalled
from flake8_torchperf.cache.entries import in_words
from flake8_torchperf.cli.check_files import (
    STDIN,
    UNREADABLE,
    LintWork,
    Result,
    as_they_come,
    cannot_have_findings,
    content_of,
    display_name,
    find_files,
    key,
    lint,
    number_of_jobs,
    why_no_text,
)
from flake8_torchperf.cli.noqa.ruff_file import has_our_comment
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.cli.report import left_out
from flake8_torchperf.cli.report.progress import Bar
from flake8_torchperf.digest import digest
from flake8_torchperf.history.finding_record import as_rows
from flake8_torchperf.pipeline import reported_by
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.reserved import UNUSED_NOQA
from flake8_torchperf.suppression import Suppression

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from flake8.style_guide import StyleGuideManager

    from flake8_torchperf.history.finding_record import FindingRecord

Rank: TypeAlias = "Callable[[FindingRecord], tuple[float, ...]]"
Ranked: TypeAlias = "tuple[tuple[float, ...], str, FindingRecord]"  # rank, file, record
# Takes a file and its records.
FileStep: TypeAlias = "Callable[[str, list[FindingRecord]], list[FindingRecord]]"


class Files:
    """The files of a run, with notes on what is not linted.

    ``linted`` are those in which something may be told.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        failed: list[OSError] = []
        notebooks: list[str] = []
        self.names, special = left_out.without_special([*find_files(options, failed, notebooks)])
        self.notes = [f"{one.filename}: not looked into: {one.strerror}" for one in failed]
        chosen = TorchPerfPlugin.options().chosen
        self.linted = left_out.told_of(self.names, chosen, options)
        self.jobs = number_of_jobs(options, self.names)
        unread = {str(one.filename) for one in failed}
        paths = [path for path in options.filenames or ["."] if path not in unread]
        self.notes += special
        self.notes += left_out.excluded(paths, self.names, self.linted)
        self.notes += left_out.unread_notebooks(notebooks, options)


@dataclass
class FileSteps:
    """The steps between the records of a file and its report.

    ``unused_noqa`` returns a record for each comment that silences none. ``leave_out`` are removers
    of findings, in their order. If ``apart``, each finding of a row is reported by itself. ``rank``
    sorts the findings of all files, the highest first, of which only the first ``top`` are
    reported, unless that is 0. If ``at_once``, each file is reported as soon as those before it are
    done, and not all in the end.
    """

    unused_noqa: FileStep | None = None
    leave_out: list[FileStep] = field(default_factory=list)
    apart: bool = False
    rank: Rank | None = None
    top: int = 0
    at_once: bool = False


class Results:
    """Lints the files that are not in the cache, and hands the records of all to flake8's guide."""

    def __init__(self, guide: StyleGuideManager, work: LintWork, steps: FileSteps) -> None:
        self.files = Files(work.options)
        self.notes = self.files.notes
        self.options = work.options
        self.results: list[Result] = []
        # The records that flake8 reports, each with its file.
        self.reported: list[tuple[str, FindingRecord]] = []
        self.counts: Counter[str] = Counter()
        self.interrupted = False
        # A linted file with a comment that silences our codes.
        self.silenced = ""
        # True if some file is not text that Python can read.
        self.unread = False
        # The findings that ``top`` left out.
        self.left_over = 0
        self._guide = guide
        self._work = work
        self._steps = steps
        self._suppression = Suppression(work.options, guide)
        self._order = sorted(display_name(name, work.options) for name in self.files.names)
        self._waiting: dict[str, list[Result]] = {}
        self._bar = Bar(len(self.files.names), work.options)

    def run(self) -> None:
        """Take records from the cache and lint the other files, several of them in parallel.

        After Ctrl-C, the findings so far are reported.
        """
        try:
            # In the order in which they are shown.
            self._lint([name for name in sorted(self.files.names) if not self._recall(name)])
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self._bar.hide()
        self.counts.update(files=len(self.files.names))
        for result in self.results:
            self.counts.update(result.counts)

    def _lint(self, unknown: Sequence[str]) -> None:
        problem = ""
        jobs = min(self.files.jobs, len(unknown))
        for result, why in as_they_come(lint, unknown, self._work, jobs):
            problem = problem or why
            self._arrive(result)
        memory = self._work.memory
        if memory is not None and unknown and not problem:
            try:
                memory.store.sweep()
            except OSError as error:
                problem = in_words(error)
        if problem:
            self._bar.hide()
            say_forgetful(problem)

    def _arrive(self, result: Result) -> None:
        """Take a file's records through the steps; report them in their turn."""
        name, records, _ = result
        steps = self._steps
        unused = [] if steps.unused_noqa is None else steps.unused_noqa(name, records)
        for step in steps.leave_out:
            records = step(name, records)
        if not steps.apart:
            records = as_rows(records, reported_by(self._suppression, name))
        shown = result._replace(records=[*records, *unused])
        self.results.append(shown)
        self._bar.advance()
        if steps.at_once:
            self._waiting.setdefault(name, []).append(shown)
            while self._order and self._waiting.get(self._order[0]):
                self._show(self._waiting[self._order.pop(0)].pop(0))

    def _show(self, result: Result) -> None:
        """Report one file now."""
        if result.records:
            self._bar.hide()
        self._report(result)
        if result.records:
            sys.stdout.flush()
            self._bar.show()

    def _report(self, result: Result) -> None:
        self._hand_over(result.name, sorted(result.records, key=attrgetter("line", "column")))

    def _hand_over(self, name: str, records: Iterable[FindingRecord]) -> None:
        """Let flake8's guide decide about records and print them."""
        with self._guide.processing_file(name):  # type: ignore[attr-defined]  # a wrong stub
            self.reported += [
                (name, one)
                for one in records
                if self._guide.handle_error(
                    one.code, name, one.line, one.column, one.message, one.statement
                )
            ]

    def report(self) -> None:
        """Report the findings that were not shown yet."""
        self.results.sort(key=itemgetter(0))
        if self._steps.rank is not None:
            self._report_by_rank(self._steps.rank)
        elif self._steps.at_once:
            for name in self._order:
                for result in self._waiting.pop(name, ()):
                    self._show(result)
        else:
            for result in self.results:
                self._report(result)

    def _report_by_rank(self, rank: Rank) -> None:
        """Report by falling rank; of one rank in the usual order, what is no finding last."""
        ranked: list[Ranked] = [
            (rank(one) if is_finding(one) else (), name, one)
            for name, records, _ in self.results
            for one in sorted(records, key=attrgetter("code", "line"))
        ]
        ranked.sort(key=itemgetter(0), reverse=True)
        kept = self._best(ranked) if self._steps.top else ranked
        for name, group in itertools.groupby(kept, key=itemgetter(1)):
            self._hand_over(name, [one for _, _, one in group])

    def _best(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """Return the first findings of those that are reported, and all that is no finding."""
        best: list[Ranked] = []
        shown = 0
        for rank, name, one in ranked:
            if rank and reported_by(self._suppression, name)(one):
                shown += 1
            if shown <= self._steps.top or not rank:
                best.append((rank, name, one))
        self.left_over = max(shown - self._steps.top, 0)
        return best

    def _recall(self, filename: str) -> bool:
        """Put a file's records in place if they are known without linting."""
        records = self._known(filename)
        if records is None:
            return False
        counts = dict.fromkeys(defaults.STATISTIC_NAMES, 0)
        self._arrive(Result(display_name(filename, self.options), records, counts))
        return True

    def _known(self, filename: str) -> list[FindingRecord] | None:
        needs, memory = self._work.needs, self._work.memory
        if needs.counts:
            return None
        data = content_of(filename)
        if data is None:
            return None
        problem = "" if filename == STDIN else why_no_text(data)
        if not self.silenced and filename != STDIN and has_our_comment(data):
            self.silenced = filename
        if problem:
            self.unread = True
            self.notes.append(f"{filename}: taken for Latin-1, for Python can't read it: {problem}")
        if memory is None or is_notebook(filename):
            return None
        if not needs.syntax and cannot_have_findings(data, display_name(filename, self.options)):
            # An empty __init__.py takes no entry.
            return [] if not data.strip() or memory.parsed(digest(data)) else None
        if filename != STDIN:
            memory.note(os.path.abspath(filename), digest(data))
        return recalled(memory, key(memory, filename, data, self.options))


def is_finding(told: FindingRecord) -> bool:
    """True for a finding of the linter, and not of flake8 or about a comment."""
    return told.code not in (*UNREADABLE, UNUSED_NOQA)


def say_forgetful(problem: str) -> None:
    """Print why nothing can be cached, and what to do about it."""
    advice = "name another folder with --cache-dir, or --no-cache"
    print(f"torchperf: check: findings can't be remembered: {problem}; {advice}", file=sys.stderr)
