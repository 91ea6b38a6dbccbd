"""The queues that functions of the project leave to the code that calls them.

A wait that follows on a call is as cheap as one that follows on the last wait of the callee.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.worth.queue import (
    LARGE,
    Queue,
    queue_behind,
    waits_of,
    with_queues,
)
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.traversal import walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.judged_site import Judged
    from flake8_torchperf.project.module_index import FunctionInfo

# Methods that wait if their owner is a tensor of the device, as it mostly is; each has no argument.
_SPELLED = frozenset(("cpu", "nonzero", "numpy", "unique")) | methods_of("reads")
# The most calls that are followed one into another.
MAX_DEPTH = 5


class Tails:
    """The queue behind each call of a function of the project.

    The sites of a function show its waits; where no site is at hand, as in other modules, the names
    of the methods that it calls do, and each arithmetic operator counts as an operation.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._callees = analysis.callees
        self._judged: dict[str, Judged] = {}
        self._left: dict[str, Queue | None] = {}
        self._depth = 0

    def note(self, info: FunctionInfo, result: Judged) -> None:
        """Take the sites of a function, before the first queue is asked for."""
        if waits_of(result):
            self._judged[info.key] = result

    def queued(self, result: Judged) -> Judged:
        """Return the sites of a function with the features of the queue in front of each wait."""
        return with_queues(result, self._behind)

    def _behind(self, call: ast.Call) -> Queue | None:
        """Return the queue behind a call that was evaluated."""
        return self._fullest(self._callees.get(id(call), {}).values())

    def _named(self, caller: FunctionInfo, call: ast.Call) -> Queue | None:
        """Return the queue behind a call in a function that was not judged, by its spelling."""
        match call.func:
            case ast.Name(id=name) if name in caller.module.functions:
                return self._fullest([caller.module.functions[name]])
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if caller.owner is not None:
                method = caller.owner.methods.get(name)
                return None if method is None else self._fullest([method])
        return None

    def _fullest(self, callees: Iterable[FunctionInfo]) -> Queue | None:
        """Return the queue behind one of several functions: as if all had waited, or none."""
        left = [self._left_by(one) for one in callees]
        known = [one for one in left if one is not None]
        if not known or len(known) < len(left):
            return None
        work = max(one.work for one in known)
        leaders = [one.leader for one in known]
        return Queue(work, None if None in leaders else leaders[0])

    def _left_by(self, info: FunctionInfo) -> Queue | None:
        if info.key not in self._left:
            if self._depth >= MAX_DEPTH:
                return None
            self._left[info.key] = None  # while it is looked at: a function may call itself
            self._depth += 1
            self._left[info.key] = self._at_end(info)
            self._depth -= 1
        return self._left[info.key]

    def _at_end(self, info: FunctionInfo) -> Queue | None:
        judged = self._judged.get(info.key)
        if judged is not None:
            waits = waits_of(judged)
            found = queue_behind(judged.snippet.nodes, waits, judged.queued, self._behind)
        else:
            inside = walk([info.node])
            waits = {id(node) for node in inside if _is_spelled_wait(node)}
            operators = {id(node) for node in inside if isinstance(node, ast.BinOp)}
            found = queue_behind([info.node], waits, operators, partial(self._named, info))
        return None if found is None else Queue(min(found.work, LARGE), found.leader)


def _is_spelled_wait(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
            return name in _SPELLED
    return False
