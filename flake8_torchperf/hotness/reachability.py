"""Questions that are followed from call to call: does every call say yes, or does one?

Each function is worked out once, however many ways lead to it, through circles of calls too.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from flake8_torchperf.hotness.call_graph import Calls, CallSite
    from flake8_torchperf.project.module_index import FunctionInfo

# True and False are a call's own answer; with None its caller's answer is taken.
Judge: TypeAlias = "Callable[[FunctionInfo, CallSite], bool | None]"


class _Ways:
    """The functions that lead to one of which nothing is known yet, and what their calls say.

    A function that calls itself says nothing of how it comes to be called.
    """

    def __init__(
        self, start: FunctionInfo, calls: Calls, judge: Judge, known: Callable[[str], bool | None]
    ) -> None:
        self.said: dict[str, list[bool]] = {start.key: []}
        # Who says yes by a call (None: module level), and to whom.
        self.agreeing: dict[str | None, list[str]] = {}
        # Who is called by a function of which the answer is known already.
        self.called_by_known: list[tuple[str, str]] = []
        self._callees: dict[str, list[str]] = {}
        waiting = [start]
        while waiting:
            info = waiting.pop()
            for site in calls.of(info):
                answer, caller = judge(info, site), site.caller
                if caller is None or answer is not None:
                    if caller is None or caller.key != info.key:
                        self._note(info, caller, bool(answer))
                elif (answer := known(caller.key)) is not None:
                    self.said[info.key].append(answer)
                    self.called_by_known.append((caller.key, info.key))
                elif caller.key != info.key:
                    self._callees.setdefault(caller.key, []).append(info.key)
                    if caller.key not in self.said:
                        self.said[caller.key] = []
                        waiting.append(caller)

    def _note(self, info: FunctionInfo, caller: FunctionInfo | None, answer: bool) -> None:
        self.said[info.key].append(answer)
        if answer:
            by = None if caller is None else caller.key
            self.agreeing.setdefault(by, []).append(info.key)

    def saying(self, answer: bool) -> list[str]:
        """The functions of which one call says so by itself."""
        return [key for key, answers in self.said.items() if answer in answers]

    def reached_from(self, starts: dict[str, int], but: str | None = None) -> dict[str, int]:
        """The functions and all that they lead to, not by way of ``but``; how far each is."""
        found: dict[str, int] = {}
        waiting = [(number, key) for key, number in starts.items()]
        heapify(waiting)
        while waiting:
            number, key = heappop(waiting)
            if key not in found and key != but:
                found[key] = number
                for callee in self._callees.get(key, ()):
                    heappush(waiting, (number + 1, callee))
        return found


def _nothing(_info: FunctionInfo, _site: CallSite) -> bool | None:
    return None


class Every:
    """Is a function seen to be called, and does every call that leads to it say yes?

    Functions that call each other in a circle are what the calls into the circle say.
    """

    def __init__(self, calls: Calls, judge: Judge) -> None:
        self._calls = calls
        self._judge = judge
        self._known: dict[str, bool] = {}

    def of(self, info: FunctionInfo) -> bool:
        """The answer for a function."""
        if info.key not in self._known:
            ways = _Ways(info, self._calls, self._judge, self._known.get)
            called = ways.reached_from(dict.fromkeys(ways.saying(True), 0))
            uncalled = [key for key in ways.said if key not in called]
            refused = ways.reached_from(dict.fromkeys([*ways.saying(False), *uncalled], 0))
            self._known.update((key, key not in refused) for key in ways.said)
        return self._known[info.key]

    def forget(self) -> None:
        """Let go of who judges: whoever asks the question often does."""
        self._judge = _nothing


# Functions in circles of calls whose own calls are followed one by one.
MAX_CIRCLES = 50


class Some:
    """Does one of the calls that lead to a function say yes?

    What a function says of those that it calls, does not hold of itself where they call it in turn,
    nor of what only it leads to then.
    """

    def __init__(self, calls: Calls, judge: Judge) -> None:
        self._calls = calls
        self._judge = judge
        # How many calls away the one is that says yes; None where none does.
        self._known: dict[str, int | None] = {}

    def first(self, info: FunctionInfo) -> CallSite | None:
        """The first call of a function that says yes, or whose caller is nearer to one."""
        mine = self._away(info)
        if mine is None:
            return None
        for site in self._calls.of(info):
            answer, caller = self._judge(info, site), site.caller
            if caller is not None and caller.key == info.key:
                continue
            if answer is None and caller is not None:
                away = self._away(caller)
                answer = away is not None and away < mine
            if answer:
                return site
        return None

    def path(self, info: FunctionInfo) -> list[CallSite]:
        """The calls from a function to one that says yes by itself; none where none does."""
        found: list[CallSite] = []
        site = self.first(info)
        while site is not None:
            found.append(site)
            caller = site.caller
            if caller is None or self._judge(info, site) is not None:
                break
            info = caller
            site = self.first(info)
        return found

    def _away(self, info: FunctionInfo) -> int | None:
        if info.key not in self._known:
            ways = _Ways(info, self._calls, self._judge, self._is_known)
            near = self._reached(ways)
            self._known.update((key, near.get(key)) for key in ways.said)
        return self._known[info.key]

    def _reached(self, ways: _Ways) -> dict[str, int]:
        """Whom one leads to that says yes by a call, without that one among them."""
        circles = [by for by in ways.agreeing if by in ways.said][:MAX_CIRCLES]
        starts: dict[str, int] = {}
        for caller, callee in ways.called_by_known:
            away = self._known[caller]
            if away is not None:
                starts[callee] = min(away + 1, starts.get(callee, away + 1))
        for by, callees in ways.agreeing.items():
            if by not in circles:
                starts.update(dict.fromkeys(callees, 0))
        found = ways.reached_from(starts)
        for by in circles:
            inside = ways.reached_from(dict.fromkeys(ways.agreeing[by], 0), but=by)
            found.update((k, n) for k, n in inside.items() if n < found.get(k, n + 1))
        return found

    def forget(self) -> None:
        """Let go of who judges: whoever asks the question often does."""
        self._judge = _nothing

    def _is_known(self, key: str) -> bool | None:
        return None if key not in self._known else self._known[key] is not None
