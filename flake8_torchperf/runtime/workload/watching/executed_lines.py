"""Records which lines of the owned files ran, in each thread that counts, at a falling cost.

Python 3.12 and later report each line once (`sys.monitoring`). Before that a trace function must
see every call; it traces lines only in owned functions that still have unseen lines. Counting how
often each line ran takes all lines, always.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from opcode import opmap
from types import CodeType, FrameType
from typing import Any, Protocol

from flake8_torchperf.runtime.counting.threads import is_counted
from flake8_torchperf.runtime.counting.user_frames import lines_of
from flake8_torchperf.runtime.workload.exchange import Times

_TOOL = "torchperf"
_HAS_MONITORING = sys.version_info >= (3, 12)

# The end of a function, in contrast to what it yields; Python 3.12 reports returns alone.
_RETURN = opmap["RETURN_VALUE"]


class ReturnsWatched(Protocol):
    """Asks for the returns of some functions, owned or not."""

    def concerns(self, code: CodeType) -> bool:
        """True if returns of this code matter."""

    def returned(self, frame: FrameType) -> None:
        """Take note of a return."""


class ExecutedLines:
    """Records executed lines between `start` and `stop`, with how often each ran if it `counts`.

    ``markers`` are told of the functions that return, as far as they ask for them.
    """

    def __init__(
        self,
        owns: Callable[[str], bool],
        *,
        counts: bool = False,
        markers: ReturnsWatched | None = None,
    ) -> None:
        self._owns = owns
        self._markers = markers
        self._counts = counts
        # By id of the code object: how often a line began at an instruction's offset.
        self._times: dict[int, defaultdict[int, int]] = {}
        self._seen: dict[str, set[int]] = {}
        self._codes: dict[int, CodeType] = {}  # Keeps the ids in `_tracers` from being reused.
        self._tracers: dict[int, Any] = {}
        self._tool = 0
        self._around: list[FrameType] = []
        self._uncounted: set[tuple[str, int]] = set()
        self.disturbed = False
        """True if something else (a debugger, coverage.py) took the trace function away."""

    @property
    def by_file(self) -> dict[str, set[int]]:
        """The lines that ran, by file name as in the code objects."""
        seen = {name: set(lines) for name, lines in self._seen.items()}
        for name, pieces in self.times.items():
            seen.setdefault(name, set()).update(line for piece in pieces for line, _ in piece)
        return {name: lines for name, lines in seen.items() if lines}

    @property
    def times(self) -> dict[str, tuple[Times, ...]]:
        """The functions of each file, as lines and counts in the order of their instructions.

        A line whose code has several parts, such as a call over several lines, appears several
        times: the part that runs first comes first. Counts of code that was made twice, by another
        import, are added.
        """
        summed: dict[tuple[str, str, int], dict[tuple[int, int], int]] = {}
        for key, table in self._times.items():
            code = self._codes[key]
            lines = lines_of(code)
            piece = summed.setdefault((code.co_filename, code.co_name, code.co_firstlineno), {})
            for offset, times in list(table.items()):
                place = (offset, lines.get(offset, code.co_firstlineno))
                piece[place] = piece.get(place, 0) + times
        found: dict[str, tuple[Times, ...]] = {}
        for (name, _, _), piece in summed.items():
            began = tuple((line, count) for (_, line), count in sorted(piece.items()))
            found[name] = (*found.get(name, ()), began)
        return found

    @property
    def uncounted(self) -> int:
        """The number of lines that ran in threads in which nothing is counted."""
        return len(self._uncounted)

    def forget_times(self) -> None:
        """Reset the counts of how often each line ran."""
        for table in self._times.values():
            table.clear()

    def start(self, around: FrameType | None = None) -> None:
        """Begin; threads started from now on are included, and the rest of the frames ``around``.

        A region begins in the middle of functions, whose calls are not seen.
        """
        if _HAS_MONITORING:
            self._monitor()
        else:
            threading.settrace(self._call)
            sys.settrace(self._call)
        while around is not None:
            if _HAS_MONITORING:
                self._started(around.f_code, 0)
            elif self._owns(around.f_code.co_filename):
                around.f_trace = self._call(around, "call", None)
                self._around.append(around)
            around = around.f_back

    def stop(self) -> None:
        """Stop, but leave a trace function that someone else has set."""
        if _HAS_MONITORING:
            monitoring = _monitoring()
            monitoring.set_events(self._tool, 0)
            monitoring.free_tool_id(self._tool)
            return
        for frame in self._around:
            frame.f_trace = None
        self._around.clear()
        # A bound method is a new object each time it is looked up: compare, not identify.
        self.disturbed = sys.gettrace() != self._call
        if not self.disturbed:
            sys.settrace(None)
        threading.settrace(None)

    # Python 3.10 and 3.11.

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        tracer = self._tracers.get(id(code))
        if tracer is None:
            tracer = self._learn(code)
        return tracer or None

    def _learn(self, code: CodeType) -> Any:
        self._codes[id(code)] = code
        tracer: Any = False
        if self._owns(code.co_filename):
            tracer = self._counter(code) if self._counts else self._until_all_ran(code)
        if self._markers is not None and self._markers.concerns(code):
            tracer = self._until_return(self._markers, id(code), tracer)
        self._tracers[id(code)] = tracer
        return tracer

    def _until_return(self, markers: ReturnsWatched, key: int, lines: Any) -> Any:
        """Return a trace function that tells of returns, and passes lines on if any are wanted."""

        def traced(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "return":
                if frame.f_code.co_code[frame.f_lasti] == _RETURN:
                    markers.returned(frame)
            elif lines:
                lines(frame, event, argument)
                self._tracers[key] = traced  # The tracer gives it up when all lines ran.
            else:
                frame.f_trace_lines = False
            return traced

        return traced

    def _counter(self, code: CodeType) -> Any:
        times = self._times.setdefault(id(code), defaultdict(int))  # Another thread may be first.

        def line_ran(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                times[frame.f_lasti] += 1
            return line_ran

        return line_ran

    def _until_all_ran(self, code: CodeType) -> Any:
        key = id(code)
        missing = {line for _, _, line in code.co_lines() if line is not None}
        seen = self._seen.setdefault(code.co_filename, set())

        def line_ran(frame: FrameType, event: str, argument: Any) -> Any:
            line = frame.f_lineno
            if event == "line" and line in missing:
                missing.discard(line)
                seen.add(line)
                if not missing:
                    self._tracers[key] = False
                    frame.f_trace_lines = False
            return line_ran

        return line_ran

    # Python 3.12 and later.

    def _monitor(self) -> None:
        monitoring = _monitoring()
        free = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
        if not free:
            raise RuntimeError("all tools of sys.monitoring are taken: stop one of them")
        self._tool = free[-1]
        monitoring.use_tool_id(self._tool, _TOOL)
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._started)
        line_ran = self._count if self._counts else self._line
        monitoring.register_callback(self._tool, monitoring.events.LINE, line_ran)
        if self._markers is not None:
            monitoring.register_callback(self._tool, monitoring.events.PY_RETURN, self._returned)
        monitoring.set_events(self._tool, monitoring.events.PY_START)

    def _started(self, code: CodeType, offset: int) -> Any:
        monitoring = _monitoring()
        events = 0
        if self._owns(code.co_filename):
            events = monitoring.events.LINE
            self._seen.setdefault(code.co_filename, set())
            if self._counts:
                self._codes[id(code)] = code
                self._times.setdefault(id(code), defaultdict(int))
        if self._markers is not None and self._markers.concerns(code):
            events |= monitoring.events.PY_RETURN
        if events:
            monitoring.set_local_events(self._tool, code, events)
        return monitoring.DISABLE

    def _returned(self, code: CodeType, offset: int, value: Any) -> None:
        if self._markers is not None:
            self._markers.returned(sys._getframe(1))

    def _line(self, code: CodeType, line: int) -> Any:
        if not is_counted():
            self._uncounted.add((code.co_filename, line))
            return None
        self._seen[code.co_filename].add(line)
        return _monitoring().DISABLE

    def _count(self, code: CodeType, line: int) -> None:
        if not is_counted():
            self._uncounted.add((code.co_filename, line))
            return
        self._times[id(code)][sys._getframe(1).f_lasti] += 1


def _monitoring() -> Any:
    """Return `sys.monitoring`, which the type checker does not know below Python 3.12."""
    return vars(sys)["monitoring"]
