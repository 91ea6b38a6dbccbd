"""The files of one run through flake8's manager: those that nobody remembers are linted."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from flake8 import checker, defaults, exceptions

from flake8_torchperf.cache.store import in_words
from flake8_torchperf.cli.check_files import (
    FLAKE8S,
    STDIN,
    Work,
    cannot_have_findings,
    content_of,
    display_name,
    key,
    lint_all,
    recall,
    why_no_text,
)
from flake8_torchperf.digest import digest
from flake8_torchperf.told import restored

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8.violation import Violation

    from flake8_torchperf.told import Place, Told


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
        self._part_rows()
        memory = self.work.memory
        if memory is not None and unknown and not problem:
            try:
                memory.store.sweep()
            except OSError as error:
                problem = in_words(error)
        if problem:
            say_forgetful(problem)

    def _part_rows(self) -> None:
        """Keep in the results what flake8 knows of each row, and the rest of it apart."""
        self.told: dict[str, dict[Place, Told]] = {}
        for index, (name, rows, counts) in enumerate(self.results):
            self.results[index] = (name, [row[:FLAKE8S] for row in rows], counts)
            found = (restored(row[FLAKE8S:]) for row in rows)
            self.told[name] = {one.place: one for one in found if one is not None}

    def told_of(self, error: Violation) -> Told | None:
        """What is known of a finding that flake8 reports; None where it is not ours."""
        place = (error.line_number, error.column_number - 1, f"{error.code} {error.text}")
        return self.told.get(error.filename, {}).get(place)

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


def say_forgetful(problem: str) -> None:
    """Say why nothing can be remembered, and what to do about it."""
    advice = "name another folder with --cache-dir, or --no-cache"
    print(f"torchperf: check: findings can't be remembered: {problem}; {advice}", file=sys.stderr)
