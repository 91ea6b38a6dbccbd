"""Bounded reading of files, with the changes to them that are not written yet.

The analysis of a file and the cache's test for changes both use these functions, so that both see
the same content.
"""

from __future__ import annotations

import io
import os
import tokenize
from typing import TYPE_CHECKING

from flake8_torchperf.digest import digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A module longer than this is generated code. Mapping it costs more than it shows, and reading all
# of it could exhaust the memory.
MAX_BYTES = 2_000_000
# The digests of a file that is missing or can't be read, and of a file that is too long.
NO_FILE, TOO_LONG = "", "too long"

# Seconds for which a folder that was read is assumed not to change.
TRUSTED = 2.0

# How many digits of a pending change's digest form its time.
_STAMP = 16

# Path -> the content that a file will have once the changes shown so far are written.
_PENDING: dict[str, bytes] = {}


def expect(changes: Mapping[str, bytes]) -> None:
    """Let reads of these paths return the changes, as if they were written already."""
    _PENDING.clear()
    _PENDING.update(changes)


def stamp(path: str) -> tuple[int, int]:
    """Return the time and size of a file, which change with its content; zeros if it is missing."""
    pending = _PENDING.get(path)
    if pending is not None:
        return int(digest(pending)[:_STAMP], 16), len(pending)
    try:
        stat = os.stat(path)
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def read_file(path: str) -> tuple[bytes | None, str]:
    """Return the content of a regular file and its digest.

    If the file is missing or too long, the content is None and the digest is `NO_FILE` or
    `TOO_LONG`.
    """
    data = read_bytes(path)
    return (data, digest(data)) if isinstance(data, bytes) else (None, data)


def read_bytes(path: str) -> bytes | str:
    """Return the content of a regular file; `NO_FILE` or `TOO_LONG` if it can't be read.

    Other files are not read, because a link may lead to an endless device or to a pipe without a
    writer.
    """
    if path in _PENDING:
        return _PENDING[path]
    try:
        if not os.path.isfile(path):
            return NO_FILE
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return NO_FILE
    return TOO_LONG if len(data) > MAX_BYTES else data


# The errors of decoding or parsing a text that is not Python.
NO_PYTHON = (SyntaxError, ValueError, LookupError, RecursionError, MemoryError)


def decoded(data: bytes) -> str:
    """Return the text of a module, every line ending in ``\\n``. Raises one of `NO_PYTHON`."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines as Python counts them: form feeds and Unicode separators end no line."""
    return tuple(io.StringIO(text, newline="").readlines())


def as_counted(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines as Python counts them.

    On standard input, a lone carriage return ends a line for Python's parser but not for flake8.
    """
    text = "".join(lines)
    if "\r" not in text:
        return tuple(lines)
    return tuple(io.StringIO(text, newline="").readlines())
