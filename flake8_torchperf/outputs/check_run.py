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
import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import flake8
from flake8 import checker, defaults, exceptions
from flake8.main import debug
from flake8.main.application import Application

from flake8_torchperf.cache.key import conditions
from flake8_torchperf.cache.memory import Memory
from flake8_torchperf.cache.place import cache_folder
from flake8_torchperf.cache.store import Store
from flake8_torchperf.digest import digest
from flake8_torchperf.outputs.check_files import (
    STDIN,
    Needs,
    Work,
    cannot_have_findings,
    content_of,
    display_name,
    key,
    lint_all,
    recall,
)
from flake8_torchperf.outputs.check_options import parse
from flake8_torchperf.outputs.cli import fail
from flake8_torchperf.plugin import TorchPerfPlugin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.options import Options


class Manager(checker.Manager):
    """flake8's, linting only the files whose findings nobody remembers."""

    work: Work

    def run(self) -> None:
        """Recall what is known, and lint the rest, in parallel where that is more than one."""
        try:
            unknown = [name for name in self.filenames if not self._recall(name)]
            results, problem = lint_all(unknown, self.work, min(self.jobs, len(unknown)))
        except KeyboardInterrupt:
            raise exceptions.EarlyQuit("Early quit while running checks") from None
        self.results += results
        memory = self.work.memory
        if problem:
            _say_forgetful(problem)
        elif memory is not None and unknown:
            memory.store.sweep()

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
        if not work.needs.syntax and cannot_have_findings(data):
            return []
        if work.memory is None:
            return None
        if filename != STDIN:
            work.memory.note(os.path.abspath(filename), digest(data))
        return recall(work.memory, key(work.memory, filename, data, self.options))


class CheckApplication(Application):
    """flake8's, with our checker alone and a memory."""

    def initialize(self, argv: Sequence[str]) -> None:
        """Parse the command line and the configuration, and make the parts."""
        try:
            self.plugins, self.options = parse(argv)
        except (ValueError, OSError, configparser.Error, exceptions.FailedToLoadPlugin) as error:
            # Where flake8 itself ends with a traceback: a code in ``ignore`` that can't be one, a
            # configuration file that can't be read.
            raise SystemExit(fail(f"check: {error}")) from error
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


def _memory(options: Options, more: Sequence[str]) -> Memory | None:
    """What is remembered, unless a person wants none or there is no place for it."""
    if options.cache is False:
        return None
    store = Store(cache_folder(options.cache_folder))
    try:
        store.prepare()
    except OSError as error:
        _say_forgetful(str(error))
        return None
    return Memory(store, conditions(options, more))


def _say_forgetful(problem: str) -> None:
    print(f"torchperf: check: findings can't be remembered: {problem}", file=sys.stderr)
