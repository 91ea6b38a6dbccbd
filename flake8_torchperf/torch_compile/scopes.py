"""The scopes of one module, with the ast of what its outline says of them.

A name that is bound several times stands for all its values. A value that syntax does not show is
unknown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flake8_torchperf.program.outlines.outline import OWNER, VALUE, Kind
from flake8_torchperf.program.outlines.outlining import outlined
from flake8_torchperf.syntax.reaching_definitions import line_of, seen_by

if TYPE_CHECKING:
    from flake8_torchperf.program.outlines.outlining import Callable_
    from flake8_torchperf.project.module_index import ClassInfo, ModuleMap

# The most bindings of one name that are followed.
MAX_BINDINGS = 6
# The kinds of nodes that are a call, or may bind a name.
_READ = frozenset((
    Kind.CALL, Kind.CHANGED, Kind.OPERATION, Kind.PASSED, Kind.BOUND, Kind.UNPACKED, Kind.ITERATED,
    Kind.ENTERED,
))  # fmt: skip


@dataclass(slots=True, eq=False)
class Scope:
    """The module, or one function or lambda, with the bindings of its names.

    ``owner`` is the class whose method this is or stands in; ``me`` is that method's first
    parameter. ``declared`` holds the names that the scope declares ``global``. ``seen`` caches the
    bindings that each use of a name in the scope may see.
    """

    node: ast.Module | Callable_
    outer: Scope | None = None
    owner: ClassInfo | None = None
    me: str = ""
    names: dict[str, list[ast.AST]] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    declared: set[str] = field(default_factory=set)
    seen: dict[int, list[ast.AST]] = field(default_factory=dict)

    def lookup(self, name: str) -> tuple[list[ast.AST], Scope] | None:
        """Return the bindings of a name, and their scope; None for a parameter, or if unbound.

        Bindings are function definitions and assigned expressions.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name], scope
            if name in scope.parameters:
                return None
            scope = scope.outer
        return None


class Scopes:
    """All scopes of a module, and every call in each."""

    def __init__(self, module: ModuleMap) -> None:
        self.module = module
        self._outline, self._nodes, functions = outlined(module.tree)
        self.root = Scope(module.tree)
        self._scopes = [self.root]
        known = {(one.name, one.node.lineno): one for one in module.classes.values()}
        self.classes = [known.get((one.qualname, one.line)) for one in self._outline.classes]
        for number, function in enumerate(functions, 1):
            self._add(number, function)
        # The number of each expression in the outline.
        self.numbers = {id(node): number for number, node in enumerate(self._nodes)}
        self.functions = [*zip(functions, self._scopes[1:], strict=True)]
        self.of_function = {id(function): scope for function, scope in self.functions}
        self.calls: list[tuple[ast.Call, Scope]] = []
        # The values of ``x += 1``, which are not what the name is bound to.
        self._added: set[int] = set()
        for number, kind in enumerate(self._outline.nodes.kinds):
            if kind in _READ:  # one node in five
                self._read(number)
        for scope in self._scopes:
            for bindings in scope.names.values():
                bindings.sort(key=line_of)

    def _add(self, number: int, function: Callable_) -> None:
        """Add the scope of a function, and bind its name."""
        body = self._outline.bodies[number]
        outer = self._scopes[body.outer]
        names = frozenset((*body.positional, *body.named, *filter(None, body.rest)))
        owner, me = outer.owner, "" if outer.me in names else outer.me
        if body.owner >= 0:
            owner, me = self.classes[body.owner], (*body.positional, "")[0]
            me = "" if body.is_static else me
        elif not isinstance(function, ast.Lambda):
            outer.names.setdefault(body.name, []).append(function)
        self._scopes.append(Scope(function, outer, owner, me, {}, names))

    def _read(self, number: int) -> None:
        """Note the call or the binding at a node of the outline."""
        node, made_of = self._outline.nodes[number], self._nodes[number]
        scope = self._scopes[node.body]
        match node.kind, made_of:
            case Kind.CALL, ast.Call():
                self.calls.append((made_of, scope))
            case Kind.CHANGED, ast.Global():
                scope.declared.add(node.word)
            case Kind.OPERATION, ast.AugAssign(value=value):
                self._added.add(id(value))
            case Kind.PASSED, ast.NamedExpr(value=value):
                self._bind(node.word, value, scope)
            case Kind.BOUND, _ if id(made_of) not in self._added:
                self._bind(node.word, made_of, scope)
            case ((Kind.UNPACKED | Kind.ITERATED | Kind.ENTERED), _) if node.word:
                child = self._outline.child(number, VALUE)
                names = node.word.split(",")
                element = None if child is None else _element(node.kind, self._nodes[child], names)
                # A statement stands for a value that syntax does not show.
                unknown = ast.Pass(lineno=node.line, col_offset=node.column)
                for name in names[:-1]:
                    self._bind(name, unknown, scope)
                self._bind(names[-1], element or unknown, scope)

    def _bind(self, name: str, value: ast.AST, scope: Scope) -> None:
        home = self.root if name in scope.declared else scope
        home.names.setdefault(name, []).append(value)

    def attribute(self, owner: ClassInfo, name: str) -> list[tuple[ast.expr, Scope]]:
        """Return the expressions that methods assign to ``self.name``, with their scopes."""
        found: list[tuple[ast.expr, Scope]] = []
        for root in self._outline.of(Kind.KEPT, name):
            scope, value = self._scopes[self._outline.nodes[root].body], self._nodes[root]
            holder = self._outline.child(root, OWNER)
            if holder is None or scope.owner is not owner or id(value) in self._added:
                continue
            if scope.me and self._outline.nodes[holder].word == scope.me:
                assert isinstance(value, ast.expr)
                found.append((value, scope))
        return found


def _element(kind: int, source: ast.AST, names: list[str]) -> ast.AST | None:
    """Return what stands for an element of an iterable, if a loop binds its last name to one."""
    match source:
        case ast.Call(func=ast.Name(id="enumerate"), args=[given, *_]) if len(names) == 2:
            return ast.Starred(given, ast.Load())
        case ast.expr() if kind == Kind.ITERATED and len(names) == 1:
            return ast.Starred(source, ast.Load())
    return None


def bound_to(name: ast.Name, scope: Scope) -> tuple[list[ast.AST], Scope]:
    """Return the bindings that a name may have at its use, and the scope of the bindings."""
    bound = scope.lookup(name.id)
    if bound is None:
        return [], scope
    nodes, place = bound
    if place is not scope or len(nodes) < 2 or isinstance(place.node, ast.Lambda):
        return nodes, place
    if id(name) not in place.seen:
        place.seen[id(name)] = seen_by(name, nodes, place.node.body)
    return place.seen[id(name)], place


def values_of(name: ast.Name, scope: Scope) -> list[tuple[ast.expr, Scope]]:
    """Return the expressions that a name is bound to, each with its scope."""
    nodes, place = bound_to(name, scope)
    return [(node, place) for node in nodes[:MAX_BINDINGS] if isinstance(node, ast.expr)]
