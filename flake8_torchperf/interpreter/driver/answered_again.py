"""Questions of what calls give, asked again of an analysis that has followed none of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.interpreter.calls.instances import ATTRIBUTES
from flake8_torchperf.interpreter.calls.summaries import SUMMARIES, SUMMARY, as_outcome, summary_of
from flake8_torchperf.interpreter.engine.analysis import STEPS_PER_FUNCTION
from flake8_torchperf.interpreter.engine.followed import (
    FOLLOWED_CALLS,
    STANDING,
    CallWatch,
    made_in,
    note_followed,
    record_followed,
    writers,
)
from flake8_torchperf.interpreter.engine.place import Context
from flake8_torchperf.interpreter.engine.value_data import NoData, is_same
from flake8_torchperf.interpreter.inference.from_callees import TAKES, taken_by_body
from flake8_torchperf.interpreter.inference.parameters import (
    DECLARED,
    PARAMETERS,
    FunctionBody,
    declare,
)
from flake8_torchperf.values.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.value_data import Made
    from flake8_torchperf.project.module_index import FunctionInfo


# Answers questions of a kind that are not the interpreter's, given the function and a value.
Answers: TypeAlias = "Mapping[str, Callable[[FunctionInfo, Any], object]]"


def answered_again(question: str, analysis: Analysis, made: Made, others: Answers) -> list[Any]:
    """Return the answer to a question now; the call is noted as one that was followed.

    ``others`` answers questions of other kinds. Raises NoData if what it names isn't there any
    more, or if it can't be answered alone.
    """
    asked, around, start = map(json.loads, question.split("\n"))
    kind, about, given = asked
    running, underway, depth = around
    waits, *nested = start
    info = made.value(about)
    budget = analysis.begin()
    budget.waits = waits
    stack = analysis.stack
    stack.expressions, stack.names, stack.attributes = nested
    calls = tuple(key for name in running for key in made.keys_of(name))
    values, outcome = made.value(given), None
    _assume_underway(underway, analysis, made)
    watch = CallWatch(analysis, budget, calls, depth)
    if kind in others:
        outcome = others[kind](info, values)
    elif kind == SUMMARY:
        linted = analysis.project.linted
        place = Context(analysis, linted, budget, None, depth=depth, calls=calls)
        outcome = as_outcome(summary_of(info, values, place))
    elif kind == TAKES:
        outcome = taken_by_body(info, values, analysis)
    elif kind == PARAMETERS:
        outcome = declare(info, FunctionBody(info), analysis)
        DECLARED.table(analysis)[info.key] = outcome
    call = watch.end(info, kind, values, outcome)
    if underway:
        analysis.forget_values(but=(FOLLOWED_CALLS.name, STANDING.name))
    if call is None:
        raise NoData
    note_followed(call, analysis)
    return call.as_data(*writers(analysis, now=True))[1]


def _assume_underway(underway: list[list[Any]], analysis: Analysis, made: Made) -> None:
    """Let names and attributes have no value, as at the call (`followed.names_underway`)."""
    for names in underway:
        match names:
            case [name]:
                analysis.assume_underway(name)
            case [module, name]:
                analysis.assume_underway((module, name))
            case [owner, name, writers]:
                keys = frozenset(key for one in writers for key in made.keys_of(one))
                key = (made.owner(owner).key, name, keys)
                analysis.underway[key] = len(analysis.underway)
                ATTRIBUTES.table(analysis)[key] = UNKNOWN


def are_same(asked: Sequence[tuple[str, str]], analysis: Analysis, others: Answers) -> bool:
    """True if questions have the answers of before; the calls are recorded then.

    The functions that asked them still have steps left if all of them together take more.
    """
    made = made_in(analysis)
    more, spare = 0, STEPS_PER_FUNCTION
    try:
        for question, answer in asked:
            *then, steps, left = json.loads(answer)
            *now, taken = answered_again(question, analysis, made, others)
            if not is_same(now, then):
                # Of calls alike, the first one followed gives what all of them show.
                SUMMARIES.table(analysis).clear()
                *now, taken = answered_again(question, analysis, made, others)
            more, spare = more + max(taken - steps, 0), min(spare, left)
            if not is_same(now, then) or more > spare:
                return False
        record_followed(analysis)
    except (NoData, RecursionError):
        return False  # what a question names is gone, or it depends on more than it names
    return True
