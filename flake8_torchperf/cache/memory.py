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

from flake8_torchperf.cache.current import Current, answer_read, parts_read
from flake8_torchperf.digest import digest_of
from flake8_torchperf.project.import_roots import is_marked, is_package

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flake8_torchperf.cache.entries import Store

Row: TypeAlias = "tuple[str | int | float | None, ...]"
# Path of a module that was looked for -> digest of its content, "" if there was no file. A path
# that ends in a separator or in `WHOLE` stands for all modules below that folder, one that ends in
# `PROMISES` for those of them that may hold a function that must not wait, and one that ends in
# `ALL_SETTINGS`, `ALL_NOTEBOOKS` or `ALL_DOCUMENTS` for such files below it. A path, `PART` and a
# name stand for one part of a module (see `project/answers.py`). Paths with `EXISTS`, `IS_FOLDER`
# or `STARTS` stand for what is found at a path, and where an import starts
# (`project/import_roots.py`).
Reads: TypeAlias = "Mapping[str, str]"

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

    def recall(self, key: str) -> list[Row] | None:
        """Return the rows cached under ``key``; None if an answer they depend on has changed.

        Each file is first compared by its content. If the content has changed, the questions about
        the file are asked again. If the answers are the same, the entry is rewritten with the new
        digests, so that the next run only compares contents.
        """
        entry = self.store.get(key)
        if not _is_entry(entry):
            return None
        renewed = False
        for read in entry["reads"]:
            name, content, packages, parts, answer = read
            path = entry["prefix"] + name
            now = self.current.content(path)
            if now != content:
                if not parts or self.current.answer(path, parts) != answer:
                    return None
                read[1] = now
                renewed = True
            if packages != (self._packages_above(path) if now else ""):
                return None
        if renewed:
            with suppress(OSError):  # the entry of before serves as well
                self.store.put(key, entry)
        return [tuple(row) for row in entry["rows"]]

    def keep(self, key: str, rows: Sequence[Row], reads: Reads) -> None:
        """Store rows with the files read for them. Raises OSError if they can't be written."""
        parts = parts_read(reads)
        prefix = os.path.commonprefix(list(parts))  # noqa: RUF071 - characters, to write them once
        kept = []
        for path, asked in parts.items():
            content = reads[path]
            packages = self._packages_above(path) if content else ""
            answer = answer_read(reads, path, asked)
            kept.append([path[len(prefix) :], content, packages, asked, answer])
        self.store.put(key, {"prefix": prefix, "reads": kept, "rows": rows})

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


def _is_entry(entry: Any) -> bool:
    """True if an entry has the form that `Memory.keep` writes."""
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("prefix"), str)
        and _all(entry.get("reads"), list)
        and all(map(_is_read, entry["reads"]))
        and _all(entry.get("rows"), list)
        and all(_all(row, (str, int, float, type(None))) for row in entry["rows"])
    )


# The types of what stands in a read: path, content, packages around, parts, digest of the answers.
_READ = [str, str, str, list, str]


def _is_read(read: list[Any]) -> bool:
    """True for a list of what a read holds; an entry may hold thousands."""
    return [*map(type, read)] == _READ and (not read[3] or _all(read[3], str))


def _all(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)
