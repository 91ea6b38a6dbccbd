"""One run of ``check``: a command line in, a report out.

flake8 still decides everything that a user sees: which files are linted, ``# noqa``, selected and
ignored codes, the formats. The run skips the steps that only other checkers need, and the files
that were linted before.

Relied on, in flake8 6.0 to 7.5: `StyleGuideManager`, `reporter.make` and the formatters.
tests/cli/check/test_check.py compares the output with flake8's, and
tests/package/release/test_package.py with that of the oldest flake8.
"""

from __future__ import annotations

import configparser
import errno
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import flake8
from flake8 import defaults, exceptions
from flake8.formatting.base import BaseFormatter
from flake8.formatting.default import Nothing
from flake8.main import debug
from flake8.plugins import reporter
from flake8.style_guide import StyleGuideManager
from flake8.violation import Violation

from flake8_torchperf.cache.cached_findings import memory_of
from flake8_torchperf.cache.entries import in_words
from flake8_torchperf.cli.check_files import (
    STDIN,
    UNREADABLE,
    LintWork,
    Needs,
    content_of,
    selected,
)
from flake8_torchperf.cli.check_options import CHECK, Face, parse
from flake8_torchperf.cli.check_results import FileSteps, Results, is_finding, say_forgetful
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.cli.parser import INTERRUPTED, USAGE_ERROR, fail
from flake8_torchperf.cli.report import summary
from flake8_torchperf.cli.report.formats import report_for
from flake8_torchperf.options import given_settings
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.project.stores.shelf import keep_on
from flake8_torchperf.special_files import special_kind

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from flake8.plugins.finder import Plugins

    from flake8_torchperf.cache.memory import Memory
    from flake8_torchperf.cli.check_baseline import OldFindings
    from flake8_torchperf.cli.check_results import FileStep, Rank
    from flake8_torchperf.cli.report.reported import Gathered
    from flake8_torchperf.history.changed_lines import ChangedLines
    from flake8_torchperf.history.finding_record import FindingRecord
    from flake8_torchperf.options import Options


def run_check(argv: Sequence[str]) -> int:
    """Lint what a command line names, report, and return the exit status.

    Ctrl-C stops the run with one line.
    """
    run = Check(argv)
    try:
        run.lint()
        run.report()
    except KeyboardInterrupt:
        run.interrupted = True
    except exceptions.ExecutionError as error:
        print("There was a critical error during execution of Flake8:")
        print(error)
        return 1
    if run.interrupted:
        print("torchperf: check: interrupted; not all files were linted", file=sys.stderr)
    if run.options.count:
        print(run.reported)
    return run.status()


class Check:
    """The parts of one run: options, formatter, flake8's guide, and the results of its files."""

    formatter: BaseFormatter
    guide: StyleGuideManager
    results: Results

    def __init__(self, argv: Sequence[str]) -> None:
        self._start = time.time()
        self._seconds = 0.0
        self._plugins, self.options = read_options(argv, "check", check_places)
        if self.options.bug_report:
            information = debug.information(flake8.__version__, self._plugins)
            print(json.dumps(information, indent=2, sort_keys=True))
            raise SystemExit(0)
        self.interrupted = False
        # The number of findings that flake8 reports.
        self.reported = 0
        self._report: Gathered | None = None
        # True if findings go to a baseline or into comments, and are not printed.
        self._writes = bool(self.options.write_baseline or self.options.add_noqa)
        self._changes: ChangedLines | None = None
        self._old: OldFindings | None = None
        # True if a finding got no comment.
        self._left = False
        # True if a contract of the command line names no function.
        self._unguarded = False

    def lint(self) -> None:
        """Lint; standard input that is not text stops the run with a one-line error."""
        self.formatter = self._formatter()
        self.guide = StyleGuideManager(self.options, self.formatter)
        try:
            self.results = self._results()
            self.results.run()
        except UnicodeDecodeError as error:
            raise SystemExit(fail(f"check: standard input is no {error.encoding} text")) from error
        self._seconds = time.time() - self._start
        self._note()

    def _results(self) -> Results:
        """Return the results to come, which skip cached files and steps that we do not need."""
        ours = TorchPerfPlugin.options()
        if self.options.diff_base:
            ours = ours.for_new_code()
        needs = Needs.of(self.options, self.formatter)
        # Records depend on these too.
        more = ("check", flake8.__version__, repr(needs), str(self.options.disable_noqa))
        memory = _memory(ours, more)
        rank = _rank(self.options, ours)
        steps = FileSteps(
            apart=self._writes,
            rank=rank,
            top=self.options.top,
            at_once=self._can_show_at_once() and rank is None,
        )
        if self.options.unused_noqa:
            from flake8_torchperf.cli.noqa.unused import UnusedNoqa

            steps.unused_noqa = UnusedNoqa(self.options).records
        # The cache holds all records; old findings are left out afterwards.
        if ours.baseline is not None:
            from flake8_torchperf.cli.check_baseline import OldFindings

            self._old = OldFindings(ours.baseline)
            steps.leave_out.append(self._old.leave_out)
        if self.options.diff_base:
            self._changes = _changes(self.options.diff_base)
            steps.leave_out.append(_unchanged(self._changes))
        ours = replace(ours, cache=False, baseline=None)
        TorchPerfPlugin.use(ours)
        return Results(self.guide, LintWork(self.options, ours, needs, memory), steps)

    def _note(self) -> None:
        """Note what the run shows besides findings."""
        results, ours = self.results, TorchPerfPlugin.options()
        if self._old is not None and not results.interrupted:
            results.notes += self._old.notes(self.options.filenames)
        if self._changes is not None:
            from flake8_torchperf.cli.report.left_out import of_other_repositories

            foreign = self._changes.foreign(sorted(results.files.linted))
            results.notes += of_other_repositories(foreign)
            results.files.linted = results.files.linted.difference(foreign)
        self._note_lost_comments()
        if results.interrupted:
            return
        if ours.profile is not None:
            from flake8_torchperf.cli.report.stale import notes
            from flake8_torchperf.cli.report.unfound import unfound

            linted = [one.name for one in results.results]
            results.notes += notes(ours.profile, linted)
            results.notes += unfound(ours.profile, linted, ours)
        if ours.sync_free or ours.hot or ours.cold:
            from flake8_torchperf.contracts.unmatched import unmatched

            said, self._unguarded = unmatched(
                [name for name in results.files.names if not is_notebook(name)],
                ours,
                given_settings(self.options.command_line),
                lambda name: (content_of(name) or b"").decode("utf-8", "replace"),
            )
            results.notes += said

    def _note_lost_comments(self) -> None:
        """Note that ruff is going to delete our comments, if it is, and there are some."""
        if self.results.silenced and not self.options.isolated:
            from flake8_torchperf.cli.noqa.ruff_file import warning

            self.results.notes += filter(None, [warning(self.results.silenced)])

    def _can_show_at_once(self) -> bool:
        """True if the findings go to a terminal, through a formatter that needs no preparing."""
        plain = type(self.formatter).start is BaseFormatter.start and self._report is None
        return plain and not self.options.output_file and sys.stdout.isatty()

    def status(self) -> int:
        """Return flake8's exit status, or another after Ctrl-C or if a file can't be analysed.

        Writing a baseline is not a failure.
        """
        options = self.options
        if self.interrupted:
            return INTERRUPTED
        if options.exit_zero:
            return 0
        nothing = not self.results.files.linted
        if self._unguarded or (nothing and not options.exit_zero_on_nothing):
            return USAGE_ERROR
        if (self.results.unread or self._unparsed()) and not options.exit_zero_on_errors:
            return USAGE_ERROR
        if options.add_noqa:
            return int(self._left)
        return 0 if options.write_baseline else int(self.reported > 0)

    def _formatter(self) -> BaseFormatter:
        """Return ours, flake8's, or none where the findings go to a baseline."""
        if self._writes:
            formatter: BaseFormatter = Nothing(self.options)
        else:
            self._report = report_for(self.options)
            formatter = self._report or reporter.make(self._plugins.reporters, self.options)
        if self._report is None:
            # flake8's formatters, and those of others, do not know the cells of notebooks.
            handle = formatter.handle
            formatter.handle = lambda error: handle(_in_cell(error))  # type: ignore[method-assign]
        return formatter

    def _report_statistics(self) -> None:
        """Show how often each rule was broken, by its name, unless a formatter knows better."""
        if not self.options.statistics:
            return
        if self._report is not None:
            self._report.behind += summary.statistics(self.guide.stats)
        elif type(self.formatter).show_statistics is BaseFormatter.show_statistics:
            for line in summary.statistics(self.guide.stats):
                self.formatter._write(line)
        else:
            self.formatter.show_statistics(self.guide.stats)

    def _report_benchmarks(self) -> None:
        """Show the figures of flake8's ``--benchmark``."""
        if self.options.benchmark:
            rows: list[tuple[str, float]] = [("seconds elapsed", self._seconds)]
            for name in (*defaults.STATISTIC_NAMES, "files"):
                count = self.results.counts[name]
                rows.append((f"total {name} processed", count))
                rows.append((f"{name} processed per second", int(count / self._seconds)))
            self.formatter.show_benchmarks(rows)

    def _summary(self) -> str:
        """The lines for a terminal, "" elsewhere."""
        found: dict[str, list[FindingRecord]] = {}
        for name, one in self.results.reported:
            if is_finding(one):
                found.setdefault(name, []).append(one)
        return summary.summary(found, self.results.left_over)

    def _write(self) -> None:
        """Write the findings into a baseline or into comments, and print what was written."""
        if self.options.add_noqa:
            from flake8_torchperf.cli.noqa.add import add_noqa

            found = self.results.reported
            added = add_noqa(found, self.options.reason)
            self._left = bool(added.problems)
            said = [*added.problems, added.words]
            if added.lines and not self.results.silenced:
                self.results.silenced = found[0][0]
                self._note_lost_comments()
        else:
            from flake8_torchperf.cli.check_baseline import write_baseline

            said = [write_baseline(self.results)]
        for words in said:
            print(f"torchperf: check: {words}", file=sys.stderr)

    def _unparsed(self) -> list[tuple[str, FindingRecord]]:
        """Return what says that a file can't be read or parsed, with the file."""
        return [
            (result.name, one)
            for result in self.results.results
            for one in result.records
            if one.code in UNREADABLE
        ]

    def report(self) -> None:
        """Report, and print on standard error which files could not be analysed.

        ``--select TPF`` would hide them: E902 and E999 are not among its codes.
        """
        results = self.results
        self.interrupted = results.interrupted
        if self._report is not None:
            self._report.told = {
                one.name: {told.place: told for told in one.records} for one in results.results
            }
        self.formatter.start()
        results.report()
        self.reported = len(results.reported)
        self._report_statistics()
        self._report_benchmarks()
        self.formatter.stop()
        if self._writes and not results.interrupted:
            self._write()
        elif results.reported and not self._writes and summary.wanted(self.options):
            print(self._summary())
        silent = set(UNREADABLE).difference(selected(self.options, UNREADABLE))
        said = [
            f"{_shown(name, one.line)}: not analysed: {one.message}"
            for name, one in self._unparsed()
            if one.code in silent
        ]
        for words in dict.fromkeys((*results.notes, *said)):
            print(f"torchperf: check: {words}", file=sys.stderr)


def _changes(base: str) -> ChangedLines:
    """Return what changed since a commit; stops with a one-line error if git knows none such."""
    from flake8_torchperf.history.changed_lines import ChangedLines, ChangeError

    try:
        return ChangedLines(base)
    except ChangeError as error:
        raise SystemExit(fail(f"check: --diff-base: {error}")) from error


def _rank(options: argparse.Namespace, ours: Options) -> Rank | None:
    """Return the rank of findings by which they are sorted; None for the order of the files."""
    if options.top or options.sort == "worth":
        return lambda told: (told.worth,)
    if ours.profile is not None and options.sort is None:
        return lambda told: told.measured
    return None


def _unchanged(changes: ChangedLines) -> FileStep:
    """Return a function that leaves out findings in lines that did not change."""

    def leave_out(name: str, records: list[FindingRecord]) -> list[FindingRecord]:
        return [
            one
            for one in records
            if one.code in UNREADABLE or changes.touch(name, one.line, max(one.line, one.end_line))
        ]

    return leave_out


def _in_cell(error: Violation) -> Violation:
    if not is_notebook(error.filename):
        return error
    from flake8_torchperf.cli.notebooks.source import in_cell

    return in_cell(error)


def _shown(name: str, line: int) -> str:
    """A file and a line in it, as findings show them; line 0 for the whole file."""
    if not line:
        return name
    shown = _in_cell(Violation("E902", name, line, 1, "", None))
    return f"{shown.filename}:{shown.line_number}"


def read_options(
    argv: Sequence[str],
    command: str,
    look_at: Callable[[argparse.Namespace], None],
    face: Face = CHECK,
) -> tuple[Plugins, argparse.Namespace]:
    """Return the plugins and options of a command line and the configuration.

    Invalid ones stop the process with a one-line error; ``look_at`` may raise for the options any
    of the exceptions that are handled here.
    """
    try:
        _check_here()
        plugins, options = parse(argv, face)
        look_at(options)
    except (ValueError, OSError, configparser.Error, exceptions.Flake8Exception) as error:
        # Where flake8 itself ends with a traceback or two lines: a code in ``ignore`` that
        # can't be one, a configuration file or a report that can't be opened.
        words = in_words(error) if isinstance(error, OSError) else str(error)
        raise SystemExit(fail(f"{command}: {words}")) from error
    return plugins, options


def _check_here() -> None:
    """Raise OSError where the current folder was removed: flake8 looks there for configuration."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise FileNotFoundError("the current folder has been removed") from error


def check_places(options: argparse.Namespace) -> None:
    """Raise OSError where a path that was named can't be linted, or no report can be written."""
    for name in options.filenames:
        if name == STDIN:
            continue
        if not os.path.lexists(name) and not selected(options, ("E902",)):
            raise FileNotFoundError(errno.ENOENT, "there is no such file or folder", name or "''")
        kind = special_kind(name)
        if kind:
            # flake8 reads a file several times, and a device can be endless.
            advice = "write torchperf check - and hand the text over on standard input"
            raise OSError(errno.ESPIPE, f"is {kind}; {advice}", name)
    if getattr(options, "write_baseline", ""):
        from flake8_torchperf.cli.check_baseline import unusable

        problem = unusable(Path(options.write_baseline))
        if problem:
            raise ValueError(f"--write-baseline: {problem}")
    if options.output_file:
        os.makedirs(os.path.dirname(os.path.abspath(options.output_file)), exist_ok=True)
        with open(options.output_file, "a"):
            pass


def _memory(options: Options, more: Sequence[str]) -> Memory | None:
    """Return the cache; None if it is switched off or there is no folder for it."""
    if options.cache is False:
        return None
    memory = memory_of(options, more)
    try:
        memory.store.prepare()
    except OSError as error:
        keep_on(None)
        say_forgetful(in_words(error))
        return None
    return memory
