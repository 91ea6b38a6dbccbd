"""Entries on disk, compressed: a key and JSON in, the same JSON out, or nothing.

Several processes may read and write at once: an entry is written to a temporary file and moved to
its place in one step. An entry that can't be read, or is damaged, is a miss. Entries are data:
nothing in them is ever executed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import zlib
from dataclasses import dataclass
from errno import EACCES
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from flake8_torchperf.digest import digest
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from collections.abc import Iterator

# More than six times the size of the entries for all of transformers 5.23.
LIMIT_BYTES = 256 * 1024 * 1024
# After a sweep the cache is this full, so that the next entry does not call for another one.
_KEPT_SHARE = 0.8
# An entry counts as used at most this often, in seconds: writing the time down is not free.
_TOUCH_EVERY = 24 * 3600
# A run that writes single entries (flake8 in an editor) sweeps at most this often, in seconds.
SWEEP_EVERY = 3600
# A half-written file of a process that died is swept after this time, in seconds.
_ABANDONED = 3600

# An entry lists many paths that begin alike: even the fastest level leaves an eighth of it.
_LEVEL = 1

_ENTRIES = "entries"
_SWEPT = "swept"
_ENTRY = re.compile(r"[0-9a-f]{32}")
_HALF_WRITTEN = re.compile(r"[0-9a-f]{32}\.\w+\.tmp")
# https://bford.info/cachedir/: tells backup programs to leave the folder out.
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by flake8-torchperf.\n"


@dataclass(frozen=True)
class Usage:
    """The number of entries, and of the bytes that they take."""

    entries: int
    bytes: int


@dataclass(frozen=True)
class _File:
    path: str
    bytes: int
    used: float


@dataclass(frozen=True)
class Store:
    """A folder of entries that never holds much more than ``limit`` bytes. It pickles."""

    folder: Path
    limit: int = LIMIT_BYTES

    def prepare(self) -> None:
        """Make the folder. Raises OSError where it cannot be made or written to.

        A folder that was there before may hold other things, which git and backups are to see: in
        it, only the one for our entries is marked.
        """
        marked, inside = self.folder, self.folder / _ENTRIES
        try:
            marked.mkdir(parents=True)
        except FileExistsError:
            if not (marked / "CACHEDIR.TAG").exists():
                marked = inside
        inside.mkdir(exist_ok=True)
        for name, text in (("CACHEDIR.TAG", _TAG), (".gitignore", "*\n")):
            path = marked / name
            if not path.exists():
                path.write_text(text, encoding="utf-8")

    def get(self, key: str) -> Any:
        """Return the value that was put under ``key``, or None."""
        path = self._path(key)
        try:
            refuse_special(path)
            with open(path, "rb") as file:
                data = file.read()
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        check, _, body = data.partition(b"\n")
        if check != digest(body).encode():
            return None
        if age > _TOUCH_EVERY:
            with contextlib.suppress(OSError):  # a folder that is only readable still serves
                os.utime(path)
        try:
            return json.loads(zlib.decompress(body))
        except (zlib.error, ValueError, RecursionError):
            return None

    def put(self, key: str, value: object) -> None:
        """Store ``value``. Raises OSError if it cannot be written."""
        body = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), _LEVEL)
        path = self._path(key)
        # Processes of two containers may share a folder, and have one number.
        half = f"{path}.{uuid4().hex}.tmp"
        try:
            with open(half, "wb") as file:
                file.write(digest(body).encode() + b"\n" + body)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(half, "wb") as file:
                file.write(digest(body).encode() + b"\n" + body)
        try:
            os.replace(half, path)
        except PermissionError:
            # On Windows the rename fails while another process, which found the same, has it open.
            os.remove(half)
            if not os.path.exists(path):
                raise

    def usage(self) -> Usage:
        """Return the number and size of the entries that the folder holds now."""
        files = list(self._files())
        return Usage(len(files), sum(file.bytes for file in files))

    def sweep(self, every: float = 0) -> None:
        """Remove the entries that were longest unused, where there are more than the limit allows.

        With ``every``, only where the last sweep is that many seconds past. Another process may
        remove the same entries at the same time.
        """
        mark = self.folder / _SWEPT
        now = time.time()
        if every and mark.exists() and now - mark.stat().st_mtime < every:
            return
        mark.touch()
        files = sorted(self._files(abandoned_before=now - _ABANDONED), key=lambda file: file.used)
        total = sum(file.bytes for file in files)
        if total <= self.limit:
            return
        for file in files:
            if total <= self.limit * _KEPT_SHARE:
                break
            if _remove(file.path):
                total -= file.bytes

    def clear(self) -> Usage:
        """Remove every entry, but no files of others; returns the usage that was removed.

        Raises PermissionError for the first entry that can't be removed, after removing all others.
        """
        files = list(self._files(abandoned_before=time.time()))
        left = [file.path for file in files if not _remove(file.path)]
        if left:
            raise PermissionError(EACCES, "in use, or not yours to remove", left[0])
        return Usage(len(files), sum(file.bytes for file in files))

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, _ENTRIES, key[:2], key)

    def _files(self, abandoned_before: float = 0) -> Iterator[_File]:
        """Yield the entries; on the way, files half written before the given time are removed."""
        try:
            shelves = list(os.scandir(self.folder / _ENTRIES))
        except FileNotFoundError:
            return
        for shelf in shelves:
            if not shelf.is_dir(follow_symlinks=False):
                continue
            for entry in os.scandir(shelf.path):
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if _ENTRY.fullmatch(entry.name):
                    yield _File(entry.path, stat.st_size, stat.st_mtime)
                elif stat.st_mtime <= abandoned_before and _HALF_WRITTEN.fullmatch(entry.name):
                    _remove(entry.path)


def _remove(path: str) -> bool:
    """Remove a file; False where another process has it open (Windows), or it is not ours.

    Another process may have removed it already.
    """
    with contextlib.suppress(FileNotFoundError):
        try:
            os.remove(path)
        except PermissionError:
            return False
    return True


def in_words(error: OSError) -> str:
    """Describe an error and name its file."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)
