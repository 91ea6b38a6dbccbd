"""Results of texts alone, kept on disk by their digest where a run has a cache."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from flake8_torchperf.digest import digest, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

Found = TypeVar("Found")


class Shelf(Protocol):
    """Entries on disk: a key and JSON in, the same JSON out, or None."""

    def get(self, key: str) -> Any:
        """Return the value that was put under a key, or None."""

    def put(self, key: str, value: object) -> None:
        """Store a value. Raises OSError if it cannot be written."""


# The shelf of this run; empty without a cache.
_SHELVES: list[Shelf] = []


def keep_on(shelf: Shelf | None) -> None:
    """Keep what this process learns on a shelf from now on; on none without one."""
    _SHELVES[:] = [] if shelf is None else [shelf]


def shelved(
    key: Iterable[str],
    find: Callable[[], Found],
    as_data: Callable[[Found], object],
    from_data: Callable[[Any], Found],
) -> Found:
    """Return what is kept under a key or, without a shelf or such an entry, what is found."""
    if not _SHELVES:
        return find()
    name = digest_of(key)
    data = _SHELVES[0].get(name)
    if data is not None:
        try:
            return from_data(data)
        except (TypeError, ValueError, AttributeError):
            pass  # an entry that holds something else
    found = find()
    try:
        _SHELVES[0].put(name, as_data(found))
    except OSError:
        keep_on(None)  # the folder can't be written: what follows is found each time
    return found


@cache
def version(*modules: ModuleType) -> str:
    """Return the digest of the code of modules."""
    return digest_of(map(_content, modules))


def _content(module: ModuleType) -> str:
    path = module.__file__
    return "" if path is None else digest(Path(path).read_bytes())
