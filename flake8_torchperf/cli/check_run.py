"""flake8's own run with only our checker: a command line in, flake8's report out.

flake8 still decides everything that a user sees: which files are linted, ``# noqa``, selected and
ignored codes, the formats, the exit status. The run skips the steps that only other checkers need,
and the files that were linted before.

Relied on, in flake8 6.0 to 7.5: that `Application` makes its parts in ``make_*`` methods, and that
`checker.Manager.run` leaves a name, rows and counts for each of ``filenames`` in ``results``.
tests/cli/test_check.py compares the output with flake8's, tests/package/test_package.py with that
of the oldest flake8.
"""

from __future__ import annotations

import configparser
import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flake8
from flake8 import exceptions
from flake8.formatting.base import BaseFormatter
from flake8.main import debug
from flake8.main.application import Application
from flake8.violation import Violation

from flake8_torchperf.cache.entries import Store, in_words
from flake8_torchperf.cache.folder import cache_folder
from flake8_torchperf.cache.key import conditions
from flake8_torchperf.cache.memory import Memory
from flake8_torchperf.cli.check_files import (
    STDIN,
    UNREADABLE,
    LintWork,
    Needs,
    content_of,
    place_of,
    selected,
)
from flake8_torchperf.cli.check_manager import Manager, say_forgetful
from flake8_torchperf.cli.check_options import CHECK, Face, parse
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

    from flake8_torchperf.cli.check_baseline import Findings, OldFindings
    from flake8_torchperf.cli.check_manager import LeaveOut
    from flake8_torchperf.cli.report.reported import Gathered
    from flake8_torchperf.history.changed_lines import ChangedLines
    from flake8_torchperf.history.finding_record import FindingRecord, Place
    from flake8_torchperf.options import Options


class CheckApplication(Application):
    """flake8's, with our checker alone and a memory."""

    _report: Gathered | None = None
    _handled: list[Violation] | None = None
    _old: OldFindings | None = None
    # The findings to write to a baseline or into comments, if requested.
    _written: Findings | None = None
    # Is there a finding that got no comment?
    _left = False
    _interrupted = False
    # Could some file not be read or parsed?
    _unread = False
    _changes: ChangedLines | None = None
    # Was no file linted?
    _nothing = False
    # Does a contract of the command line name no function?
    _unguarded = False

    def initialize(self, argv: Sequence[str]) -> None:
        """Parse the command line and the configuration, and make the parts."""
        self.plugins, self.options = read_options(argv, "check", check_places)
        if self.options.bug_report:
            information = debug.information(flake8.__version__, self.plugins)
            print(json.dumps(information, indent=2, sort_keys=True))
            raise SystemExit(0)
        self.make_formatter()
        self.make_guide()
        self.make_file_checker_manager(argv)

    def make_file_checker_manager(self, argv: Sequence[str]) -> None:
        """Make the manager that skips cached files and steps that our findings do not need."""
        assert self.guide is not None
        assert self.plugins is not None
        assert self.options is not None
        ours = TorchPerfPlugin.options()
        if self.options.diff_base:
            ours = ours.for_new_code()
        needs = Needs.of(self.options, self.formatter)
        # The contents of rows depend on these too.
        more = ("check", flake8.__version__, repr(needs), str(self.options.disable_noqa))
        memory = _memory(ours, more)
        # Only the manager caches: a cache in the plugin would hide which files were read.
        # The cache holds all rows; old findings are left out afterwards.
        if ours.baseline is not None:
            from flake8_torchperf.cli.check_baseline import OldFindings

            self._old = OldFindings(ours.baseline)
        ours = replace(ours, cache=False, baseline=None)
        TorchPerfPlugin.use(ours)
        manager = Manager(self.guide, self.plugins.checkers, argv)
        manager.work = LintWork(self.plugins.checkers, self.options, ours, needs, memory)
        manager.apart = bool(self.options.write_baseline or self.options.add_noqa)
        if self.options.unused_noqa:
            from flake8_torchperf.cli.noqa.unused import UnusedNoqa

            manager.unused_noqa = UnusedNoqa(self.options).rows
        manager.leave_out = self._old.leave_out if self._old is not None else None
        if self.options.diff_base:
            self._changes = _changes(self.options.diff_base)
            manager.leave_out = _unchanged(self._changes, manager.leave_out)
        manager.rank = _rank(self.options, ours)
        manager.top = self.options.top
        manager.at_once = self._can_show_at_once() and manager.rank is None
        self.file_checker_manager = manager

    def run_checks(self) -> None:
        """Lint; standard input that is not text stops the run with a one-line error."""
        try:
            super().run_checks()
        except UnicodeDecodeError as error:
            raise SystemExit(fail(f"check: standard input is no {error.encoding} text")) from error
        manager = self.file_checker_manager
        assert isinstance(manager, Manager)
        if self._old is not None and not manager.interrupted:
            manager.notes += self._old.notes(manager)
        if self._changes is not None:
            from flake8_torchperf.cli.report.left_out import of_other_repositories

            foreign = self._changes.foreign(sorted(manager.linted))
            manager.notes += of_other_repositories(foreign)
            manager.linted = manager.linted.difference(foreign)
        self._note_lost_comments(manager)
        path = TorchPerfPlugin.options().profile
        if path is not None and not manager.interrupted:
            from flake8_torchperf.cli.report.stale import notes
            from flake8_torchperf.cli.report.unfound import unfound

            linted = [name for name, _, _ in manager.results]
            manager.notes += notes(path, linted)
            manager.notes += unfound(path, linted, TorchPerfPlugin.options())
        ours = TorchPerfPlugin.options()
        if (ours.sync_free or ours.hot or ours.cold) and not manager.interrupted:
            from flake8_torchperf.contracts.unmatched import unmatched

            assert self.options is not None
            said, self._unguarded = unmatched(
                [name for name in manager.filenames if not is_notebook(name)],
                ours,
                given_settings(self.options.command_line),
                lambda name: (content_of(name) or b"").decode("utf-8", "replace"),
            )
            manager.notes += said

    def _note_lost_comments(self, manager: Manager) -> None:
        """Note that ruff is going to delete our comments, if it is, and there are some."""
        assert self.options is not None
        if manager.silenced and not self.options.isolated:
            from flake8_torchperf.cli.noqa.ruff_file import warning

            manager.notes += filter(None, [warning(manager.silenced)])

    def _can_show_at_once(self) -> bool:
        """True if the findings go to a terminal, through a formatter that needs no preparing."""
        assert self.options is not None
        plain = type(self.formatter).start is BaseFormatter.start and self._report is None
        return plain and not self.options.output_file and sys.stdout.isatty()

    def _run(self, argv: Sequence[str]) -> None:
        """Run; Ctrl-C stops the run with one line."""
        try:
            super()._run(argv)  # type: ignore[misc]  # not among the types
        except KeyboardInterrupt:
            self._interrupted = True
        manager = self.file_checker_manager
        if isinstance(manager, Manager) and manager.interrupted:
            self._interrupted = True
        if self._interrupted:
            print("torchperf: check: interrupted; not all files were linted", file=sys.stderr)

    def exit_code(self) -> int:
        """Return flake8's exit status, or another after Ctrl-C or if a file can't be analysed.

        Writing a baseline is not a failure.
        """
        assert self.options is not None
        if self._interrupted:
            return INTERRUPTED
        status = super().exit_code()
        if self.catastrophic_failure or self.options.exit_zero:
            return status
        if self._unguarded or (self._nothing and not self.options.exit_zero_on_nothing):
            return USAGE_ERROR
        if self._unread and not self.options.exit_zero_on_errors:
            return USAGE_ERROR
        if self.options.add_noqa:
            return int(self._left)
        return 0 if self.options.write_baseline else status

    def make_formatter(self) -> None:
        """Make ours, flake8's, or none where the findings go to a baseline."""
        assert self.options is not None
        if self.options.write_baseline or self.options.add_noqa:
            from flake8_torchperf.cli.check_baseline import Findings

            self._written = Findings(self.options)
            self.formatter = self._written
            return
        self._report = report_for(self.options)
        if self._report is None:
            super().make_formatter()
            self._name_cells()
        else:
            self.formatter = self._report
        if summary.wanted(self.options):
            self._note_what_is_handled()

    def _name_cells(self) -> None:
        """Let flake8's formatters, and those of others, show the cells of notebooks."""
        assert self.formatter is not None
        handle = self.formatter.handle
        self.formatter.handle = lambda error: handle(_in_cell(error))

    def _note_what_is_handled(self) -> None:
        """Keep the findings that are reported, for the summary."""
        assert self.formatter is not None
        handle = self.formatter.handle
        self._handled = []

        def noting(error: Violation) -> None:
            handle(error)
            assert self._handled is not None
            self._handled.append(error)

        self.formatter.handle = noting

    def report_statistics(self) -> None:
        """Show how often each rule was broken, by its name, unless a formatter knows better."""
        assert self.options is not None
        assert self.guide is not None
        assert self.formatter is not None
        if not self.options.statistics:
            return
        if self._report is not None:
            self._report.behind += summary.statistics(self.guide.stats)
        elif type(self.formatter).show_statistics is BaseFormatter.show_statistics:
            for line in summary.statistics(self.guide.stats):
                self.formatter._write(line)
        else:
            super().report_statistics()

    def _summary(self) -> str:
        """The lines for a terminal, "" elsewhere."""
        assert isinstance(self.file_checker_manager, Manager)
        found: dict[str, list[FindingRecord]] = {}
        for one in self._handled or ():
            told = self.file_checker_manager.told_of(one)
            if told is not None:
                found.setdefault(one.filename, []).append(told)
        return summary.summary(found, self.file_checker_manager.left_over)

    def _write(self, found: Sequence[Violation]) -> None:
        """Write the findings into a baseline or into comments, and print what was written."""
        assert self.options is not None
        assert isinstance(self.file_checker_manager, Manager)
        if self.options.add_noqa:
            from flake8_torchperf.cli.noqa.add import add_noqa

            added = add_noqa(found, self.options.reason)
            self._left = bool(added.problems)
            said = [*added.problems, added.words]
            if added.lines and not self.file_checker_manager.silenced:
                self.file_checker_manager.silenced = found[0].filename
                self._note_lost_comments(self.file_checker_manager)
        else:
            from flake8_torchperf.cli.check_baseline import write_baseline

            said = [write_baseline(self.file_checker_manager, found)]
        for words in said:
            print(f"torchperf: check: {words}", file=sys.stderr)

    def report(self) -> None:
        """Report, and print on standard error which files could not be analysed.

        ``--select TPF`` would hide them: E902 and E999 are not among its codes.
        """
        assert self.options is not None
        assert isinstance(self.file_checker_manager, Manager)
        if self._report is not None:
            self._report.told = self.file_checker_manager.told
        super().report()
        if self._handled:
            print(self._summary())
        complete = not (self.catastrophic_failure or self.file_checker_manager.interrupted)
        if self._written is not None and complete:
            self._write(self._written.found)
        self._nothing = not self.file_checker_manager.linted
        self._unread = self.file_checker_manager.unread or any(
            row[0] in UNREADABLE for _, rows, _ in self.file_checker_manager.results for row in rows
        )
        silent = set(UNREADABLE).difference(selected(self.options, UNREADABLE))
        said = [
            f"{_shown(name, line)}: not analysed: {text}"
            for name, rows, _ in self.file_checker_manager.results
            for code, line, _, text, _ in rows
            if code in silent
        ]
        for words in dict.fromkeys((*self.file_checker_manager.notes, *said)):
            print(f"torchperf: check: {words}", file=sys.stderr)


def _changes(base: str) -> ChangedLines:
    """Return what changed since a commit; stops with a one-line error if git knows none such."""
    from flake8_torchperf.history.changed_lines import ChangedLines, ChangeError

    try:
        return ChangedLines(base)
    except ChangeError as error:
        raise SystemExit(fail(f"check: --diff-base: {error}")) from error


def _rank(
    options: argparse.Namespace, ours: Options
) -> Callable[[FindingRecord], tuple[float, ...]] | None:
    """Return the rank of findings by which they are sorted; None for the order of the files."""
    if options.top or options.sort == "worth":
        return lambda told: (told.worth,)
    if ours.profile is not None and options.sort is None:
        return lambda told: told.measured
    return None


def _unchanged(changes: ChangedLines, before: LeaveOut | None) -> LeaveOut:
    """Return a function that leaves out findings in lines that did not change.

    ``before`` has left out others.
    """

    def leave_out(name: str, rows: list[Any], told: dict[Place, FindingRecord]) -> list[Any]:
        kept = rows if before is None else before(name, rows, told)
        return [row for row in kept if row[0] in UNREADABLE or changed(name, row, told)]

    def changed(name: str, row: Any, told: dict[Place, FindingRecord]) -> bool:
        known = told.get(place_of(row))
        return changes.touch(name, row[1], max(row[1], known.end_line if known else 0))

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
    store = Store(cache_folder(options.cache_folder))
    try:
        store.prepare()
    except OSError as error:
        say_forgetful(in_words(error))
        return None
    keep_on(store)
    return Memory(store, conditions(options, more))
