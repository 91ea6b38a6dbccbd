"""The functions that contracts reach by what is no call in the code, as `program/` tells it.

Context managers, hooks, conversions, and methods whose name a call passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.contracts.followed_calls import PathFromRoot, Reached, last_name
from flake8_torchperf.contracts.recorded_code import is_left_out
from flake8_torchperf.program.running import MAX_ON_THE_WAY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from flake8_torchperf.program.running import Program
    from flake8_torchperf.project.module_index import FunctionInfo


class LedTo:
    """Follows functions back to those that contracts reach, through the places that run them."""

    def __init__(self, reached: Sequence[Reached], program: Program) -> None:
        self._program = program
        self._reached: dict[str, list[Reached]] = {}
        for one in reached:
            self._reached.setdefault(one.info.key, []).append(one)

    def further(self, keys: Collection[str]) -> Iterator[Reached]:
        """Yield the functions of the linted module, of those with some keys, that are led to.

        Those that calls in the code reach are left out.
        """
        for info in self._program.project.linted.defined:
            if info.key not in keys or info.key in self._reached:
                continue
            way = self._way_to(info)
            if way is not None and not (way.recorded and is_left_out(info)):
                yield Reached(info, None, {info.qualname: way})

    def _way_to(self, start: FunctionInfo) -> PathFromRoot | None:
        """Return the path from a root to a function; None if no contract leads there."""
        seen = {start.key}
        waiting: list[tuple[FunctionInfo, tuple[str, ...]]] = [(start, (last_name(start),))]
        while waiting and len(seen) <= MAX_ON_THE_WAY:
            info, names = waiting.pop(0)
            for caller, run in self._program.sure_callers(info):
                known = self._reached.get(caller.key, ())
                ways = (one.way_to(caller.qualname, run.line) for one in known)
                way = next(filter(None, ways), None)
                # A call by its name was followed from code that is reached.
                if way is not None and not self._program.calls_by_name(run, info.name):
                    return PathFromRoot(way.root, (*way.calls, *names), way.recorded)
                if way is None and caller.key not in seen:
                    seen.add(caller.key)
                    waiting.append((caller, (last_name(caller), *names)))
        return None
