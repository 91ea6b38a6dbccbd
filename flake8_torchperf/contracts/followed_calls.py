"""The functions that code that must not wait calls, followed through its package's call graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flake8_torchperf.contracts.marked_functions import (
    Root,
    canonical,
    handed_over,
    is_recorded,
    nested_in,
    place_of,
    recorded_blocks,
    recording_modules,
    stated_roots,
)
from flake8_torchperf.contracts.recorded_code import is_left_out, is_nested_left_out, may_record
from flake8_torchperf.interpreter.calls.instances import CONSTRUCTORS
from flake8_torchperf.interpreter.driver.function_analysis import interpret_called, interpret_module
from flake8_torchperf.judgement.heat import Heat, Level
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.values import (
    UNKNOWN,
    ClassValue,
    Closure,
    Function,
    Instance,
    NoneValue,
    Scalar,
    Value,
    join,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis, SeenCall
    from flake8_torchperf.interpreter.engine.place import Interpreted
    from flake8_torchperf.project.module_index import FunctionInfo

# The most functions that the contracts of one package are followed into, and how often each is
# interpreted again as more of its arguments become known.
MAX_FUNCTIONS = 2_000
MAX_ROUNDS = 3
# Methods that run when an object is made or called.
OF_OBJECTS = frozenset((*CONSTRUCTORS, "forward", "__call__"))
BASE = Heat(Level.STEP, Cause.CONTRACT, around=Level.STEP)


@dataclass(frozen=True, slots=True)
class PathFromRoot:
    """The path to a function: the root that must not wait, and the calls that lead from there.

    ``recorded`` is True if torch records the root as a CUDA graph.
    """

    root: str
    calls: tuple[str, ...] = ()
    recorded: bool = False

    def to(self, name: str) -> PathFromRoot:
        """Return the path extended by one call."""
        return PathFromRoot(self.root, (*self.calls, name), self.recorded)


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a function that must not wait, while the rest of the function may."""

    source: str
    first: int
    last: int
    way: PathFromRoot


@dataclass(slots=True, eq=False)
class Reached:
    """A function that must not wait, interpreted as a method of one class.

    ``ways`` holds the paths to it, or to functions nested in it, by qualified name. ``given`` holds
    the arguments that the calls give its parameters.
    """

    info: FunctionInfo
    bound: Value | None
    ways: dict[str, PathFromRoot] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    given: dict[str, Value] = field(default_factory=dict)
    unseen: dict[tuple[int, int], tuple[ast.AST, PathFromRoot]] = field(default_factory=dict)
    rounds: int = 0

    def way_to(self, source: str, line: int) -> PathFromRoot | None:
        """Return the path to a place in the function; None if that place may wait."""
        found = self.ways.get(source)
        if found is not None:
            return found
        for block in self.blocks:
            if block.source == source and block.first <= line <= block.last:
                return block.way
        return None


class Contracts:
    """Follows the contracts of a package."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._reached: dict[tuple[str, str], Reached] = {}
        self._waiting: list[Reached] = []

    def follow(self, globs: tuple[str, ...]) -> list[Reached]:
        """Return every function that is reached, those of stated contracts first."""
        for root in stated_roots(self._analysis, globs):
            self._start(root, recorded=False)
        self._run()
        for root in self._recorded():
            self._start(root, recorded=True)
        self._run()
        return list(self._reached.values())

    def _start(self, root: Root, *, recorded: bool) -> None:
        reached = self._entry(root.function)
        if reached is None:
            return
        way = PathFromRoot(root.shown, (), recorded)
        if root.first:
            reached.blocks.append(Block(root.source, root.first, root.last, way))
        elif root.source in reached.ways:
            return
        else:
            reached.ways[root.source] = way
        self._wait(reached)

    def _entry(self, function: Function) -> Reached | None:
        bound = function.bound if isinstance(function.bound, (Instance, ClassValue)) else None
        info = function.info
        of = bound.info if bound is not None else None
        same = of is None or (info.owner is not None and of.key == info.owner.key)
        key = (info.key, "" if same or of is None else of.key)
        found = self._reached.get(key)
        if found is None and len(self._reached) < MAX_FUNCTIONS:
            found = self._reached[key] = Reached(info, None if same else bound)
        return found

    def _wait(self, reached: Reached) -> None:
        if reached not in self._waiting:
            self._waiting.append(reached)

    def _run(self) -> None:
        while self._waiting:
            reached = self._waiting.pop(0)
            if reached.rounds < MAX_ROUNDS:
                reached.rounds += 1
                self._follow(reached)

    def _follow(self, reached: Reached) -> None:
        calls, _ = interpreted(reached, self._analysis)
        nested = nested_in(reached.info.node, reached.info.qualname)
        places = {id(node): source for source, node in nested}
        self._follow_decorators(reached)
        before = -1
        while before != len(reached.ways):
            before = len(reached.ways)
            for call in calls:
                line = getattr(call.node, "lineno", 0)
                way = reached.way_to(call.source, line)
                if way is not None:
                    self._lead(call, way, reached, places)

    def _lead(
        self, call: SeenCall, way: PathFromRoot, reached: Reached, places: dict[int, str]
    ) -> None:
        """Follow one call from a place that is reached by the path ``way``."""
        target = call.target
        if target is None:
            place = (getattr(call.node, "lineno", 0), getattr(call.node, "col_offset", 0))
            reached.unseen.setdefault(place, (call.node, way))
        elif isinstance(target, Function):
            if way.recorded and is_left_out(target.info):
                return
            further = self._entry(target)
            if further is not None:
                self._reach(
                    further, target.info.qualname, way.to(last_name(target.info)), call.given
                )
        elif way.recorded and is_nested_left_out(target.node, target.module):
            return
        elif target.key in places:
            source = places[target.key]
            reached.ways.setdefault(source, way.to(source.rpartition(".")[2]))
        else:
            self._reach_nested(target, way)

    def _reach_nested(self, closure: Closure, way: PathFromRoot) -> None:
        """Reach a nested function that its enclosing function passed on."""
        for function, source in place_of(closure):
            outer = self._entry(function)
            if outer is not None:
                self._reach(outer, source, way.to(source.rpartition(".")[2]), {})

    def _follow_decorators(self, reached: Reached) -> None:
        """Reach the functions nested in the package's decorators, which replace this function."""
        info = reached.info
        way = reached.ways.get(info.qualname)
        if way is None:
            return
        for name in info.decorators:
            value = (
                self._analysis.external(name)
                if "." in name
                else self._analysis.lookup(info.module, name)
            )
            if isinstance(value, Function):
                outer = self._entry(value)
                for source, node in nested_in(value.info.node, value.info.qualname):
                    if outer is not None:
                        self._reach(outer, source, way.to(node.name), {})

    def _reach(
        self, reached: Reached, source: str, way: PathFromRoot, given: dict[str, Value]
    ) -> None:
        new = source not in reached.ways
        reached.ways.setdefault(source, way)
        for name, value in given.items():
            if value is UNKNOWN or isinstance(value, (Scalar, NoneValue)):
                continue
            before = reached.given.get(name)
            joined = value if before is None else join(before, value)
            if joined != before:
                reached.given[name] = joined
                new = True
        if new:
            self._wait(reached)

    def _recorded(self) -> Iterator[Root]:
        """Yield the functions and blocks of the package that torch records as CUDA graphs."""
        for module in recording_modules(self._analysis):
            known = None
            for one in module.defined:
                function = canonical(one, self._analysis) if may_record(one) else None
                if function is None:
                    continue
                info, known = function.info, function.info.module
                if is_recorded(info):
                    yield Root(function, info.qualname, info.qualname)
                yield from recorded_blocks(info, function)
                calls, _ = interpreted(Reached(info, None), self._analysis)
                yield from handed_over(calls)
            self._analysis.log = []
            interpret_module(known or module, self._analysis)
            calls, self._analysis.log = self._analysis.log, None
            yield from handed_over(calls)


def interpreted(reached: Reached, analysis: Analysis) -> tuple[list[SeenCall], Interpreted]:
    """Return the calls in a function that is reached, and its sites."""
    analysis.log = []
    result = interpret_called(reached.info, reached.bound, reached.given, analysis)
    calls, analysis.log = analysis.log, None
    return calls, result


def last_name(info: FunctionInfo) -> str:
    """Return a function's name in a path; for constructors and calls of objects, the class's."""
    if info.owner is None or info.name not in OF_OBJECTS:
        return info.name
    return info.owner.name if info.name in CONSTRUCTORS else info.qualname
