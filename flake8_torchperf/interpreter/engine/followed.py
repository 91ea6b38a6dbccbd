"""Calls that are followed into functions of other modules, as questions with answers in plain data.

A finding depends on what such a call gives, and not on the text of the function: if that changes,
the question is asked again (`driver/answered_again.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.interpreter.engine.analysis import Budget
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.value_data import NoData, Written, holds_closure
from flake8_torchperf.project.function_facts import place_of

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo

# A question with its answer and the steps that this took, in plain data.
Asked: TypeAlias = "tuple[str, list[Any]]"


@dataclass(frozen=True, slots=True)
class StackCounts:
    """The numbers of a stack and a budget at one time, by which an interpretation may differ."""

    shared: int
    expressions: int
    counts: tuple[int, ...]
    steps: int

    def added(self, before: StackCounts) -> list[bool]:
        """Return if the device was waited for since an earlier time, and if a value was read.

        That is all that a caller asks of the counts: it counts the call itself, and how many calls
        a function makes depends on those that were followed before.
        """
        _, _, waits, decided = self.counts
        _, _, waited, read = before.counts
        return [waits > waited, decided > read]

    def is_alone(self, before: StackCounts) -> bool:
        """True if nothing since an earlier time depends on the calls of other functions."""
        return self.shared == before.shared and self.steps >= 0


def counted(analysis: Analysis, budget: Budget | None = None) -> StackCounts:
    """Return the numbers of the stack and the budget now, if the question takes one."""
    stack = analysis.stack
    budget = Budget(stack) if budget is None else budget
    return StackCounts(stack.shared, stack.expressions, budget.counts(), budget.steps)


def may_follow(info: FunctionInfo, analysis: Analysis) -> bool:
    """True if the text of a function counts by what it gives: somebody records, and can ask again.

    An attribute or a name whose value is being found has no value meanwhile.
    """
    parts, stack = info.module.parts, analysis.stack
    return (
        parts is not None
        and parts.records
        and not stack.names
        and not stack.attributes
        and place_of(info) is not None
    )


@dataclass(frozen=True, slots=True, eq=False)
class FollowedCall:
    """A call of a function between two times: its arguments, and the outcome.

    ``kind`` says what is asked: the summary of a call, or the values of parameters by the body.
    """

    info: FunctionInfo
    kind: str
    given: Any
    outcome: Any
    before: StackCounts
    after: StackCounts

    def as_data(self, again: Written, compared: Written) -> Asked:
        """Return the question and its answer, each as written. Raises NoData."""
        if not self.after.is_alone(self.before):
            raise NoData
        _, _, waits, _ = self.before.counts
        given = again.data(self.given)
        question = [self.kind, again.data(self.info), given, waits, self.before.expressions]
        taken = self.before.steps - self.after.steps
        answer = [compared.data(self.outcome), self.after.added(self.before), taken]
        return json.dumps(question), answer


# The calls that were followed into functions of other modules, by function, with the texts of those
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
