"""Content digests: bytes in, a short text out that only equal bytes share; and bounded reading.

Reading a file for its meaning, and asking for the cache if it has changed, both use these
functions, so that both see the same content.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# A module longer than this is generated: mapping it costs more than it tells, and reading all of it
# could take all memory.
MAX_BYTES = 2_000_000
# Nor is a package asked who calls a function if its modules hold more than this: reading them takes
# longer than the rest of a lint.
MAX_TREE = 32_000_000
# A text without any of these holds no function that must not wait: nobody says so, and no CUDA
# graph is recorded.
PROMISING = (b"torchperf: sync-free", b"cuda.graph", b"make_graphed_callables", b"reduce-overhead")
# Ends the path of a folder where what counts is the modules below it that hold one of them.
PROMISES = "*promises"
# Ends the path of a folder where all modules below it count, even if they hold up to `MAX_NAMED`. A
# person who names functions that must not wait has them found in a package of that size.
WHOLE = "*whole"
MAX_NAMED = 128_000_000
# Stand for the digest of a file that is not there or cannot be read, and of one that is too long.
NO_FILE, TOO_LONG = "", "too long"
# 128 bits: two different files do not meet by accident.
_SIZE = 16


# Path -> what a file is to hold once changes are written that have only been shown so far.
_PENDING: dict[str, bytes] = {}


def expect(changes: Mapping[str, bytes]) -> None:
    """Let reads of these paths return the changes, as if they were written already."""
    _PENDING.clear()
    _PENDING.update(changes)


def stamp(path: str) -> tuple[int, int]:
    """Return the time and size of a file, which change when it does; zeros if there is none."""
    pending = _PENDING.get(path)
    if pending is not None:
        return int(digest(pending)[:_SIZE], 16), len(pending)
    try:
        stat = os.stat(path)
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def digest(data: bytes) -> str:
    """Return the digest of some bytes."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


def read_file(path: str) -> tuple[bytes | None, str]:
    """Return the content of a regular file and its digest.

    If it is missing or too long, the content is None, and the digest `NO_FILE` or `TOO_LONG`.
    """
    data = read_bytes(path)
    return (data, digest(data)) if isinstance(data, bytes) else (None, data)


def read_bytes(path: str) -> bytes | str:
    """Return the content of a regular file; `NO_FILE` or `TOO_LONG` if that cannot be read.

    Other files are not read: a link may lead to a device that never ends, or to a pipe that nobody
    writes to.
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


def digest_of(parts: Iterable[str]) -> str:
    """Return the digest of several texts in order; where one ends and the next begins counts."""
    joined = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        joined.update(b"%d:" % len(data))
        joined.update(data)
    return joined.hexdigest()


def modules_below(folder: str, most: int = MAX_TREE) -> list[str]:
    """Return the paths of all modules in and below a folder, in order; links are not followed.

    The list is empty if they hold more than ``most`` bytes.
    """
    found: list[str] = []
    total = 0
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name.isidentifier())
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(above, name)
                total += _size(path)
                if total > most:
                    return []
                found.append(path)
    return found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def promises(data: bytes | str) -> bool:
    """True if a module may hold a function that must not wait."""
    return isinstance(data, bytes) and any(word in data for word in PROMISING)


def digest_of_files(paths: Iterable[str], held: Callable[[str], str]) -> str:
    """Return the digest of several files with their paths; ``held`` gives that of one."""
    return digest_of(part for path in paths for part in (path, held(path)))
