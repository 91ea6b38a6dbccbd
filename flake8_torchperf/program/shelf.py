"""Outlines of texts, kept by the digest of the text: in memory, and on disk if there is a cache."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from flake8_torchperf.digest import digest, digest_of
from flake8_torchperf.program import outline as records
from flake8_torchperf.program import outlining
from flake8_torchperf.program.outline import Outline, as_data, from_data
from flake8_torchperf.program.outlining import outline_of
from flake8_torchperf.project.kept import Kept

if TYPE_CHECKING:
    from types import ModuleType


class Shelf(Protocol):
    """Entries on disk: a key and JSON in, the same JSON out, or None."""

    def get(self, key: str) -> Any:
        """Return the value that was put under a key, or None."""

    def put(self, key: str, value: object) -> None:
        """Store a value. Raises OSError if it cannot be written."""


# The bytes of text whose outlines stay in memory. An outline takes 17 times its text, with the
# tables that are made of it: 51 MB. With half as many, a run over transformers outlines half of its
# modules twice.
OUTLINED = 3_000_000
# The shelf of this run; empty without a cache.
_SHELVES: list[Shelf] = []
# The outlines that were made last, by the digest of their text. A run over a tree reads most
# modules twice: to lint them, and to follow values from another module.
_MADE: Kept[str, Outline] = Kept(OUTLINED)


def keep_on(shelf: Shelf | None) -> None:
    """Keep the outlines of this process on a shelf from now on; on none without one."""
    _SHELVES[:] = [] if shelf is None else [shelf]


def outline_of_text(text: str) -> Outline:
    """Return the outline of a text, read once, ever, if there is a shelf.

    Raises one of `NO_PYTHON` if it is not Python.
    """
    if not _SHELVES:
        return outline_once(text)
    key = digest_of([_version(), text])
    known = _restored(_SHELVES[0].get(key))
    if known is not None:
        return known
    found = outline_once(text)
    try:
        _SHELVES[0].put(key, as_data(found))
    except OSError:
        keep_on(None)  # the folder can't be written: what follows is read each time
    return found


def outline_once(text: str, tree: ast.Module | None = None) -> Outline:
    """Return the outline of a text, whose ``tree`` may be built already.

    Raises one of `NO_PYTHON` if it is not Python.
    """
    key = digest_of([text])
    found = _MADE.get(key)
    if found is not None:
        return found
    return _MADE.put(key, outline_of(ast.parse(text) if tree is None else tree), len(text))


def _restored(data: Any) -> Outline | None:
    """Return the outline in an entry; None for one that holds something else."""
    try:
        return None if data is None else from_data(data)
    except (TypeError, ValueError, AttributeError):
        return None


@cache
def _version() -> str:
    """Return the digest of the code that makes and reads outlines."""
    return digest_of([_content(records), _content(outlining)])


def _content(module: ModuleType) -> str:
    path = module.__file__
    return "" if path is None else digest(Path(path).read_bytes())
