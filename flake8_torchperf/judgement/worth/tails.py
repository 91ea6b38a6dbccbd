"""The queues that functions of the project leave to the code that calls them.

A wait that follows on a call is as cheap as one that follows on the last wait of the callee.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.followed import CallWatch, may_follow, standing_answer
from flake8_torchperf.judgement.worth.held_callees import HeldCallees
from flake8_torchperf.judgement.worth.queue import (
    SMALL,
    Code,
    LastWait,
    Queue,
    is_named_scaled_step,
    queue_behind,
    queues_before,
    waits_of,
    with_queues,
)
from flake8_torchperf.judgement.worth.spelled_waits import spelled_waits
from flake8_torchperf.knowledge.names import names_of
from flake8_torchperf.syntax.names import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.judged_site import Judged
    from flake8_torchperf.judgement.worth.queue import Before
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# The most calls that are followed one into another.
MAX_DEPTH = 5


class Tails:
    """The queue behind each call of a function of the project.

    The sites of a function show its waits; where no site is at hand, as in other modules, the names
    of the methods that it calls do, and each operator whose parts may be tensors counts as an
    operation.
    """

    def __init__(self, analysis: Analysis, heats: FunctionHeats) -> None:
        self._analysis = analysis
        self._callees = analysis.callees
        self._linted = analysis.project.linted
        self._heats = heats
        self._held_callees = HeldCallees(analysis, heats.program)
        self._judged: dict[str, Judged] = {}
        # The functions that calls run of which the interpreter knows none.
        self._called: dict[ast.Call, FunctionInfo | None] = {}
        self._held_by: dict[ast.Call, Sequence[FunctionInfo | None]] = {}
        # By the key of the function and the number of calls to it.
        self._left: dict[tuple[str, int], Queue | None] = {}
        # While it is looked at: a function that calls itself adds nothing to what it leaves.
        self._underway: set[str] = set()
        self._before: dict[str, Mapping[int, Queue]] = {}
        self._depth = 0
        self._scaled_steps = analysis.scaled_steps
        self._fuses = "fused=True" in "".join(self._linted.lines)

    def note(self, info: FunctionInfo, result: Judged) -> None:
        """Take the sites of a function, before the first queue is asked for."""
        self._judged[info.key] = result

    def queued(self, result: Judged, before: Before) -> Judged:
        """Return the sites of a function with the features of the queue in front of each wait.

        ``before`` returns the queue in front of the function.
        """
        return with_queues(result, self._code(result), before)

    def before(self, info: FunctionInfo, node: ast.AST) -> Queue | None:
        """Return the queue in front of a node of a function; None if it is not known."""
        if info.key not in self._before:
            info.ask()
            self._before[info.key] = queues_before(self._code_of(info))
        return self._before[info.key].get(id(node))

    def _code_of(self, info: FunctionInfo) -> Code:
        """Return a function with the waits that its sites or, without these, its names show.

        This is no query for its body.
        """
        judged = self._judged.get(info.key)
        if judged is not None:
            self._analysis.stack.shared += 1
            return self._code(judged)
        module = info.module
        waits = spelled_waits(module.nodes(info.tree), module)
        behind = partial(self._behind, module, info)
        held = partial(self._held, module)
        return Code([info.tree], waits, None, behind, held, module.qualify)

    def _code(self, judged: Judged) -> Code:
        module = self._linted
        behind = partial(self._behind, module, None)
        held = partial(self._held, module)
        nodes, waits, queued = judged.snippet.nodes, waits_of(judged), judged.queued
        return Code(nodes, waits, queued, behind, held, module.qualify, self._is_scaled_step)

    def _is_scaled_step(self, node: ast.AST) -> bool:
        """True for the step of a gradient scaler that waits, as it does without a fused optimizer.

        The name of the object counts where its class is not known.
        """
        if node in self._scaled_steps:
            waits = self._scaled_steps[node]
            return not self._fuses if waits is None else waits
        return not self._fuses and is_named_scaled_step(node)

    def _behind(
        self, module: ModuleMap, caller: FunctionInfo | None, call: ast.Call
    ) -> Queue | None:
        """Return the queue behind a call in a module; None if its function is unknown.

        ``caller`` is the function around it where the module may not hold all of its functions.
        """
        known = self._callees.get(id(call))
        if known is not None:
            return self._fullest(known.values())
        if call not in self._called:
            self._called[call] = self._function(call.func, module, caller)
        found = self._called[call]
        if found is not None:
            return self._fullest([found])
        is_wait = module.qualify(call.func) in names_of("waits-outside-torch")
        return Queue(0, call) if is_wait else None

    def _held(self, module: ModuleMap, call: ast.Call) -> Queue | None:
        """Return the queue behind a call of what a variable or an attribute holds."""
        if call not in self._held_by:
            self._held_by[call] = self._held_callees.of(call.func, module)
        held = self._held_by[call]
        return self._fullest(held) if held else None

    def _function(
        self, func: ast.expr, module: ModuleMap, caller: FunctionInfo | None
    ) -> FunctionInfo | None:
        """Return a function of the module, an imported one, or a method of ``self`` or its parts.

        What a local variable holds is not asked for: each place that binds it would be looked at.
        """
        head = dotted_name(func).partition(".")[0]
        if head in module.imports:
            return self._heats.imported(func, module)
        if head in ("self", "cls") or head in module.functions:
            return self._heats.function_called(func, module, caller)
        return None

    def _fullest(self, callees: Iterable[FunctionInfo | None]) -> Queue | None:
        """Return the queue behind one of several functions: as if all had waited, or none."""
        left = [Queue(SMALL) if one is None else self._left_by(one) for one in callees]
        known = [one for one in left if one is not None]
        if not known or len(known) < len(left):
            return None
        work = max(one.work for one in known)
        leaders = [one.leader for one in known]
        opens = next((one.opens for one in known if one.opens), "")
        return Queue(work, None if None in leaders else leaders[0], opens=opens)

    def _left_by(self, info: FunctionInfo) -> Queue | None:
        if info.key in self._underway:
            return Queue()
        if self._depth >= MAX_DEPTH:
            return None
        key = (info.key, self._depth)
        if key not in self._left:
            self._left[key] = self._followed(info)
        return self._left[key]

    def _followed(self, info: FunctionInfo) -> Queue | None:
        """Return the queue behind the body of a function, which is recorded as what it leaves."""
        if not may_follow(info, self._analysis):
            info.ask()
            return self.left_by(info, self._depth)
        answer = standing_answer(info, LEFT, self._depth, self._analysis)
        if answer is not None:
            return _as_answered(answer[0])
        watch = CallWatch(self._analysis)
        queue = self.left_by(info, self._depth)
        watch.note(info, LEFT, self._depth, as_outcome(queue))
        return queue

    def left_by(self, info: FunctionInfo, depth: int) -> Queue | None:
        """Return the queue behind the body of a function, so many calls from where it is asked for.

        This is no query for the body.
        """
        self._underway.add(info.key)
        outer, self._depth = self._depth, depth + 1
        queue = queue_behind(self._code_of(info))
        self._depth = outer
        self._underway.remove(info.key)
        return queue


# The kind of question that asks for what a function leaves.
LEFT = "left"


def as_outcome(queue: Queue | None) -> tuple[object, ...] | None:
    """Return all that a caller asks of the queue behind a function of another module."""
    if queue is None:
        return None
    return queue.work, queue.leader is not None, queue.before.value, queue.opens


def _as_answered(outcome: tuple[int, bool, int, str] | None) -> Queue | None:
    """Return a queue with this outcome; any node stands for the wait that leads it."""
    if outcome is None:
        return None
    work, is_led, before, opens = outcome
    return Queue(work, ast.Pass() if is_led else None, LastWait(before), opens)
