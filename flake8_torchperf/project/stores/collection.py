"""When garbage is collected: never while a file is analysed, and seldom in whole."""

from __future__ import annotations

import atexit
import gc
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from flake8_torchperf.project.stores.kept import is_time_to_collect, take_dropped_apart

if TYPE_CHECKING:
    from collections.abc import Iterator

# Collections of the middle generation before all generations are collected; Python's own is 10. A
# full one takes as long as the analysis of fifty files, and finds a few megabytes.
FULL_COLLECTION = 300


@cache
def _end_quickly() -> None:
    """Skip the collection of garbage at exit, which takes as long as linting some files."""
    atexit.register(gc.freeze)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Put off garbage collection while one file is analysed.

    Environments are copied where paths part, and each generation that fills makes the collector
    walk everything flake8 holds. What one file leaves behind is collected after it. A full
    collection also walks what lives from file to file, which is no garbage. Most full collections
    would come between two files, so they are rarer in this process from here on. Until then, the
    smaller collections leave a few megabytes, and the maps of other modules that were dropped; a
    full one comes once these are many.
    """
    _end_quickly()
    running = gc.isenabled()
    gc.disable()
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, max(old, FULL_COLLECTION))
    try:
        yield
    finally:
        _resume(running)


def _resume(running: bool) -> None:
    """Switch collection on if it was, and collect if it is time to."""
    if running:
        gc.enable()
        if is_time_to_collect():
            gc.collect()


@contextmanager
def tidied() -> Iterator[None]:
    """Free what a file pushed out of memory as soon as nothing but its records is used.

    Left to the collector, these trees make a full collection after a few dozen files.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        take_dropped_apart()
        _resume(running)
