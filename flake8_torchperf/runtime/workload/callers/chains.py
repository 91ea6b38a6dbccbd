"""Records the calls that led to each wait: up to three frames of the user's, and a library's line.

Frames are looked at only where a wait is counted, and become lines only when the run ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import CodeType, FrameType

from flake8_torchperf.runtime.counting.user_frames import lines_of, qualified_name
from flake8_torchperf.runtime.workload.exchange import Led, Place

INNERMOST = 3
"""The most frames of the user's that are kept, the one that waited included."""

_OWNED, _BETWEEN, _OTHER = 1, 2, 3  # None is 0, which stands for unknown code.


class Chains:
    """Collects the calls that led to waits, in whatever thread they happen.

    ``owns`` tells the user's code; ``passes`` tells frames that only pass a call on to torch.
    """

    def __init__(
        self, owns: Callable[[CodeType], bool], passes: Callable[[CodeType], bool]
    ) -> None:
        self._owns = owns
        self._passes = passes
        self._lock = threading.Lock()
        self._codes: dict[int, CodeType] = {}
        self._roles: dict[int, int] = {}
        # The code object and offset of the library's frame, zeros without one, then the user's. By
        # the ids of code objects, since hashing one hashes its constants; `_codes` keeps the ids
        # from being reused.
        self._times: dict[tuple[str, str, bool, tuple[int, ...]], int] = {}

    def forget(self) -> None:
        """Discard everything seen so far."""
        self._lock = threading.Lock()  # A forked process may have inherited a held one.
        self._times.clear()

    def add(
        self,
        frame: FrameType | None,
        source: str,
        kind: str = "",
        *,
        times: int = 1,
        firm: bool = False,
    ) -> None:
        """Count a wait in or below this frame; ``source``, ``kind`` and ``firm`` as in `Led`."""
        # No call for a frame that is known: a trace function may watch every call in this process.
        role_of = self._roles.get
        key: list[int] = []
        while frame is not None and len(key) < 2 + 2 * INNERMOST:
            code = frame.f_code
            role = role_of(id(code)) or self._learn(code)
            if role == _OWNED:
                key += (id(code), frame.f_lasti) if key else (0, 0, id(code), frame.f_lasti)
            elif role == _OTHER and not key:
                key += (id(code), frame.f_lasti)
            frame = frame.f_back
        if len(key) > 2:
            with self._lock:
                whole = (source, kind, firm, tuple(key))
                self._times[whole] = self._times.get(whole, 0) + times

    def _learn(self, code: CodeType) -> int:
        role = _OWNED if self._owns(code) else _BETWEEN if self._passes(code) else _OTHER
        self._codes[id(code)] = code
        self._roles[id(code)] = role
        return role

    @property
    def rows(self) -> tuple[Led, ...]:
        """The rows of everything seen, one for each way to a line."""
        tables: dict[int, dict[int, int]] = {}

        def place(key: int, offset: int) -> Place:
            code = self._codes[key]
            if key not in tables:
                tables[key] = lines_of(code)
            line = tables[key].get(offset, code.co_firstlineno)
            return code.co_filename, line, qualified_name(code).replace(".<locals>", "")

        summed: dict[tuple[str, str, bool, Place | None, tuple[Place, ...]], int] = {}
        for (source, kind, firm, places), times in list(self._times.items()):
            library = place(*places[:2]) if places[0] else None
            pairs = zip(places[2::2], places[3::2], strict=True)
            key = (source, kind, firm, library, tuple(place(*pair) for pair in pairs))
            summed[key] = summed.get(key, 0) + times
        return tuple(Led(*key, times) for key, times in summed.items())
