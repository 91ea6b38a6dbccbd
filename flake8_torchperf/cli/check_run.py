"""flake8's own run with our checker alone: a command line in, flake8's report out.

Everything a person sees of flake8 stays flake8's: which files are linted, ``# noqa``, what is
selected and ignored, the formats, the exit status. Left out is what only other checkers need, and
the work on files that were linted before.

Relied on, in flake8 6.0 to 7.5: that `Application` makes its parts in ``make_*`` methods, and that
`checker.Manager.run` leaves a name, rows and counts for each of ``filenames`` in ``results``.
tests/test_check.py holds the output against flake8's; tests/test_package.py does, with the oldest.
"""

from __future__ import annotations

import configparser
import errno
import json
import os
import stat
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import flake8
from flake8 import checker, defaults, exceptions
from flake8.main import debug
from flake8.main.application import Application

from flake8_torchperf.cache.key import conditions
from flake8_torchperf.cache.memory import Memory
from flake8_torchperf.cache.place import cache_folder
from flake8_torchperf.cache.store import Store, in_words
from flake8_torchperf.cli.check_files import (
    STDIN,
    UNREADABLE,
    Needs,
    Work,
    cannot_have_findings,
    content_of,
    display_name,
    key,
    lint_all,
    recall,
    selected,
    why_no_text,
)
from flake8_torchperf.cli.check_options import CHECK, Face, parse
from flake8_torchperf.cli.parser import fail
from flake8_torchperf.digest import digest
from flake8_torchperf.plugin import TorchPerfPlugin

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from flake8.plugins.finder import Plugins

    from flake8_torchperf.options import Options


class Manager(checker.Manager):
    """flake8's, linting only the files whose findings nobody remembers."""

    work: Work

    def start(self) -> None:
        """Find the files, and say of which folders there are none."""
        self.notes: list[str] = []
        failed = _walking_aloud(super().start)
        self.notes += [f"{one.filename}: not looked into: {one.strerror}" for one in failed]
        unread = {str(one.filename) for one in failed}
        for path in self.options.filenames or ["."]:
            inside = os.path.join(path, "")
            if path in unread or not os.path.isdir(path):
                continue
            if not any(name.startswith(inside) for name in self.filenames):
                self.notes.append(f"{path}: there is no Python file in it that is not excluded")

    def run(self) -> None:
        """Recall what is known, and lint the rest, in parallel where that is more than one."""
        try:
            unknown = [name for name in self.filenames if not self._recall(name)]
            results, problem = lint_all(unknown, self.work, min(self.jobs, len(unknown)))
        except KeyboardInterrupt:
            raise exceptions.EarlyQuit("Early quit while running checks") from None
        self.results += results
        memory = self.work.memory
        if memory is not None and unknown and not problem:
            try:
                memory.store.sweep()
            except OSError as error:
                problem = in_words(error)
        if problem:
            _say_forgetful(problem)

    def _recall(self, filename: str) -> bool:
        """Put a file's results in place if they are known without linting."""
        rows = self._known(filename)
        if rows is None:
            return False
        counts = dict.fromkeys(defaults.STATISTIC_NAMES, 0)
        self.results.append((display_name(filename, self.options), rows, counts))
        return True

    def _known(self, filename: str) -> list[Any] | None:
        work = self.work
        if work.needs.counts:
            return None
        data = content_of(filename)
        if data is None:
            return None
        if not work.needs.syntax and cannot_have_findings(
            data, display_name(filename, self.options)
        ):
            return []
        problem = "" if filename == STDIN else why_no_text(data)
        if problem:
            self.notes.append(f"{filename}: taken for Latin-1, for Python can't read it: {problem}")
        if work.memory is None:
            return None
        if filename != STDIN:
            work.memory.note(os.path.abspath(filename), digest(data))
        return recall(work.memory, key(work.memory, filename, data, self.options))


class CheckApplication(Application):
    """flake8's, with our checker alone and a memory."""

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
        """Make the manager that leaves out what can be left out."""
        assert self.guide is not None
        assert self.plugins is not None
        assert self.options is not None
        ours = TorchPerfPlugin.options()
        needs = Needs.of(self.options, self.formatter)
        # What a row holds depends on these too.
        more = ("check", flake8.__version__, repr(needs), str(self.options.disable_noqa))
        memory = _memory(ours, more)
        # One memory is enough: the plugin's own would hide from ours what was read for a file.
        ours = replace(ours, cache=False)
        TorchPerfPlugin.use(ours)
        manager = Manager(self.guide, self.plugins.checkers, argv)
        manager.work = Work(self.plugins.checkers, self.options, ours, needs, memory)
        self.file_checker_manager = manager

    def run_checks(self) -> None:
        """Lint; standard input that is no text ends the run with one line."""
        try:
            super().run_checks()
        except UnicodeDecodeError as error:
            raise SystemExit(fail(f"check: standard input is no {error.encoding} text")) from error

    def report(self) -> None:
        """Report, and tell on standard error which files could not be analysed.

        ``--select TPF`` would pass over them: E902 and E999 are not among its codes.
        """
        super().report()
        assert self.options is not None
        assert isinstance(self.file_checker_manager, Manager)
        silent = set(UNREADABLE).difference(selected(self.options, UNREADABLE))
        said = [
            f"{f'{name}:{line}' if line else name}: not analysed: {text}"
            for name, rows, _ in self.file_checker_manager.results
            for code, line, _, text, _ in rows
            if code in silent
        ]
        for words in dict.fromkeys((*self.file_checker_manager.notes, *said)):
            print(f"torchperf: check: {words}", file=sys.stderr)


def read_options(
    argv: Sequence[str],
    command: str,
    look_at: Callable[[argparse.Namespace], None],
    face: Face = CHECK,
) -> tuple[Plugins, argparse.Namespace]:
    """The plugins and options of a command line and the configuration; or the end, in one line.

    ``look_at`` may object to the options with any of the exceptions that are told here.
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


def _walking_aloud(find_files: Callable[[], None]) -> list[OSError]:
    """Let flake8 find its files; returns which folders it could not list.

    It leaves ``os.walk`` without an ``onerror``, so that such a folder is as good as empty.
    """
    failed: list[OSError] = []
    walk = os.walk
    os.walk = partial(walk, onerror=failed.append)
    try:
        find_files()
    finally:
        os.walk = walk
    return failed


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
        if os.path.exists(name) and stat.S_ISFIFO(os.stat(name).st_mode):
            # flake8 reads a file several times.
            problem = "is a pipe; write torchperf check - and hand the text over on standard input"
            raise OSError(errno.ESPIPE, problem, name)
    if options.output_file:
        os.makedirs(os.path.dirname(os.path.abspath(options.output_file)), exist_ok=True)
        with open(options.output_file, "a"):
            pass


def _memory(options: Options, more: Sequence[str]) -> Memory | None:
    """What is remembered, unless a person wants none or there is no place for it."""
    if options.cache is False:
        return None
    store = Store(cache_folder(options.cache_folder))
    try:
        store.prepare()
    except OSError as error:
        _say_forgetful(in_words(error))
        return None
    return Memory(store, conditions(options, more))


def _say_forgetful(problem: str) -> None:
    advice = "name another folder with --cache-dir, or --no-cache"
    print(f"torchperf: check: findings can't be remembered: {problem}; {advice}", file=sys.stderr)
