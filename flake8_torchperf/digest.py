"""Content digests: bytes in, a short text out that only equal bytes share."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# 128 bits: two different files do not meet by accident.
_SIZE = 16


def digest(data: bytes) -> str:
    """Return the digest of some bytes."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


def digest_of(parts: Iterable[str]) -> str:
    """Return the digest of several texts in order; where one ends and the next begins counts."""
    joined = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        joined.update(b"%d:" % len(data))
        joined.update(data)
    return joined.hexdigest()


def digest_of_files(paths: Iterable[str], held: Callable[[str], str]) -> str:
    """Return the digest of several files with their paths; ``held`` gives that of one."""
    return digest_of(part for path in paths for part in (path, held(path)))
