"""Calls that are followed into functions of other modules, as questions with answers in plain data.

A finding depends on what such a call gives, and not on the text of the function: if that changes,
the question is asked again (`driver/answered_again.py`).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.interpreter.engine.analysis import Budget
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.value_data import Made, NoData, Written, holds_closure
from flake8_torchperf.project.function_facts import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo

# A question with its answer and the steps that this took, in plain data.
Asked: TypeAlias = "tuple[str, list[Any]]"


def may_follow(info: FunctionInfo, analysis: Analysis) -> bool:
    """True if the text of a function counts by what it gives: somebody records, and can ask again.

    That is not so for a function in another one, which no name leads to.
    """
    parts = info.module.parts
    return parts is not None and parts.records and place_of(info) is not None


class CallWatch:
    """A call into a function while it is followed: by what it starts with, and what it leaves.

    ``running`` holds the keys of the functions that are running, which are not followed again, and
    ``depth`` the number of calls around this one.
    """

    def __init__(
        self,
        analysis: Analysis,
        budget: Budget | None = None,
        running: Sequence[object] = (),
        depth: int = 0,
    ) -> None:
        stack = analysis.stack
        self._analysis = analysis
        self._stack = stack
        self._budget = Budget(stack) if budget is None else budget
        self._running, self._depth = running, depth
        self._nested = (stack.expressions, stack.names, stack.attributes)
        self._counts, self._steps = self._budget.counts(), self._budget.steps
        self._shared, self._underway = stack.shared, len(analysis.underway)
        self._met, self._cut = stack.met, stack.cut
        stack.met = sys.maxsize

    def end(self, info: FunctionInfo, kind: str, given: Any, outcome: Any) -> FollowedCall | None:
        """Return the call at its end; None if what it gives depends on more than it is given."""
        stack, budget = self._stack, self._budget
        met = stack.met < self._underway
        self.close()
        if stack.shared != self._shared or budget.steps < 0:
            return None
        _, _, waited, read = self._counts
        _, _, waits, decided = budget.counts()
        return FollowedCall(
            info,
            kind,
            given,
            names_of(self._running),
            names_underway(list(self._analysis.underway)[: self._underway]) if met else [],
            self._depth,
            outcome,
            [waited, *self._nested],
            [waits > waited, decided > read],
            stack.cut > self._cut,
            self._steps - budget.steps,
        )

    def close(self) -> None:
        """End the call without a record; what it met counts for those around it, too."""
        self._stack.met = min(self._stack.met, self._met)

    def note(self, info: FunctionInfo, kind: str, given: Any, outcome: Any) -> None:
        """End the call, and record it by what it gives, or by the text of the function."""
        call = self.end(info, kind, given, outcome)
        if call is None:
            info.ask()
        else:
            note_followed(call, self._analysis)


def names_of(running: Iterable[object]) -> list[str]:
    """Return functions by module and name, given by their keys; nested ones have others."""
    return [key.rpartition(":")[0] for key in running if isinstance(key, str)]


def names_underway(keys: Iterable[object]) -> list[list[Any]]:
    """Return the names and attributes whose values are being found, by what they are called.

    See `Analysis.underway`: an imported name is its own key, one of a module level has the module's
    name with it, and an attribute its class's key, with those of its methods that are running.
    """
    found: list[list[Any]] = []
    for key in keys:
        match key:
            case str():
                found.append([key])
            case (str() as module, str() as name):
                found.append([module, name])
            case (str() as owner, str() as name, frozenset() as writers):
                found.append([owner.rpartition(":")[0], name, sorted(names_of(writers))])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class FollowedCall:
    """A call of a function from its start to its end.

    ``kind`` says what is asked: the summary of a call, the values of parameters by the body, the
    value that a body takes, or the queue that a function leaves. ``running`` names the functions
    around it, ``underway`` what has no value yet, if that was asked for, and ``depth`` is the
    number of calls around it. ``start`` holds the waits before and how deep it is nested. ``added``
    says if the device was waited for, and if a value was read: that is all that a caller asks of
    the counts, since it counts the call itself, and how many calls a function makes depends on
    those that were followed before. ``cut`` says if calls inside were too deep to follow; ``steps``
    is the number of expressions evaluated.
    """

    info: FunctionInfo
    kind: str
    given: Any
    running: list[str]
    underway: list[list[Any]]
    depth: int
    outcome: Any
    start: list[int]
    added: list[bool]
    cut: bool
    steps: int

    def as_data(self, again: Written, compared: Written) -> Asked:
        """Return the question and its answer, each as written. Raises NoData.

        A question has three lines: the call, what is around it, and what it starts with.
        """
        call = [self.kind, again.data(self.info), again.data(self.given)]
        around = [self.running, self.underway, self.depth]
        question = "\n".join(map(json.dumps, (call, around, self.start)))
        return question, [compared.data(self.outcome), self.added, self.cut, self.steps]


# The calls that were followed into functions of other modules, by function, with the data of those
# that had to be written down at once.
FOLLOWED_CALLS: Cache[FunctionInfo, list[tuple[FollowedCall, Asked | None]]] = Cache(
    "calls followed"
)


def writers(analysis: Analysis, *, now: bool) -> tuple[Written, Written]:
    """Return what writes questions and answers; ``now`` at the end of one call."""
    return Written(analysis, again=True, now=now), Written(analysis, again=False, now=now)


def note_followed(call: FollowedCall, analysis: Analysis) -> None:
    """Note a call that was followed; one with nested functions is written down at once."""
    data = None
    if holds_closure(call.given) or holds_closure(call.outcome):
        try:
            data = call.as_data(*writers(analysis, now=True))
        except (NoData, RecursionError):
            call.info.ask()
    FOLLOWED_CALLS.table(analysis).setdefault(call.info, []).append((call, data))


def record_followed(analysis: Analysis) -> None:
    """Record the calls that were followed, at the end: by what they give, or by the text.

    Values are written down only where nobody else asked for the text of the function.
    """
    left, pair = analysis.least_steps(), writers(analysis, now=False)
    for info, calls in FOLLOWED_CALLS.table(analysis).items():
        parts = info.module.parts
        if parts is None or parts.is_asked(info.queries[-1]):
            continue
        try:
            found = [call.as_data(*pair) if data is None else data for call, data in calls]
        except NoData:
            info.ask()
            continue
        for question, answer in found:
            parts.follow(info.qualname, question, json.dumps([*answer, left]))


_MADE: Cache[None, Made] = Cache("what makes values again")


def made_in(analysis: Analysis) -> Made:
    """Return what makes values again for an analysis."""
    return _MADE.kept(analysis, None, lambda: Made(analysis))


# While questions are asked again, the answers that stand: by call, and by what is around it.
STANDING: Cache[str, dict[str, str]] = Cache("answers that stand")


def stand(answers: Iterable[tuple[str, str]], analysis: Analysis) -> None:
    """Let the answers to questions that are not asked again stand for what calls give."""
    table = STANDING.table(analysis)
    for question, answer in answers:
        call, around, _ = question.split("\n")
        table.setdefault(call, {})[around] = answer


def standing_answer(
    info: FunctionInfo,
    kind: str,
    given: Any,
    analysis: Analysis,
    running: Sequence[object] = (),
    depth: int = 0,
) -> tuple[Any, list[bool], int] | None:
    """Return the outcome of a call that stands, with what it adds and its steps; None for another.

    See `FollowedCall`. An answer that was cut nowhere also stands deeper and elsewhere, as a
    summary does.
    """
    table = STANDING.table(analysis)
    if not table:
        return None
    again = Written(analysis, again=True, now=True)
    try:
        call = [kind, again.data(info), again.data(given)]
        held = table.get(json.dumps(call))
        if held is None:
            return None
        names = names_of(running)
        answer = held.get(json.dumps([names, [], depth]))
        if answer is None and analysis.underway:
            answer = held.get(json.dumps([names, names_underway(analysis.underway), depth]))
        if answer is None:
            answer = next((one for around, one in held.items() if _is_general(around, one)), None)
        if answer is None:
            return None
        outcome, added, cut, steps, _ = json.loads(answer)
        known = made_in(analysis).value(outcome)
        analysis.stack.cut += cut
        return known, added, steps
    except (NoData, RecursionError):
        return None


def _is_general(around: str, answer: str) -> bool:
    """True if an answer depends neither on names without a value nor on the depth."""
    _, underway, _ = json.loads(around)
    return not underway and not json.loads(answer)[2]
