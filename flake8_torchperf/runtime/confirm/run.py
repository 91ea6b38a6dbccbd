"""In the child: one function called once, with a time limit, its executed lines noted.

A callable and an assignment of recipes go in; which lines of its file ran, and what ended the
call, leaves. Counting dispatches is `measure`'s business.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.load import one_line

# A generator is drawn from this often at most: an endless one would never give a count.
MOST_ITEMS = 4096


class TooLate(BaseException):
    """A call that exceeded its share of the time; no ordinary handler in it may catch this."""


@dataclass(frozen=True)
class Outcome:
    """``error`` is empty where the call came to its end; ``lines`` maps lines to executions."""

    error: str = ""
    late: bool = False
    lines: Counter[int] = field(default_factory=Counter)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLate` in the main thread after ``seconds``, and again should it be swallowed."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLate

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def traced(path: str, lines: Counter[int]) -> Iterator[None]:
    """Count executions of each line of the file at ``path``."""
    wanted: dict[str, bool] = {}
    real = os.path.realpath(path)

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        if name not in wanted:
            wanted[name] = os.path.realpath(name) == real
        if not wanted[name]:
            return None
        return on_line

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines[frame.f_lineno] += 1
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)


def finish(result: Any, inputs: Callable[[Callable[..., Any]], Any] | None) -> None:
    """Run what a call only prepared: a generator, a coroutine, a context, a returned function."""
    if inspect.iscoroutine(result):
        asyncio.run(result)
    elif inspect.isgenerator(result):
        for _ in itertools.islice(result, MOST_ITEMS):
            pass
    elif isinstance(result, contextlib._GeneratorContextManager):
        with result:
            pass
    elif inspect.isfunction(result) and inputs is not None:
        inputs(result)


def watch(call: Callable[[], None], path: str, seconds: float) -> Outcome:
    """Call once within ``seconds`` and say which lines of ``path`` ran.

    Whatever the user's code raises becomes the outcome's error: that is what it is for.
    """
    lines: Counter[int] = Counter()
    try:
        with time_limit(seconds), traced(path, lines):
            call()
    except TooLate:
        return Outcome(f"it did not come back within {seconds:.3g} s", True, lines)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return Outcome(one_line(error), False, lines)
    return Outcome("", False, lines)


def gradients(wanted: bool) -> contextlib.AbstractContextManager[Any]:
    """Run with autograd as the caller has it, or without, as under ``torch.no_grad``."""
    return contextlib.nullcontext() if wanted else torch.no_grad()
