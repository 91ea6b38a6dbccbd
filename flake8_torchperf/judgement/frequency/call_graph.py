"""The calls of one module that lead to its functions, with the loops and branches around each."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.idioms.first_call import (
    asks_for_interval,
    asks_for_steps,
    fills_table,
    interval_flags,
    made_by_call,
    made_once,
    turned_on,
)
from flake8_torchperf.idioms.loop_kinds import goes_backward, is_written_out, takes_step
from flake8_torchperf.program.runs import Run, Runs
from flake8_torchperf.project.definitions import code_at, function_at
from flake8_torchperf.project.whole_modules import bases_of, noted_module
from flake8_torchperf.syntax.traversal import FUNCTIONS, children, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flake8_torchperf.program.running import Program
    from flake8_torchperf.project.module_index import (
        FunctionInfo,
        FunctionNode,
        ModuleMap,
    )
    from flake8_torchperf.project.resolver import Project

# None of a node's children.
NO_NODES: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)  # a frozen instance takes twice as long to make
class CallSite:
    """One call: the function it stands in (None: module level), its place, and how often it runs.

    ``loops`` holds the loops of the caller around the call, outermost first. ``seldom`` is True if
    the call runs only once in several rounds or on the way to an error. ``tests`` holds the tests
    of the branches around the call, each with the outcome that leads to it. ``in_data`` is True
    where a data set runs what it is given.
    """

    caller: FunctionInfo | None
    line: int
    path: str = ""
    loops: tuple[ast.AST, ...] = ()
    seldom: bool = False
    tests: tuple[tuple[ast.expr, bool], ...] = ()
    in_data: bool = False

    @property
    def steps(self) -> bool:
        """True if each round of a loop around the call is a step."""
        return any(map(takes_step, self.loops))


def narrowed(run: Run, site_at: Callable[[Run], CallSite]) -> Run:
    """Return the call that alone leads to a place, unless a loop over steps is around that."""
    while run.through is not None and not site_at(run).steps:
        run = run.through
    return run


class Calls:
    """The calls of one module that lead to its functions, as the module alone shows them."""

    def __init__(self, module: ModuleMap, program: Program) -> None:
        self._program = program
        self._places = CallPlaces(module, program.project)
        self._sites: dict[str, list[CallSite]] = {}

    def of(self, info: FunctionInfo) -> list[CallSite]:
        """Return the calls in the module that lead to a function."""
        known = self._sites.get(info.key)
        if known is None:
            found = [run for run in self._runs(info).places if run.is_sure]
            leading = (narrowed(run, self._site_at) for run in sorted(found))
            known = self._sites[info.key] = list(map(self._site_at, leading))
        return known

    def _site_at(self, run: Run) -> CallSite:
        return self._places.site(run.line, run.column)

    def callers_first(self, functions: Sequence[FunctionInfo]) -> list[FunctionInfo]:
        """Return functions of the module, each after those of them that call it; cycles are cut.

        A function's calls show what the arguments of the functions are that it calls.
        """
        among = {info.key for info in functions}
        met: set[str] = set()
        done: dict[str, FunctionInfo] = {}
        waiting = [*functions]
        while waiting:
            info = waiting[-1]
            met.add(info.key)
            callers = (site.caller for site in self.of(info) if site.caller is not None)
            first = next((one for one in callers if one.key in among and one.key not in met), None)
            if first is None:
                done[waiting.pop().key] = info
            else:
                waiting.append(first)
        return [*done.values()]

    def are_open(self, info: FunctionInfo) -> bool:
        """True if the module may call a function in ways that are not seen."""
        runs = self._runs(info)
        return bool(runs.open or runs.is_doubted) or not all(run.is_sure for run in runs.places)

    def _runs(self, info: FunctionInfo) -> Runs:
        unit = self._program.unit(info)
        return Runs((), "") if unit is None else self._program.alone(unit.path).runs(unit)


@dataclass(slots=True, eq=False)
class _Place:
    """The function, loops and seldom-run branches that the walk is in."""

    info: FunctionInfo | None = None
    loops: tuple[ast.AST, ...] = ()
    seldom: bool = False
    tests: tuple[tuple[ast.expr, bool], ...] = ()

    def inside(self, loop: ast.AST | None, *, seldom: bool) -> _Place:
        loops = self.loops if loop is None else (*self.loops, loop)
        return _Place(self.info, loops, self.seldom or seldom, self.tests)

    def within(self, node: FunctionNode, info: FunctionInfo | None) -> _Place:
        """Return the place in a function, which ``info`` is unless another holds it."""
        if info is not None and info.tree is node:
            info.ask()
            return _Place(info)
        # A function in a function may be the step that a loop of the outer one calls.
        return _Place(self.info, (node,) if goes_backward(node) else ())

    def under(self, test: ast.expr, *, holds: bool) -> _Place:
        return _Place(self.info, self.loops, self.seldom, (*self.tests, (test, holds)))


class _Classes:
    """The classes of a module, with the lookups that resolving a method call needs."""

    def __init__(self, module: ModuleMap, project: Project) -> None:
        self._module = module
        self._project = project

    def methods(self, name: str, method: str) -> list[FunctionInfo]:
        """Return the methods of that name of a class, its bases and its subclasses."""
        classes = (self._module.classes.get(one) for one in self._related.get(name, ()))
        found = (one.methods.get(method) for one in classes if one is not None)
        return [one for one in found if one is not None]

    @cached_property
    def _related(self) -> dict[str, list[str]]:
        """The name of each class -> that of the class, of its bases and of its subclasses."""
        bases = dict(bases_of(self._module, self._project))
        above = {name: _above(name, bases) for name in bases}
        below: dict[str, list[str]] = {}
        for name, names in above.items():
            for one in names:
                below.setdefault(one, []).append(name)
        return {name: [name, *names, *below.get(name, ())] for name, names in above.items()}


def _frequencies(
    node: ast.AST, place: _Place, classes: _Classes
) -> tuple[AbstractSet[int], AbstractSet[int]]:
    """Return what `_parts` does; branches that the whole function shows to run seldom do, too."""
    repeated, seldom = _parts(node)
    info = place.info
    if isinstance(node, ast.If) and not seldom and info is not None:
        in_intervals = asks_for_interval(node.test, interval_flags(info.node))
        if in_intervals or _on_first_call(node, info, classes):
            seldom = set(map(id, node.body))
    return repeated, seldom


def _parts(node: ast.AST) -> tuple[AbstractSet[int], AbstractSet[int]]:
    """Return the children of a node that run in each round, and those that seldom run."""
    if isinstance(node, ast.If):
        return NO_NODES, _seldom_branch(node)
    match node:
        case ast.For() if is_written_out(node):
            return NO_NODES, NO_NODES
        case ast.For(body=body) | ast.AsyncFor(body=body):
            return set(map(id, body)), NO_NODES
        case ast.While(test=test, body=body):
            return {id(test), *map(id, body)}, NO_NODES
        case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt):
            return {id(elt)}, NO_NODES
        case ast.DictComp(key=key, value=value):
            return {id(key), id(value)}, NO_NODES
        case ast.ExceptHandler(body=body):
            return NO_NODES, set(map(id, body))
        case ast.Raise():
            return NO_NODES, set(map(id, children(node)))
    return NO_NODES, NO_NODES


def _seldom_branch(node: ast.If) -> AbstractSet[int]:
    """Return the statements of a branch that most rounds skip, or that only the first call runs."""
    if _every_so_often(node.test) or made_once(node):
        return set(map(id, node.body))
    return NO_NODES


def _on_first_call(node: ast.If, info: FunctionInfo, classes: _Classes) -> bool:
    """True if the branch runs only once, because it sets what its test finds missing.

    That is a key of a table, or an attribute, which a method that the branch calls may set.
    """
    if fills_table(node, info.node):
        return True
    if info.owner is None:
        return False
    if turned_on(node, info.node):
        return True
    owner = info.owner.name
    return made_by_call(node, lambda name: [one.node for one in classes.methods(owner, name)])


def _every_so_often(test: ast.expr) -> bool:
    return any(
        (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)) or asks_for_steps(n)
        for n in walk([test])
    )


def _above(name: str, bases: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of the classes above one, of those whose bases are known."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        for base in bases[waiting.pop()]:
            if base in bases and base != name and base not in found:
                found.append(base)
                waiting.append(base)
    return found


class CallPlaces:
    """Places of a module as the sites of calls.

    Of an outline, only the definitions around places are read, or the code outside them.
    """

    def __init__(self, module: ModuleMap, project: Project) -> None:
        self._module = module
        self._project = project
        self._classes = _Classes(module, project)
        # The first lines of the statements of the module and of its classes, which may be many.
        self._lines: dict[ast.AST, list[int]] = {}
        self._parts: dict[ast.AST, _Parts] = {}

    def site(self, line: int, column: int) -> CallSite:
        """Return the place where an expression or a statement begins."""
        node: ast.AST | None = code_at(self._module, line)
        if node is None:
            return self._in_whole.site(line, column)
        info = function_at(self._module, line)
        place = _Place()
        while node is not None:
            if isinstance(node, FUNCTIONS) and node.lineno <= line:
                place = place.within(node, info)
            inner = self._below(node, line, column)
            if inner is not None:
                place = _inside(node, inner, place, self._classes)
            node = inner
        path = "" if self._module.path is None else str(self._module.path)
        return CallSite(place.info, line, path, place.loops, place.seldom, place.tests)

    @cached_property
    def _in_whole(self) -> CallPlaces:
        """The places of the whole module."""
        return CallPlaces(noted_module(self._module.place, self._project), self._project)

    def _below(self, node: ast.AST, line: int, column: int) -> ast.AST | None:
        """Return the child of a node that holds a place."""
        if isinstance(node, (ast.Module, ast.ClassDef, *STATEMENTS_WITH_BODY)):
            if node not in self._lines:
                self._lines[node] = list(map(_first_line, node.body))
            at = bisect_right(self._lines[node], line) - 1
            if at >= 0 and (
                not isinstance(node, STATEMENTS_WITH_BODY) or _holds(node.body[at], line, column)
            ):
                return node.body[at]
        parts = self._parts.get(node)
        if parts is None:
            parts = self._parts[node] = _Parts(node)
        return parts.holding((line, column))


# Statements that may hold many others, beside their conditions and parameters.
STATEMENTS_WITH_BODY = (
    *FUNCTIONS,
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
)


def _holds(node: ast.stmt, line: int, column: int) -> bool:
    """True if a statement, without its decorators, holds a place."""
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset) <= (line, column) < end


def _first_line(node: ast.stmt) -> int:
    """Return the first line of a statement, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _inside(node: ast.AST, inner: ast.AST, place: _Place, classes: _Classes) -> _Place:
    """Return the place of a child of a node, which may be repeated or run seldom."""
    repeated, seldom = _frequencies(node, place, classes)
    if isinstance(node, ast.If) and not seldom and inner is not node.test:
        return place.under(node.test, holds=inner in node.body)
    if isinstance(node, ast.IfExp) and inner is not node.test:
        return place.under(node.test, holds=inner is node.body)
    loop = node if id(inner) in repeated else None
    if loop is None and id(inner) not in seldom:
        return place
    return place.inside(loop, seldom=id(inner) in seldom)


class _Parts:
    """The children of one node, of which a chain of operators has thousands, by their positions."""

    __slots__ = ("_apart", "_parts", "_starts")

    def __init__(self, node: ast.AST) -> None:
        parts = list(_placed_parts(node))
        by_start = sorted(parts, key=_start)
        # Before Python 3.12, the parts of an f-string all have the position of the whole.
        self._apart = all(_end(one) <= _start(two) for one, two in pairwise(by_start))
        self._parts = by_start if self._apart else parts
        self._starts = list(map(_start, by_start))

    def holding(self, position: tuple[int, int]) -> ast.AST | None:
        """Return the child that holds a position, the first one of several."""
        if not self._apart:
            held = (one for one in self._parts if _start(one) <= position < _end(one))
            return next(held, None)
        at = bisect_right(self._starts, position) - 1
        return self._parts[at] if at >= 0 and position < _end(self._parts[at]) else None


Placed: TypeAlias = "ast.stmt | ast.expr | ast.excepthandler | ast.keyword"


def _placed_parts(node: ast.AST) -> Iterator[Placed]:
    """Yield the children of a node; the nodes without a position count as their own children.

    Decorators stand before the lines of their definition.
    """
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.stmt, ast.expr, ast.excepthandler, ast.keyword)):
            waiting += getattr(one, "decorator_list", ())
            yield one
        elif one._fields:
            waiting += ast.iter_child_nodes(one)


# Returns the line and the column where a node begins.
_start = attrgetter("lineno", "col_offset")


def _end(node: Placed) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
