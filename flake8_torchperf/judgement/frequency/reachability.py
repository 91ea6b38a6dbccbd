"""Tests that follow calls: whether all, or any, of the calls to a function meet a condition.

Each function is decided once, however many paths lead to it, and recursion is handled.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.project.module_index import FunctionInfo

# The type of an answer for one function.
Answer = TypeVar("Answer")
# True and False are the call's own answer; None means that the answer for its caller decides.
Judge: TypeAlias = "Callable[[FunctionInfo, CallSite], bool | None]"
# Returns the calls that lead to a function.
CallsOf: TypeAlias = "Callable[[FunctionInfo], Sequence[CallSite]]"

# The most functions of one module on the way to a function that are looked at.
MAX_IN_MODULE = 10_000


class _Ways:
    """The functions that lead to an undecided one, with the answers of their calls.

    The calls that a function makes to itself are ignored. ``is_whole`` is False if more functions
    lead to it than ``most``; then some of these have no calls here.
    """

    def __init__(
        self,
        start: FunctionInfo,
        calls: CallsOf,
        judge: Judge,
        known: Callable[[str], bool | None],
        most: int,
    ) -> None:
        self.is_whole = True
        self.said: dict[str, list[bool]] = {start.key: []}
        # The callers of calls that meet the condition (None: module level), with the callees.
        self.agreeing: dict[str | None, list[str]] = {}
        # Pairs of a caller that is decided already and the function that it calls.
        self.called_by_known: list[tuple[str, str]] = []
        self._callees: dict[str, list[str]] = {}
        waiting = [start]
        while waiting:
            info = waiting.pop()
            self.is_whole = self.is_whole and len(self.said) <= most
            for site in calls(info) if self.is_whole else ():
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
        """Return the functions with at least one call that has this answer without its caller."""
        return [key for key, answers in self.said.items() if answer in answers]

    def reached_from(self, starts: dict[str, int], but: str | None = None) -> dict[str, int]:
        """Return the distances of ``starts`` and all their callees, without passing ``but``."""
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


class _Question(Generic[Answer]):
    """A question about the calls that lead to functions, with its answers by the functions' keys.

    At most ``most`` functions on the way to one are looked at.
    """

    def __init__(self, calls: CallsOf, judge: Judge, most: int = MAX_IN_MODULE) -> None:
        self._calls = calls
        self._judge = judge
        self._most = most
        self._known: dict[str, Answer] = {}

    def forget(self) -> None:
        """Drop the reference to the judge, which often belongs to the owner of this object."""
        self._judge = _nothing


class Every(_Question[bool]):
    """Decides if a function is called at all, and only by calls that meet the condition.

    False if more than ``most`` functions lead to it. For functions that call each other in a
    circle, the calls from outside the circle decide.
    """

    def of(self, info: FunctionInfo) -> bool:
        """Return True if every call that leads to the function meets the condition."""
        if info.key not in self._known:
            ways = _Ways(info, self._calls, self._judge, self._known.get, self._most)
            if not ways.is_whole:
                self._known[info.key] = False
                return False
            called = ways.reached_from(dict.fromkeys(ways.saying(True), 0))
            uncalled = [key for key in ways.said if key not in called]
            refused = ways.reached_from(dict.fromkeys([*ways.saying(False), *uncalled], 0))
            self._known.update((key, key not in refused) for key in ways.said)
        return self._known[info.key]


# The most functions in circles of calls whose own calls are followed one by one.
MAX_CIRCLES = 50


class Some(_Question["int | None"]):
    """Decides if any of the calls that lead to a function meets the condition.

    A call is evidence for its callee and for all that the callee leads to. It is no evidence for
    its own caller, even if the callee calls the caller back, nor for functions reached only through
    the caller. The answer is the number of calls to the nearest one that meets the condition, None
    if none does.
    """

    def _first(self, info: FunctionInfo) -> CallSite | None:
        """Return the first call that meets the condition, or the first that leads nearer to one."""
        mine = self._away(info)
        if mine is None:
            return None
        for site in self._calls(info):
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
        """Return the calls from a function to one that meets the condition; empty if none does."""
        found: list[CallSite] = []
        site = self._first(info)
        while site is not None:
            found.append(site)
            caller = site.caller
            if caller is None or self._judge(info, site) is not None:
                break
            info = caller
            site = self._first(info)
        return found

    def _away(self, info: FunctionInfo) -> int | None:
        if info.key not in self._known:
            ways = _Ways(info, self._calls, self._judge, self._is_known, self._most)
            near = self._reached(ways)
            decided = ways.said if ways.is_whole else {*near, info.key}
            self._known.update((key, near.get(key)) for key in decided)
        return self._known[info.key]

    def _reached(self, ways: _Ways) -> dict[str, int]:
        """Return the distance of each function from a call that meets the condition.

        A function that makes such a call is not reached through that call itself.
        """
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

    def _is_known(self, key: str) -> bool | None:
        return None if key not in self._known else self._known[key] is not None
