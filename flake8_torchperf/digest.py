"""Content digests: bytes in, a short text out that only equal bytes share."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# 128 bits: two different files do not share a digest by accident.
_SIZE = 16


def digest(data: bytes) -> str:
    """Return the digest of some bytes."""
    return blake2b(data, digest_size=_SIZE).hexdigest()


def digest_of(parts: Iterable[str]) -> str:
    """Return the digest of several texts in order; the boundaries between them count."""
    joined = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        joined.update(b"%d:" % len(data))
        joined.update(data)
    return joined.hexdigest()


def digest_of_files(paths: Iterable[str], held: Callable[[str], str]) -> str:
    """Return the digest of several paths and their files; ``held`` returns one file's digest."""
    return digest_of(part for path in paths for part in (path, held(path)))
