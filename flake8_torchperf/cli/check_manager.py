"""The files of one run through flake8's manager: files that are not in the cache are linted."""

from __future__ import annotations

import itertools
import os
import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8 import checker, defaults

from flake8_torchperf.cache.entries import in_words
from flake8_torchperf.cli.check_files import (
    FLAKE8S,
    STDIN,
    LintWork,
    as_they_come,
    cannot_have_findings,
    content_of,
    display_name,
    key,
    lint,
    place_of,
    recall,
    why_no_text,
)
from flake8_torchperf.cli.noqa.ruff_file import has_our_comment
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.cli.report.progress import Bar
from flake8_torchperf.digest import digest
from flake8_torchperf.history.finding_record import led, restored, rows_of
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.suppression import Suppression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flake8.plugins.finder import Checkers
    from flake8.style_guide import StyleGuideManager
    from flake8.violation import Violation

    from flake8_torchperf.history.finding_record import FindingRecord, Place

# Returns those of a file's rows that are to be reported.
Ranked: TypeAlias = "tuple[tuple[float, ...], str, Any]"  # rank, file, flake8's row
Shown: TypeAlias = "tuple[int, int]"  # flake8's two counts
LeaveOut: TypeAlias = "Callable[[str, list[Any], dict[Place, FindingRecord]], list[Any]]"


class Manager(checker.Manager):
    """flake8's manager, which lints only the files whose findings are not in the cache."""

    work: LintWork
    # Report each file as soon as those before it are done, and not all in the end.
    at_once = False
    interrupted = False
    # The files in which something may be told.
    linted: frozenset[str] = frozenset()
    # A linted file with a comment that silences our codes.
    silenced = ""
    # Is some file no text that Python can read?
    unread = False
    # Report the findings of all files by the rank of a record, the highest first.
    rank: Callable[[FindingRecord], tuple[float, ...]] | None = None
    # Report only so many of these, if not 0; the others are counted.
    top = 0
    left_over = 0
    # Removes old findings from rows; takes the file, its rows, and the records of our findings.
    leave_out: LeaveOut | None = None
    # Report each finding of a row by itself.
    apart = False
    # Returns a row for each comment of a file that silences none of its rows.
    unused_noqa: Callable[[str, list[Any]], list[Any]] | None = None

    def __init__(
        self, style_guide: StyleGuideManager, plugins: Checkers, argv: Sequence[str]
    ) -> None:
        super().__init__(style_guide, plugins, argv)
        self._waiting: dict[str, list[Any]] = {}
        self._shown = (0, 0)
        self._suppression = Suppression(self.options, style_guide)

    def start(self) -> None:
        """Find the files, and note what is not going to be linted."""
        from flake8_torchperf.cli.report import left_out

        failed, books = _walking_aloud(super().start)
        self.notes = [f"{one.filename}: not looked into: {one.strerror}" for one in failed]
        self.filenames, special = left_out.without_special(self.filenames)
        chosen = TorchPerfPlugin.options().chosen
        self.linted = left_out.told_of(self.filenames, chosen, self.options)
        unread = {str(one.filename) for one in failed}
        paths = [path for path in self.options.filenames or ["."] if path not in unread]
        self.notes += special
        self.notes += left_out.excluded(paths, self.filenames, self.linted)
        self.notes += left_out.unread_notebooks(books, self.options)

    def run(self) -> None:
        """Take findings from the cache and lint the other files, several of them in parallel.

        After Ctrl-C, the findings so far are reported.
        """
        self.told: dict[str, dict[Place, FindingRecord]] = {}
        self._order = sorted(display_name(name, self.options) for name in self.filenames)
        self._bar = Bar(len(self.filenames), self.options)
        try:
            # In the order in which they are shown.
            self._lint([name for name in sorted(self.filenames) if not self._recall(name)])
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self._bar.hide()

    def _lint(self, unknown: Sequence[str]) -> None:
        problem = ""
        for result, why in as_they_come(lint, unknown, self.work, min(self.jobs, len(unknown))):
            problem = problem or why
            self._arrive(*result)
        memory = self.work.memory
        if memory is not None and unknown and not problem:
            try:
                memory.store.sweep()
            except OSError as error:
                problem = in_words(error)
        if problem:
            self._bar.hide()
            say_forgetful(problem)

    def _arrive(self, name: str, rows: Sequence[Any], counts: dict[str, int]) -> None:
        """Split a file's rows into flake8's part and our records; show them in their turn."""
        found = (restored(row[FLAKE8S:]) for row in rows)
        self.told[name] = {one.place: one for one in found if one is not None}
        kept = [row[:FLAKE8S] for row in rows]
        unused = [] if self.unused_noqa is None else self.unused_noqa(name, kept)
        if self.leave_out is not None:
            kept = self.leave_out(name, kept, self.told[name])
        if not self.apart:
            kept = self._in_rows(name, kept)
        self.results.append((name, kept + unused, counts))
        self._bar.advance()
        if self.at_once:
            self._waiting.setdefault(name, []).append(self.results[-1])
            while self._order and self._waiting.get(self._order[0]):
                self._show(self._waiting[self._order.pop(0)].pop(0))

    def _in_rows(self, name: str, rows: list[Any]) -> list[Any]:
        """Return flake8's rows of a file, those that follow in a row of waits left to its first."""
        told = self.told[name]
        found = [(row, told.get(place_of(row))) for row in rows]
        if not any(one is not None and one.row for _, one in found):
            return rows
        texts = {one.place: row[4] for row, one in found if one is not None}

        def is_reported(one: FindingRecord) -> bool:
            return self._suppression.reports(one.code, name, one.line, texts[one.place])

        ours = [one for _, one in found if one is not None]
        shown = {id(one): led(one, others) for one, others in rows_of(ours, is_reported)}
        kept: list[Any] = []
        for row, one in found:
            new = None if one is None else shown.get(id(one))
            if new is not None:
                told[new.place] = new
                kept.append((*row[:3], new.text.partition(" ")[2], row[4]))
            elif one is None:
                kept.append(row)
        return kept

    def _show(self, result: Any) -> None:
        """Report one file now."""
        everything, self.results = self.results, [result]
        if result[1]:
            self._bar.hide()
        found, reported = super().report()
        self._shown = (self._shown[0] + found, self._shown[1] + reported)
        self.results = everything
        if result[1]:
            sys.stdout.flush()
            self._bar.show()

    def report(self) -> tuple[int, int]:
        """Report the findings that were not shown yet; returns flake8's two counts."""
        if self.rank is not None:
            return self._report_by_rank(self.rank)
        if not self.at_once:
            return super().report()
        for name in self._order:
            for result in self._waiting.pop(name, ()):
                self._show(result)
        self.results.sort(key=itemgetter(0))
        return self._shown

    def _report_by_rank(self, rank: Callable[[FindingRecord], tuple[float, ...]]) -> Shown:
        """Report by falling rank; of one rank in the usual order, what is no finding last."""
        rows = [
            (() if told is None else rank(told), name, row)
            for name, rows, _ in sorted(self.results, key=itemgetter(0))
            for row in sorted(rows, key=itemgetter(0, 1))
            for told in (self.told[name].get(place_of(row)),)
        ]
        rows.sort(key=itemgetter(0), reverse=True)
        kept = self._best(rows) if self.top else rows
        reported = 0
        for name, group in itertools.groupby(kept, key=itemgetter(1)):
            with self.style_guide.processing_file(name):
                listed = [row for _, _, row in group]
                reported += self._handle_results(name, listed)  # type: ignore[attr-defined]
        for _, _, counts in self.results:
            for statistic in defaults.STATISTIC_NAMES:
                self.statistics[statistic] += counts[statistic]
        return len(kept), reported

    def _best(self, rows: list[Ranked]) -> list[Ranked]:
        """Return the first findings of those that are reported, and all that is no finding."""
        best: list[Ranked] = []
        shown = 0
        for one in rows:
            rank, name, (code, line, _, _, text) = one
            if rank and self._suppression.reports(code, name, line, text):
                shown += 1
            if shown <= self.top or not rank:
                best.append(one)
        self.left_over = max(shown - self.top, 0)
        return best

    def told_of(self, error: Violation) -> FindingRecord | None:
        """Return the record of a finding that flake8 reports; None if it is not ours."""
        place = (error.line_number, error.column_number - 1, f"{error.code} {error.text}")
        return self.told.get(error.filename, {}).get(place)

    def _recall(self, filename: str) -> bool:
        """Put a file's results in place if they are known without linting."""
        rows = self._known(filename)
        if rows is None:
            return False
        counts = dict.fromkeys(defaults.STATISTIC_NAMES, 0)
        self._arrive(display_name(filename, self.options), rows, counts)
        return True

    def _known(self, filename: str) -> list[Any] | None:
        work = self.work
        if work.needs.counts:
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
        if work.memory is None or is_notebook(filename):
            return None
        if not work.needs.syntax and cannot_have_findings(
            data, display_name(filename, self.options)
        ):
            # An empty __init__.py takes no entry.
            return [] if not data.strip() or work.memory.parsed(digest(data)) else None
        if filename != STDIN:
            work.memory.note(os.path.abspath(filename), digest(data))
        return recall(work.memory, key(work.memory, filename, data, self.options))


def _walking_aloud(find_files: Callable[[], None]) -> tuple[list[OSError], list[str]]:
    """Let flake8 find its files; returns errors of folders it could not list, and notebooks.

    flake8 calls ``os.walk`` without an ``onerror``, so it treats such a folder as empty.
    """
    failed: list[OSError] = []
    books: list[str] = []
    walk = os.walk

    def aloud(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
        for folder, folders, files in walk(top, onerror=failed.append):
            books.extend(os.path.join(folder, one) for one in files if is_notebook(one))
            yield folder, folders, files

    os.walk = aloud  # type: ignore[assignment]  # as flake8 calls it
    try:
        find_files()
    finally:
        os.walk = walk
    return failed, books


def say_forgetful(problem: str) -> None:
    """Print why nothing can be cached, and what to do about it."""
    advice = "name another folder with --cache-dir, or --no-cache"
    print(f"torchperf: check: findings can't be remembered: {problem}; {advice}", file=sys.stderr)
