"""The functions that contracts reach by what is no call in the code, as `program/` tells it.

Context managers, hooks, conversions, and methods whose name a call passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.contracts.followed_calls import PathFromRoot, Reached, last_name
from flake8_torchperf.contracts.recorded_code import is_left_out
from flake8_torchperf.program.running import MAX_ON_THE_WAY
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.whole_modules import noted_module

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from flake8_torchperf.program.running import Program
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.project.resolver import Project


class LedTo:
    """Follows functions back to those that contracts reach, through the places that run them."""

    def __init__(self, reached: Sequence[Reached], program: Program, project: Project) -> None:
        self._program = program
        self._project = project
        self._reached: dict[str, list[Reached]] = {}
        for one in reached:
            self._reached.setdefault(one.info.key, []).append(one)

    def further(self, keys: Collection[str]) -> Iterator[Reached]:
        """Yield the functions of the linted module, of those with some keys, that are led to.

        Those that calls in the code reach are left out.
        """
        for info in self._project.linted.defined:
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
            for caller, line, is_plain in self._places(info):
                known = self._reached.get(caller.key, ())
                ways = (one.way_to(caller.qualname, line) for one in known)
                way = next(filter(None, ways), None)
                if way is not None and not is_plain:  # a plain call was followed, if it is reached
                    return PathFromRoot(way.root, (*way.calls, *names), way.recorded)
                if way is None and caller.key not in seen:
                    seen.add(caller.key)
                    waiting.append((caller, (last_name(caller), *names)))
        return None

    def _places(self, info: FunctionInfo) -> Iterator[tuple[FunctionInfo, int, bool]]:
        """Yield the functions that run a function for certain, with the line that does.

        Each comes with True if that is a call of the function under its own name.
        """
        for run in self._program.runs_of(info).outside_tests:
            caller = function_at(noted_module(run.path, self._project), run.line)
            if run.is_sure and caller is not None:
                yield caller, run.line, self._program.calls_by_name(run, info.name)
