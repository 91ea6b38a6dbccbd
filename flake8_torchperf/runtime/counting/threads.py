"""Takes what counts in one thread into the threads that it starts, and into the work it submits.

torch's modes belong to one thread. While anything is followed, threads enter it before they run,
and the workers of a `ThreadPoolExecutor` for each call that a followed thread submits. Threads that
ran before, and those that C code starts, are not followed.
"""

from __future__ import annotations

import concurrent.futures.thread
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_work: Any = concurrent.futures.thread
_thread: Any = threading.Thread
# The functions that are wrapped, by holder and name. An executor's call remembers who submitted it.
_PLACES: tuple[tuple[Any, str], ...] = (
    (_thread, "start"),
    (_thread, "_bootstrap_inner"),
    (_work._WorkItem, "__init__"),
    (_work._WorkItem, "run"),
)

_lock = threading.Lock()
_by_thread: list[dict[int, Any]] = []


def by_thread() -> dict[int, Any]:
    """Return a new table by thread; a forked process finds only its own thread in it."""
    table: dict[int, Any] = {}
    _by_thread.append(table)
    return table


_here: dict[int, list[Followed]] = by_thread()
_open: list[Followed] = []
_starting: dict[int, Sequence[Followed]] = {}
_originals: list[tuple[Any, str, Any, Any]] = []
_SUBMITTED = "_torchperf_followed"


class Followed:
    """Something that is entered in other threads as well, until it is closed.

    ``enter`` runs in such a thread and returns what runs there at the end of the thread or call.
    ``everywhere`` says that every thread enters it, whoever started it.
    """

    def __init__(self, enter: Callable[[], Callable[[], None]], *, everywhere: bool) -> None:
        self.enter = enter
        self.everywhere = everywhere
        self.closed = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow the threads that this one starts meanwhile."""
        with _lock:
            if not _open:
                _install()
            _open.append(self)
            _here.setdefault(threading.get_ident(), []).append(self)
        try:
            yield
        finally:
            self.closed = True
            with _lock:
                _open.remove(self)
                _leave(self)
                if not _open:
                    _uninstall()


def is_counted() -> bool:
    """True if this thread has entered what is followed."""
    return threading.get_ident() in _here


def _leave(one: Followed) -> None:
    thread = threading.get_ident()
    _here[thread].remove(one)
    if not _here[thread]:
        del _here[thread]


def _heirs() -> tuple[Followed, ...]:
    """Return what a thread or call enters that the current thread starts."""
    own = _here.get(threading.get_ident(), ())
    others = [one for one in list(_open) if one.everywhere and one not in own]
    return (*own, *others)


@contextmanager
def _entered(heirs: Sequence[Followed]) -> Iterator[None]:
    thread = threading.get_ident()
    leaving: list[tuple[Followed, Callable[[], None]]] = []
    try:
        for one in heirs:
            if not one.closed and one not in _here.get(thread, ()):
                leave = one.enter()
                leaving.append((one, leave))
                with _lock:
                    _here.setdefault(thread, []).append(one)
        yield
    finally:
        for one, leave in reversed(leaving):
            with _lock:
                _leave(one)
            leave()


def _install() -> None:
    wrappers = (_starts, _bootstraps, _submits, _runs)
    for (holder, name), wrap in zip(_PLACES, wrappers, strict=True):
        original = getattr(holder, name)
        wrapper = wrap(original)
        _originals.append((holder, name, original, wrapper))
        setattr(holder, name, wrapper)


def _uninstall() -> None:
    while _originals:
        holder, name, original, wrapper = _originals.pop()
        if vars(holder).get(name) is wrapper:  # Otherwise someone wrapped it since.
            setattr(holder, name, original)


def _starts(original: Any) -> Any:
    @functools.wraps(original)
    def start(self: threading.Thread, *args: Any, **kwargs: Any) -> Any:
        heirs = _heirs()
        if not heirs:
            return original(self, *args, **kwargs)
        _starting[id(self)] = heirs
        try:
            return original(self, *args, **kwargs)
        except BaseException:
            _starting.pop(id(self), None)
            raise

    return start


def _bootstraps(original: Any) -> Any:
    @functools.wraps(original)
    def bootstrap(self: threading.Thread) -> Any:
        with _entered(_starting.pop(id(self), ())):
            return original(self)

    return bootstrap


def _submits(original: Any) -> Any:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        setattr(self, _SUBMITTED, _heirs())

    return init


def _runs(original: Any) -> Any:
    @functools.wraps(original)
    def run(self: Any, *args: Any) -> Any:
        with _entered(getattr(self, _SUBMITTED, ())):
            return original(self, *args)

    return run


def _alone() -> None:
    """Forget the other threads in a forked process, which does not have them."""
    global _lock
    _lock = threading.Lock()
    _starting.clear()
    for table in _by_thread:
        for thread in set(table) - {threading.get_ident()}:
            del table[thread]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)
