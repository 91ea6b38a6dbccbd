"""The cache of one run: a file's key in, the rows that an earlier run found for it out, or nothing.

A row is a tuple of texts and numbers; its owner decides what they mean. An entry also lists the
questions that the run asked about other files: which modules, which of their parts, and the digests
of the answers. The entry is valid only while all answers are the same, and while the modules that
were not found are still missing.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.cache.current import Current
from flake8_torchperf.cache.reads import (
    FollowedFunction,
    Read,
    answer_read,
    followed_in,
    given_in,
    parts_read,
    reads_from,
    without_followed,
)
from flake8_torchperf.digest import digest_of
from flake8_torchperf.project.answers import FOLLOWED, NAMED
from flake8_torchperf.project.import_roots import is_marked, is_package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flake8_torchperf.cache.entries import Store

Row: TypeAlias = "tuple[str | int | float | None, ...]"
# Path of a module that was looked for -> digest of its content, "" if there was no file. A path
# that ends in a separator or in `WHOLE` stands for all modules below that folder, one that ends in
# `PROMISES` for those of them that may hold a function that must not wait, and one that ends in
# `ALL_SETTINGS`, `ALL_NOTEBOOKS`, `ALL_DOCUMENTS` or `ALL_PACKAGING` for such files below it. A
# path, `PART` and a name stand for one part of a module (see `project/answers.py`). Paths with
# `EXISTS`, `IS_FOLDER` or `STARTS` stand for what is found at a path, and where an import starts
# (`project/import_roots.py`).
Reads: TypeAlias = "Mapping[str, str]"
# Asks questions that only an analysis can answer, given with their answers, and those whose answers
# stand; returns what was read to ask them, or None if an answer has changed.
Questions: TypeAlias = "Sequence[tuple[str, str]]"
Again: TypeAlias = "Callable[[Questions, Questions], Reads | None]"

_PARSES = "parses"


@dataclass(frozen=True)
class Memory:
    """Recalls and stores rows, for one run: files are assumed not to change meanwhile.

    ``conditions`` is the digest of the inputs that all files share (`key.conditions`). It pickles.
    """

    store: Store
    conditions: str
    current: Current = field(default_factory=Current)
    _packages: dict[str, str] = field(default_factory=dict)
    _real: dict[str, str] = field(default_factory=dict)

    def key(self, given: str, content: str) -> str:
        """Return the key of a file, by its name as on the command line and the digest of its text.

        The key covers the name as given and in full: folders make some code cold (tests) and
        decide where imports lead. Imports start where a symbolic link points.
        """
        full = os.path.abspath(given)
        real = os.path.realpath(full) if os.path.islink(full) else ""
        folder = self._real_folder(os.path.dirname(full))
        exists = str(os.path.isfile(full))
        place = (given, full, folder, real, exists, self._packages_above(full))
        return digest_of([self.conditions, *place, content])

    def recall(self, key: str, again: Again | None = None) -> list[Row] | None:
        """Return the rows cached under ``key``; None if an answer they depend on has changed.

        Each file is first compared by its content. If the content has changed, the questions about
        the file are asked again. If the answers are the same, the entry is rewritten with the new
        digests, so that the next run only compares contents. ``again`` asks the questions that only
        an analysis can answer; without it, what calls give counts by the text of the function.
        """
        entry = self.store.get(key)
        reads = _reads_of(entry)
        if reads is None:
            return None
        renewed = False
        asked: list[tuple[str, str]] = []
        standing: list[tuple[str, str]] = []
        for read in reads:
            now = self.current.content(read.path)
            if now != read.content:
                changed = self._changed_calls(read, standing)
                if changed is None:
                    return None
                asked += changed
                read.content = now
                renewed = True
            else:
                standing += read.given()
            if read.packages != (self._packages_above(read.path) if now else ""):
                return None
        if asked:
            new = None if again is None else again(asked, standing)
            if new is None:
                return None
            self._add(reads, new)
        if renewed:
            with suppress(OSError):  # the entry of before serves as well
                self._put(key, reads, entry["rows"])
        return [tuple(row) for row in entry["rows"]]

    def _changed_calls(
        self, read: Read, standing: list[tuple[str, str]]
    ) -> list[tuple[str, str]] | None:
        """Return the questions, with answers, of the functions of a file whose text has changed.

        None if another answer has changed. ``standing`` receives those of the other functions.
        """
        plain = without_followed(read.parts)
        if not read.parts or (plain and self.current.answer(read.path, plain) != read.answer):
            return None
        changed: list[tuple[str, str]] = []
        for function, held in read.followed.items():
            text = self.current.answer(read.path, [f"{FOLLOWED}{function}"])
            if text != held.text:
                changed += held.given.items()
                held.text = text
            else:
                standing += held.given.items()
        return changed

    def _add(self, reads: list[Read], new: Reads) -> None:
        """Add what was read when questions were asked again, in files as they are now."""
        known: dict[str, Read] = {}
        parts: dict[str, set[str]] = {}
        for read in reads:
            known.setdefault(read.path, read)
            parts.setdefault(read.path, set()).update(read.parts)
        for read in self._reads(new):
            before = known.get(read.path)
            if before is None:
                reads.append(read)
                continue
            for function, held in read.followed.items():
                given = before.followed.get(function, held).given
                before.followed[function] = FollowedFunction(held.text, {**given, **held.given})
            if not read.parts:
                reads.append(read)
                continue
            # Of their own, for the answers of before would have to be found again to add these.
            read.parts = [part for part in read.parts if part not in parts[read.path]]
            if read.parts:
                read.answer = answer_read(new, read.path, without_followed(read.parts))
                read.followed = {}
                reads.append(read)

    def keep(self, key: str, rows: Sequence[Row], reads: Reads) -> None:
        """Store rows with the files read for them. Raises OSError if they can't be written."""
        self._put(key, self._reads(reads), rows)

    def _reads(self, reads: Reads) -> list[Read]:
        """Return recorded reads by file."""
        given = given_in(reads)
        kept = []
        for path, asked in parts_read(reads).items():
            content = reads[path]
            packages = self._packages_above(path) if content else ""
            whole = {part.removeprefix(NAMED) for part in asked if part.startswith(NAMED)}
            parts = [
                one
                for one in asked
                if not (one.startswith(FOLLOWED) and one.removeprefix(FOLLOWED) in whole)
            ]
            followed = followed_in(reads, path, parts)
            for function, held in followed.items():
                held.given.update(given.get((path, function), {}))
            answer = answer_read(reads, path, without_followed(parts))
            kept.append(Read(path, content, packages, parts, answer, followed))
        return kept

    def _put(self, key: str, reads: Sequence[Read], rows: Sequence[Row]) -> None:
        paths = [read.path for read in reads]
        prefix = os.path.commonprefix(paths)  # noqa: RUF071 - characters, to write them once
        held = [read.as_data(len(prefix)) for read in reads]
        self.store.put(key, {"prefix": prefix, "reads": held, "rows": rows})

    def parsed(self, content: str) -> bool:
        """True if a text of this digest is known to parse, whatever the file's name."""
        return bool(self.store.get(_syntax_key(content)) == _PARSES)

    def keep_parsed(self, content: str) -> None:
        """Store that a text of this digest parses. Raises OSError if that can't be written."""
        self.store.put(_syntax_key(content), _PARSES)

    def note(self, path: str, content: str) -> None:
        """Remember the digest of a file that was read anyway."""
        self.current.note(path, content)

    def _real_folder(self, folder: str) -> str:
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = os.path.realpath(folder)
        return real

    def _packages_above(self, path: str) -> str:
        """Return a digit for each folder around a file, nearest first.

        It is 1 for a package, 2 for a folder that may be a project's, and 0 for others. The path
        and these digits give the packages and the project around the file.
        """
        folder = os.path.dirname(path)
        if folder == path:
            return ""
        known = self._packages.get(folder)
        if known is None:
            own = "1" if is_package(folder) else "2" if is_marked(folder) else "0"
            known = self._packages[folder] = own + self._packages_above(folder)
        return known


def _syntax_key(content: str) -> str:
    """Return the key of a text for its syntax alone, which depends on nothing but Python."""
    return digest_of(["parses", sys.version, content])


def _reads_of(entry: Any) -> list[Read] | None:
    """Return the files that an entry rests on; None if it hasn't the form that `keep` writes."""
    if not (
        isinstance(entry, dict)
        and isinstance(entry.get("prefix"), str)
        and _all(entry.get("rows"), list)
        and all(_all(row, (str, int, float, type(None))) for row in entry["rows"])
    ):
        return None
    return reads_from(entry.get("reads"), entry["prefix"])


def _all(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)
