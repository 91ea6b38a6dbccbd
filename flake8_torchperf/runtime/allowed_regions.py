"""`allow_sync`: regions of a program that may wait for the device, each with the reason.

Needs nothing but the standard library, because programs import it where nothing is counted.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Entered(NamedTuple):
    """A region that was entered; `reason` is "" where a repeated entry allows nothing."""

    region: allow_sync
    reason: str


# A context variable, so that a region holds for the thread or the task that entered it.
_entered: ContextVar[tuple[_Entered, ...]] = ContextVar("allow_sync", default=())
# The places in code whose region was entered; shared by all threads.
_first: dict[tuple[str, int], object] = {}


class allow_sync(ContextDecorator):
    """Allow waits for the device in a block or in the calls of a function, for a reason.

        with allow_sync("the validation loss is printed once per epoch"):
            print(loss.item())

        @allow_sync("reads the tokens for the tokenizer")
        def detokenize(ids): ...

    `torchperf run` and budgets count these waits apart, and list them with the reason; the linter
    reports nothing in such a block. With ``first_only``, only the first time that this place in the
    code is entered counts as allowed, in whichever thread. Where nothing is recorded, a region does
    nothing.

    A region holds for the thread or task that entered it, and for all that is called there. Threads
    that are started in it are outside, and so is Python code that autograd runs in a thread of its
    own, as it does for devices.

    Raises ValueError for an empty reason, TypeError for one that is no text, or where it decorates
    a coroutine function or a generator, whose body runs after the call.
    """

    def __init__(self, reason: str, *, first_only: bool = False) -> None:
        if not isinstance(reason, str):
            raise TypeError(f"allow_sync takes the reason as text, not {reason!r}")
        if not reason.strip():
            raise ValueError('allow_sync needs a reason: allow_sync("why the wait is wanted")')
        self.reason = " ".join(reason.split())
        self.first_only = first_only
        frame = sys._getframe(1)
        self._place = frame.f_code.co_filename, frame.f_lineno

    def __call__(self, func: F) -> F:
        """Decorate a function: each call runs in the region."""
        if inspect.iscoroutinefunction(func) or inspect.isgeneratorfunction(func):
            raise TypeError(
                f"allow_sync cannot decorate {func.__name__}, whose body runs after the call: "
                "write `with allow_sync(...)` inside it"
            )
        return super().__call__(func)

    def __enter__(self) -> allow_sync:
        repeated = self.first_only and _first.setdefault(self._place, mark := object()) is not mark
        _entered.set((*_entered.get(), _Entered(self, "" if repeated else self.reason)))
        return self

    def __exit__(self, *error: object) -> None:
        entered = _entered.get()
        for place in reversed(range(len(entered))):
            if entered[place].region is self:
                _entered.set((*entered[:place], *entered[place + 1 :]))
                return


# The name that users import.
allow_sync.__module__ = "torchperf"


def allowed_here() -> str:
    """Return the reason of the innermost region around the caller that allows waits; "" if none."""
    for entered in reversed(_entered.get()):
        if entered.reason:
            return entered.reason
    return ""
