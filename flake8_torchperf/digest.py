"""Content digests: bytes in, a short text out that only equal bytes share; and bounded reading.

Must not know what the bytes are. Used where a file is read for its meaning and where the cache asks
whether it still is what it was, so that both mean the same.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# A module longer than this is generated: mapping it costs more than it tells, and reading all of it
# could take all memory.
MAX_BYTES = 2_000_000
# Stand for the digest of a file that is not there or cannot be read, and of one that is too long.
NO_FILE, TOO_LONG = "", "too long"
# 128 bits: two different files do not meet by accident.
_SIZE = 16


def digest(data: bytes) -> str:
    """The digest of some bytes."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


def read_file(path: str) -> tuple[bytes | None, str]:
    """What a regular file holds, with its digest; None where it is missing or too long.

    A link may lead to a device that never ends, or a pipe that nobody writes to.
    """
    try:
        if not os.path.isfile(path):
            return None, NO_FILE
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return None, NO_FILE
    return (None, TOO_LONG) if len(data) > MAX_BYTES else (data, digest(data))


def digest_of(parts: Iterable[str]) -> str:
    """The digest of several texts in order; where one ends and the next begins counts."""
    joined = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        joined.update(b"%d:" % len(data))
        joined.update(data)
    return joined.hexdigest()
