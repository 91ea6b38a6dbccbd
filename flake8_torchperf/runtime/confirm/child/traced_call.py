"""In the child: calls a function once, with a time limit.

Notes which lines of its file ran, and what ended the call. `measure` counts the dispatches.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.load import one_line

# The most items to draw from a generator, which may be endless.
MOST_ITEMS = 4096
# Code that swallows the first alarm gets another after this many seconds.
AGAIN = 0.5


class TooLate(BaseException):
    """A call that exceeded its share of the time; no ordinary handler in it may catch this."""


@dataclass(frozen=True)
class CallOutcome:
    """``error`` is empty where the call came to its end; ``lines`` maps lines to executions."""

    error: str = ""
    late: bool = False
    lines: Counter[int] = field(default_factory=Counter)
    executions: Mapping[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLate` in the main thread after ``seconds``, and again if it is swallowed."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooLate

    before = signal.signal(signal.SIGALRM, ring)
    began = time.monotonic()
    outer, _ = signal.getitimer(signal.ITIMER_REAL)
    own = max(seconds, 0.01) if not outer else max(min(seconds, outer), 0.01)
    signal.setitimer(signal.ITIMER_REAL, own, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:  # restart an enclosing limit with its remaining time
            left = outer - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.01), AGAIN)


class Spots:
    """The instructions of each flagged expression, and how often each one ran.

    A line is too coarse: ``if strict and flags.any():`` may run without evaluating the flags.
    Positions of instructions exist since Python 3.11; before, and where an expression left none,
    lines decide.
    """

    def __init__(self, targets: Sequence[Mapping[str, Any]]) -> None:
        self.targets = targets
        self.lines: Counter[int] = Counter()
        self.codes: dict[int, tuple[CodeType, dict[int, list[str]]]] = {}
        self.ran: Counter[tuple[str, int, int]] = Counter()

    def inside(self, code: CodeType) -> dict[int, list[str]]:
        """Return the offsets of a code object inside flagged expressions, with their targets."""
        known = self.codes.get(id(code))
        if known is None:
            known = self.codes[id(code)] = (code, self._find(code))
        return known[1]

    def _find(self, code: CodeType) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        positions = getattr(code, "co_positions", tuple)
        for index, (line, end_line, column, end_column) in enumerate(positions()):
            if line is None or end_line is None or column is None or end_column is None:
                continue
            for one in self.targets:
                first = (one["first"], one["column"])
                last = (one["last"], one["end_column"])
                if first <= (line, column) and (end_line, end_column) <= last:
                    found.setdefault(2 * index, []).append(one["id"])
        return found

    def executions(self, lines: Counter[int]) -> dict[str, int]:
        """Return how often each flagged expression was evaluated."""
        known = {
            target for _, spots in self.codes.values() for ids in spots.values() for target in ids
        }
        found: dict[str, int] = {}
        for one in self.targets:
            if one["id"] in known:
                counts = [
                    count for (target, _, _), count in self.ran.items() if target == one["id"]
                ]
            else:
                counts = [lines[line] for line in range(one["first"], one["last"] + 1)]
            found[one["id"]] = max(counts, default=0)
        return found


@contextlib.contextmanager
def traced(path: str, lines: Counter[int], spots: Spots | None = None) -> Iterator[None]:
    """Count executions of each line of the file at ``path``, and of the instructions in spots."""
    wanted: dict[str, bool] = {}
    real = os.path.realpath(path)

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        if name not in wanted:
            wanted[name] = os.path.realpath(name) == real
        if not wanted[name]:
            return None
        frame.f_trace_opcodes = spots is not None and bool(spots.inside(frame.f_code))
        return on_line

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines[frame.f_lineno] += 1
        elif event == "opcode" and spots is not None:
            for target in spots.inside(frame.f_code).get(frame.f_lasti, ()):
                spots.ran[target, id(frame.f_code), frame.f_lasti] += 1
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)


def finish(result: Any, inputs: Callable[[Callable[..., Any]], Any] | None) -> Any:
    """Run code that a call only prepared: a generator, a coroutine, a context, a returned function.

    Returns the result of that code, or the call's own result if nothing was left to run.
    """
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    if inspect.isgenerator(result):
        return list(itertools.islice(result, MOST_ITEMS))
    if isinstance(result, contextlib._GeneratorContextManager):
        with result as entered:
            return entered
    if inspect.isfunction(result) and inputs is not None:
        return inputs(result)
    return result


def watch(
    call: Callable[[], None], path: str, seconds: float, targets: Sequence[Mapping[str, Any]]
) -> CallOutcome:
    """Call once within ``seconds`` and return which lines of ``path`` and which targets ran.

    Any exception of the user's code is stored as the outcome's error.
    """
    lines: Counter[int] = Counter()
    spots = Spots(targets)
    error, late = "", False
    try:
        with time_limit(seconds), traced(path, lines, spots):
            call()
    except TooLate:
        late = True
        error = f"a call did not come back within its share of --timeout, {seconds:.3g} s"
    except (Exception, SystemExit, KeyboardInterrupt) as raised:
        error = one_line(raised)
    return CallOutcome(error, late, lines, spots.executions(lines))


def gradients(wanted: bool) -> contextlib.AbstractContextManager[Any]:
    """Run with autograd as the caller has it, or without, as under ``torch.no_grad``."""
    return contextlib.nullcontext() if wanted else torch.no_grad()
