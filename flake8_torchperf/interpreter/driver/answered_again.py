"""Questions of what calls give, asked again of an analysis that has followed none of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.interpreter.calls.summaries import SUMMARIES, SUMMARY, as_outcome, summary_of
from flake8_torchperf.interpreter.engine.analysis import STEPS_PER_FUNCTION
from flake8_torchperf.interpreter.engine.followed import (
    CallWatch,
    note_followed,
    record_followed,
    writers,
)
from flake8_torchperf.interpreter.engine.place import Context
from flake8_torchperf.interpreter.engine.value_data import Made, NoData, is_same
from flake8_torchperf.interpreter.inference.parameters import PARAMETERS, FunctionBody, declare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo


# Answers questions of a kind that are not the interpreter's, given the function and a value.
Answers: TypeAlias = "Mapping[str, Callable[[FunctionInfo, Any], object]]"


def answered_again(question: str, analysis: Analysis, made: Made, others: Answers) -> list[Any]:
    """Return the answer to a question now; the call is noted as one that was followed.

    ``others`` answers questions of other kinds. Raises NoData if what it names isn't there any
    more, or if it can't be answered alone.
    """
    kind, about, given, running, [waits, *nested] = json.loads(question)
    info = made.value(about)
    budget = analysis.begin()
    budget.waits = waits
    stack = analysis.stack
    stack.expressions, stack.names, stack.attributes = nested
    calls = tuple(key for name in running for key in made.keys_of(name))
    values, outcome = made.value(given), None
    watch = CallWatch(analysis, budget, calls)
    if kind in others:
        outcome = others[kind](info, values)
    elif kind == SUMMARY:
        env, asked, settled, depth = values
        linted = analysis.project.linted
        place = Context(analysis, linted, budget, None, depth=depth, calls=calls)
        outcome = as_outcome(summary_of(info, (env, asked, settled), place))
    elif kind == PARAMETERS:
        outcome = declare(info, FunctionBody(info), analysis)
    call = watch.end(info, kind, values, outcome)
    if call is None:
        raise NoData
    note_followed(call, analysis)
    return call.as_data(*writers(analysis, now=True))[1]


def are_same(asked: Sequence[tuple[str, str]], analysis: Analysis, others: Answers) -> bool:
    """True if questions have the answers of before; the calls are recorded then.

    The functions that asked them still have steps left if all of them together take more.
    """
    made = Made(analysis)
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
