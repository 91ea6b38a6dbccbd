"""Content digests: bytes in, a short text out that only equal bytes share.

Must not know what the bytes are. Used where a file is read for its meaning and where the cache asks
whether it still is what it was, so that both mean the same.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# 128 bits: two different files do not meet by accident.
_SIZE = 16


def digest(data: bytes) -> str:
    """The digest of some bytes."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


def digest_of(parts: Iterable[str]) -> str:
    """The digest of several texts in order; where one ends and the next begins counts."""
    joined = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        joined.update(b"%d:" % len(data))
        joined.update(data)
    return joined.hexdigest()
