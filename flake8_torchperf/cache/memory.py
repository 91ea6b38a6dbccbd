"""What one run remembers: a file's key in, the rows found for it before out, or nothing.

A row is a tuple of texts and numbers; which ones is its owner's business. With the rows stands what
was read besides the file itself: which modules, and what they held. An entry counts only while all
of them still hold it, and while those that were looked for in vain are still missing.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.digest import (
    MAX_NAMED,
    PROMISES,
    WHOLE,
    digest_of,
    digest_of_files,
    modules_below,
    promises,
    read_bytes,
    read_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flake8_torchperf.cache.store import Store

Row: TypeAlias = "tuple[str | int | float | None, ...]"
# Path of a module that was looked for -> digest of what it held, "" where there was no file. A path
# that ends in a separator or in `WHOLE` stands for all modules below that folder, one that ends in
# `PROMISES` for those of them that may hold a function that must not wait.
Reads: TypeAlias = "Mapping[str, str]"

_PARSES = "parses"


@dataclass(frozen=True)
class Memory:
    """Recalls and keeps rows in a store, for one run: files are taken not to change meanwhile.

    ``conditions`` is the digest of what is the same for all files (`key.conditions`). It pickles.
    """

    store: Store
    conditions: str
    _held: dict[str, str] = field(default_factory=dict)
    _packages: dict[str, str] = field(default_factory=dict)
    _real: dict[str, str] = field(default_factory=dict)

    def key(self, given: str, content: str) -> str:
        """The key of a file, by its name as on the command line and the digest of its text.

        The name counts, as given and in full, because folders make some code cold (tests) and tell
        where imports lead: from where the file really is, if that is elsewhere.
        """
        full = os.path.abspath(given)
        real = os.path.realpath(full) if os.path.islink(full) else ""
        folder = self._real_folder(os.path.dirname(full))
        exists = str(os.path.isfile(full))
        place = (given, full, folder, real, exists, self._packages_above(full))
        return digest_of([self.conditions, *place, content])

    def recall(self, key: str) -> list[Row] | None:
        """The rows kept under ``key`` if all that was read for them is as it was, or None."""
        entry = self.store.get(key)
        if not _is_entry(entry):
            return None
        prefix = entry["prefix"]
        paths = [prefix + name for name in entry["reads"]]
        if self._state((path, self._now(path)) for path in paths) != entry["state"]:
            return None
        return [tuple(row) for row in entry["rows"]]

    def keep(self, key: str, rows: Sequence[Row], reads: Reads) -> None:
        """Keep rows with what was read for them. Raises OSError where they can't be written."""
        paths = sorted(reads)
        prefix = os.path.commonprefix(paths)  # noqa: RUF071 - characters, to write them once
        entry = {
            "prefix": prefix,
            "reads": [path[len(prefix) :] for path in paths],
            "state": self._state((path, reads[path]) for path in paths),
            "rows": rows,
        }
        self.store.put(key, entry)

    def parsed(self, content: str) -> bool:
        """True if a text of this digest is known to parse, whatever the file's name."""
        return bool(self.store.get(_syntax_key(content)) == _PARSES)

    def keep_parsed(self, content: str) -> None:
        """Keep that a text of this digest parses. Raises OSError where it can't be written."""
        self.store.put(_syntax_key(content), _PARSES)

    def note(self, path: str, content: str) -> None:
        """Tell the digest of a file that was read anyway."""
        self._held[path] = content

    def _now(self, path: str) -> str:
        """The digest of what a file, or all modules below a folder, hold now."""
        content = self._held.get(path)
        if content is None:
            if path.endswith(PROMISES):
                below = modules_below(path.removesuffix(PROMISES))
                said = [one for one in below if promises(read_bytes(one))]
                content = digest_of_files(said, self._now)
            elif path.endswith(WHOLE):
                below = modules_below(path.removesuffix(WHOLE), MAX_NAMED)
                content = digest_of_files(below, self._now)
            elif path.endswith(os.sep):
                content = digest_of_files(modules_below(path), self._now)
            else:
                content = held(path)
            self._held[path] = content
        return content

    def _state(self, reads: Iterable[tuple[str, str]]) -> str:
        parts: list[str] = []
        for path, content in reads:
            # Where a module's own imports lead depends on the packages it lies in.
            parts += (path, content, self._packages_above(path) if content else "")
        return digest_of(parts)

    def _real_folder(self, folder: str) -> str:
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = os.path.realpath(folder)
        return real

    def _packages_above(self, path: str) -> str:
        """Which folders around a file are packages, nearest first: "110" for two in a plain one.

        With the path this is the file's dotted name, and that of the package it lies in where
        folders between are none.
        """
        folder = os.path.dirname(path)
        if folder == path:
            return ""
        known = self._packages.get(folder)
        if known is None:
            own = "1" if os.path.isfile(os.path.join(folder, "__init__.py")) else "0"
            known = self._packages[folder] = own + self._packages_above(folder)
        return known


def _syntax_key(content: str) -> str:
    """The key of a text of which only the syntax is asked: it depends on Python alone."""
    return digest_of(["parses", sys.version, content])


def held(path: str) -> str:
    """The digest of what a file holds; NO_FILE where there is none, or none that can be read."""
    return read_file(path)[1]


def _is_entry(entry: Any) -> bool:
    """Does an entry have the form that `Memory.keep` writes?"""
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("prefix"), str)
        and isinstance(entry.get("state"), str)
        and _all(entry.get("reads"), str)
        and _all(entry.get("rows"), list)
        and all(_all(row, (str, int, float, type(None))) for row in entry["rows"])
    )


def _all(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)
