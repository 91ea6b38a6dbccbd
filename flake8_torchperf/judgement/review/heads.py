"""The queue in front of a function, by the places of the project that run it.

The first wait of a function costs what its callers have queued since the last wait of theirs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.worth.queue import LARGE, LastWait, Queue, behind_all
from flake8_torchperf.program.linking import Unit
from flake8_torchperf.syntax.names import dotted_name

if TYPE_CHECKING:
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.judgement.worth.tails import Tails
    from flake8_torchperf.program.runs import Run
    from flake8_torchperf.project.module_index import FunctionInfo

# The most places that run a function, and the most functions one above another, whose queues are
# computed; with more, the queue in front of the function is not known.
MAX_RUNS = 8
MAX_QUEUES_ABOVE = 6


class Heads:
    """The queue in front of each function of the linted module."""

    def __init__(self, callers: PackageCallers, tails: Tails) -> None:
        self._callers = callers
        self._program = callers.program
        self._tails = tails
        self._known: dict[tuple[Unit, int], Queue | None] = {}

    def before(self, info: FunctionInfo, function: str) -> Queue | None:
        """Return the queue in front of a function or, by the qualified name, of one inside it.

        It is the fullest one that there is; None if a place that runs it shows none.
        """
        if function == info.qualname or ".<locals>." not in function:
            unit = self._program.unit(info)
        else:
            unit = self._program.inside(info, function)
        return None if unit is None else self._before(unit, MAX_QUEUES_ABOVE)

    def _before(self, unit: Unit, left: int) -> Queue | None:
        """Look at ``left`` callers one above another at most."""
        if left == 0:
            return None
        known = unit, left
        if known not in self._known:
            self._known[known] = self._fullest(unit, left)
        return self._known[known]

    def _fullest(self, unit: Unit, left: int) -> Queue | None:
        runs = [one for one in self._program.runs(unit).outside_tests if one.is_sure]
        if not runs or len(runs) > MAX_RUNS:
            return None
        found = [self._at(run, unit, left) for run in runs if not self._callers.is_dead(run)]
        known = [one for one in found if one is not None]
        if not known or len(known) < len(found):
            return None
        return max(known, key=lambda one: (one.work >= LARGE, one.before, one.work))

    def _at(self, run: Run, unit: Unit, left: int) -> Queue | None:
        """Return the queue in front of a place that runs a function; None if it isn't known."""
        caller, around = self._callers.site_at(run).caller, Unit(run.path, run.body)
        if caller is None or around == unit:
            return None
        node = self._running(run, self._program.name_of(unit))
        queue = None if node is None else self._tails.before(caller, node)
        if queue is None:
            return None
        if queue.leader is not None:
            is_own = queue.leader is node
            last = LastWait.IN_LAST_CALL if is_own else LastWait.IN_CALLER
            return Queue(queue.work, None, last)
        if queue.work >= LARGE:
            return queue._replace(before=LastWait.IN_CALLER)
        above = self._before(around, left - 1)
        return None if above is None else behind_all(above, queue)

    def _running(self, run: Run, name: str) -> ast.AST | None:
        """Return the node that runs a function: a call by its name, or the innermost one there."""
        at = self._callers.nodes_at(run)
        calls = [one for one in at if isinstance(one, ast.Call)]
        named = [one for one in calls if dotted_name(one.func).rpartition(".")[2] == name]
        for found in (named, calls, at):
            if found:
                return found[-1]
        return None
