"""The calls of one module: the function that each leads to, and the loops and branches around it.

Calls are resolved by names alone. A call that could lead anywhere is not assigned to a function;
instead, every function of that name counts as one whose callers are not all known.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.idioms.first_call import made_by_call, made_once, turned_on
from flake8_torchperf.idioms.loop_kinds import goes_backward, is_written_out, takes_step
from flake8_torchperf.judgement.frequency.receivers import Receivers
from flake8_torchperf.syntax.traversal import (
    ATTRIBUTE,
    CALL,
    CONSTANT,
    FUNCTIONS,
    LOAD,
    NAME,
    children,
    put_children,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flake8_torchperf.project.module_index import (
        ClassInfo,
        FunctionInfo,
        FunctionNode,
        ModuleMap,
    )

# Nodes with a part that runs more or less often than the whole.
FREQUENCY_NODES = (
    ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp,
    ast.If, ast.ExceptHandler, ast.Raise,
)  # fmt: skip
GRAPH_NODES = frozenset((ast.Call, *FUNCTIONS, *FREQUENCY_NODES))
# None of a node's children.
NO_NODES: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)  # a frozen instance takes twice as long to make
class CallSite:
    """One call: the function it stands in (None: module level), its line, and how often it runs.

    ``loops`` holds the loops of the caller around the call, outermost first. ``seldom`` is True if
    the call runs only once in several rounds or on the way to an error. ``tests`` holds the tests
    of the branches around the call, each with the outcome that leads to it.
    """

    caller: FunctionInfo | None
    line: int
    loops: tuple[ast.AST, ...] = ()
    seldom: bool = False
    tests: tuple[tuple[ast.expr, bool], ...] = ()

    @property
    def steps(self) -> bool:
        """True if each round of a loop around the call is a step."""
        return any(map(takes_step, self.loops))


@dataclass(slots=True, eq=False)
class Calls:
    """The calls of one module by the key of the function called.

    ``values`` holds the names that are passed as values, ``attributes`` the attributes among them.
    ``outward`` maps the last part of a name to the calls that lead to nothing in the module, each
    with the expression called. ``looked_up`` holds the names that are called on an object of
    unknown type.
    """

    sites: dict[str, list[CallSite]] = field(default_factory=dict)
    values: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    looked_up: set[str] = field(default_factory=set)
    outward: dict[str, list[tuple[ast.expr, CallSite]]] = field(default_factory=dict)
    receivers: Receivers | None = None

    def of(self, info: FunctionInfo) -> list[CallSite]:
        """Return the calls in the module that lead to a function."""
        return self.sites.get(info.key, [])

    def at(self, caller: FunctionInfo, node: ast.AST) -> list[CallSite]:
        """Return the calls that a function makes in the line of a node."""
        line = getattr(node, "lineno", 0)
        every = (*self.sites.values(), *([one for _, one in two] for two in self.outward.values()))
        return [
            site
            for sites in every
            for site in sites
            if site.line == line and site.caller is not None and site.caller.key == caller.key
        ]

    def made_by(self, called: ast.expr, site: CallSite) -> list[str]:
        """Return the classes, by dotted name, of the object whose method a call runs, if known."""
        if self.receivers is None or not isinstance(called, ATTRIBUTE):
            return []
        return sorted(self.receivers.classes(called.value, site.caller))

    def are_open(self, name: str) -> bool:
        """True if something of this name may be called in ways that are not seen."""
        return name in self.values or name in self.looked_up


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

    def within(self, node: FunctionNode, known: Mapping[int, FunctionInfo]) -> _Place:
        info = known.get(id(node))
        # A function in a function may be the step that a loop of the outer one calls.
        nested = (node,) if info is None and goes_backward(node) else ()
        return _Place(self.info if info is None else info, nested)

    def under(self, test: ast.expr, *, holds: bool) -> _Place:
        return _Place(self.info, self.loops, self.seldom, (*self.tests, (test, holds)))


# A stack of nodes and places; a place applies to the nodes below it in the stack.
_Waiting: TypeAlias = "list[Any]"


class _Classes:
    """The classes of a module, with the lookups that resolving a method call needs."""

    def __init__(self, module: ModuleMap) -> None:
        above = {name: _bases(info, module) for name, info in module.classes.items()}
        below: dict[str, list[ClassInfo]] = {}
        for name, bases in above.items():
            for base in bases:
                below.setdefault(base.name, []).append(module.classes[name])
        # A class, its bases and its subclasses.
        self._related = {
            name: [info, *above[name], *below.get(name, ())]
            for name, info in module.classes.items()
        }
        self.method_names = {name for one in module.classes.values() for name in one.methods}
        self._private: dict[str, list[FunctionInfo]] = {}
        for one in module.classes.values():
            for name, method in one.methods.items():
                if name.startswith("_") and not name.startswith("__"):
                    self._private.setdefault(name, []).append(method)

    def methods(self, name: str, method: str) -> list[FunctionInfo]:
        """Return the methods of that name of a class, its bases and its subclasses."""
        related = self._related.get(name, ())
        return [one.methods[method] for one in related if method in one.methods]

    def private(self, name: str) -> list[FunctionInfo]:
        """Return the method that ``fn._rescale()`` runs, if just one class of the module has it."""
        found = self._private.get(name, [])
        return found if len(found) == 1 else []


def calls_in(module: ModuleMap) -> Calls:
    """Return every call in a module, by the function that it leads to."""
    calls = Calls(receivers=Receivers(module))
    values, attributes = calls.values, calls.attributes
    known = {id(info.node): info for info in module.defined}
    classes = _Classes(module)
    place = _Place()
    # A pair of node and place for each node would take a fifth longer.
    waiting: _Waiting = [module.tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        while kind is ATTRIBUTE:
            if type(node.ctx) is LOAD:
                attributes.add(node.attr)
            node = node.value
            kind = type(node)
        if kind is NAME:
            if type(node.ctx) is LOAD:
                values.add(node.id)
        elif kind is CONSTANT:
            continue
        elif isinstance(node, _Place):
            place = node
        elif kind not in GRAPH_NODES:
            put_children(node, waiting)
        elif isinstance(node, CALL):
            _record(node, place, module, classes, calls)
            waiting.extend(node.args)
            waiting.extend(node.keywords)
            called = node.func
            if isinstance(called, ATTRIBUTE):
                waiting.append(called.value)
            elif not isinstance(called, NAME):
                waiting.append(called)
        elif isinstance(node, FUNCTIONS):
            inside = place.within(node, known)
            waiting += [*node.decorator_list, node.args, place, *node.body, inside]
        else:
            _put_parts(node, place, classes, waiting)
    values |= attributes
    _follow_objects(module, classes, calls)
    return calls


def _follow_objects(module: ModuleMap, classes: _Classes, calls: Calls) -> None:
    """Assign calls of methods to the module's classes, where it shows the class of the object."""
    for name in sorted(calls.looked_up & classes.method_names):
        outward: list[tuple[ast.expr, CallSite]] = []
        is_open = False
        for func, site in calls.outward[name]:
            made = [one.rpartition(".") for one in calls.made_by(func, site)]
            own = [last for head, _, last in made if head == module.name]
            found = {info.key: info for one in own for info in classes.methods(one, name)}
            for key in found:
                calls.sites.setdefault(key, []).append(site)
            if not found:
                outward.append((func, site))
                is_open = is_open or not made
        calls.outward[name] = outward
        if not is_open:
            calls.looked_up.discard(name)


def _put_parts(node: ast.AST, place: _Place, classes: _Classes, waiting: _Waiting) -> None:
    """Queue the children of a node, each with the place that says how often it runs."""
    repeated, seldom = _frequencies(node, place, classes)
    if isinstance(node, ast.If) and not seldom:
        waiting += [node.test, place, *node.body, place.under(node.test, holds=True)]
        if node.orelse:
            waiting += [place, *node.orelse, place.under(node.test, holds=False)]
        return
    if not repeated and not seldom:
        put_children(node, waiting)
        return
    for child in children(node):
        if id(child) in repeated or id(child) in seldom:
            loop = node if id(child) in repeated else None
            waiting += [place, child, place.inside(loop, seldom=id(child) in seldom)]
        else:
            waiting.append(child)


def _frequencies(
    node: ast.AST, place: _Place, classes: _Classes
) -> tuple[AbstractSet[int], AbstractSet[int]]:
    """Return what `_parts` does; a branch that only the first call takes seldom runs, too."""
    repeated, seldom = _parts(node)
    if isinstance(node, ast.If) and not seldom and _on_first_call(node, place, classes):
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


def _on_first_call(node: ast.If, place: _Place, classes: _Classes) -> bool:
    """True if the branch runs only once, because it sets the attribute that its test finds missing.

    The function may set the attribute, or a method that the branch calls.
    """
    if place.info is None or place.info.owner is None:
        return False
    if turned_on(node, place.info.node):
        return True
    owner = place.info.owner.name
    return made_by_call(node, lambda name: [one.node for one in classes.methods(owner, name)])


def _every_so_often(test: ast.expr) -> bool:
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk([test]))


def _bases(info: ClassInfo, module: ModuleMap) -> list[ClassInfo]:
    found: list[ClassInfo] = []
    waiting = [info]
    while waiting:
        for base in waiting.pop().bases:
            known = module.classes.get(base.rpartition(".")[2])
            if known is not None and known is not info and known not in found:
                found.append(known)
                waiting.append(known)
    return found


class Places:
    """Places of a module as the sites of calls."""

    def __init__(self, module: ModuleMap) -> None:
        self._tree = module.tree
        self._known = {id(info.node): info for info in module.defined}
        self._classes = _Classes(module)
        # The first lines of the statements of the module and of its classes, which may be many.
        self._lines: dict[ast.AST, list[int]] = {}

    def site(self, line: int, column: int) -> CallSite:
        """Return the place where an expression or a statement begins."""
        place = _Place()
        node: ast.AST | None = self._tree
        while node is not None:
            if isinstance(node, FUNCTIONS) and node.lineno <= line:
                place = place.within(node, self._known)
            inner = self._below(node, line, column)
            if inner is not None:
                place = _inside(node, inner, place, self._classes)
            node = inner
        return CallSite(place.info, line, place.loops, place.seldom, place.tests)

    def _below(self, node: ast.AST, line: int, column: int) -> ast.AST | None:
        """Return the child of a node that holds a place."""
        if isinstance(node, (ast.Module, ast.ClassDef)):
            if node not in self._lines:
                self._lines[node] = list(map(_first_line, node.body))
            at = bisect_right(self._lines[node], line) - 1
            if at >= 0:
                return node.body[at]
        return _holding(node, (line, column))


def _first_line(node: ast.stmt) -> int:
    """Return the first line of a statement, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _inside(node: ast.AST, inner: ast.AST, place: _Place, classes: _Classes) -> _Place:
    """Return the place of a child of a node, which may be repeated or run seldom."""
    repeated, seldom = _frequencies(node, place, classes)
    if isinstance(node, ast.If) and not seldom and inner is not node.test:
        return place.under(node.test, holds=inner in node.body)
    loop = node if id(inner) in repeated else None
    if loop is None and id(inner) not in seldom:
        return place
    return place.inside(loop, seldom=id(inner) in seldom)


def _holding(node: ast.AST, position: tuple[int, int]) -> ast.AST | None:
    """Return the child of a node that holds a position; the nodes without one count as their own.

    Decorators stand before the lines of their definition.
    """
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        one = waiting.pop()
        if not isinstance(one, (ast.stmt, ast.expr, ast.excepthandler, ast.keyword)):
            waiting += ast.iter_child_nodes(one)
            continue
        waiting += getattr(one, "decorator_list", ())
        end = (one.end_lineno or one.lineno, one.end_col_offset or one.col_offset)
        if (one.lineno, one.col_offset) <= position < end:
            return one
    return None


def _record(
    node: ast.Call,
    place: _Place,
    module: ModuleMap,
    classes: _Classes,
    calls: Calls,
) -> None:
    site = CallSite(place.info, node.lineno, place.loops, place.seldom, place.tests)
    func = node.func
    if isinstance(func, NAME):
        name = func.id
        if name in module.functions:
            calls.sites.setdefault(module.functions[name].key, []).append(site)
        else:
            last = module.imports.get(name, name).rpartition(".")[2]
            calls.outward.setdefault(last, []).append((func, site))
    elif isinstance(func, ATTRIBUTE):
        name, owner = func.attr, func.value
        by_name = owner.id if isinstance(owner, NAME) else ""
        found = _called(by_name, name, place, module, classes) or classes.private(name)
        for info in found:
            calls.sites.setdefault(info.key, []).append(site)
        if not found:
            calls.looked_up.add(name)
            calls.outward.setdefault(name, []).append((func, site))


def _called(
    owner: str,
    name: str,
    place: _Place,
    module: ModuleMap,
    classes: _Classes,
) -> list[FunctionInfo]:
    """Return the methods that ``self.name()`` or ``Class.name()`` may run."""
    holder = None
    if owner in ("self", "cls") and place.info is not None and place.info.owner is not None:
        holder = place.info.owner.name
    elif owner in module.classes:
        holder = owner
    return classes.methods(holder, name) if holder is not None else []
