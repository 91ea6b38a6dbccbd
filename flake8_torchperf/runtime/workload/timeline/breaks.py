"""Notes when torch.compile breaks a graph, for a timeline."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

import torch

from flake8_torchperf.runtime.counting.moments import Moments

_KEY = "graph_break"
_BY = "torch._dynamo.utils"


class _Noted(Counter[str]):
    """torch's counter of the breaks by reason, which tells of each."""

    note: Callable[[str], None]

    def __setitem__(self, reason: str, times: int) -> None:
        more = times > self[reason]
        super().__setitem__(reason, times)
        if more:
            self.note(reason)


@contextmanager
def noted(moments: Moments, owns: Callable[[str], bool]) -> Iterator[None]:
    """Keep each graph break, at the innermost owned line that ran when torch compiled.

    torch's tracer is not imported before the program does: that takes seconds, and changes defaults
    for the whole process. `torch.compile` imports it.
    """

    def note(reason: str) -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not owns(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None:
            first = reason.strip().partition("\n")[0]
            moments.add((frame.f_code, frame.f_lasti), 0, "graph_breaks", "", first)

    original = torch.compile

    @wraps(original)
    def compile_(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        _watch(note)
        return made

    vars(torch)["compile"] = compile_
    _watch(note)
    try:
        yield
    finally:
        if torch.compile is compile_:
            vars(torch)["compile"] = original
        if utils := sys.modules.get(_BY):
            utils.counters[_KEY] = Counter(utils.counters[_KEY])


def _watch(note: Callable[[str], None]) -> None:
    """Take the place of torch's counter, if its tracer has been imported."""
    utils = sys.modules.get(_BY)
    if utils is not None and not isinstance(utils.counters[_KEY], _Noted):
        watched = _Noted()
        watched.note = lambda _: None
        watched.update(utils.counters[_KEY])
        watched.note = note
        utils.counters[_KEY] = watched
