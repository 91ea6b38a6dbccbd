"""Scopes of one module: resolves a name, an attribute of ``self`` or a call, by syntax.

A name that is bound several times stands for all its values. A value that syntax does not show is
unknown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.syntax.reaching_definitions import seen_by
from flake8_torchperf.syntax.traversal import SCOPES, children, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.project.module_index import ClassInfo, ModuleMap

Callable_: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"

# Methods that return the module they are called on.
SELF_RETURNING = frozenset((
    "to", "cuda", "cpu", "xpu", "eval", "train", "half", "float", "double", "bfloat16",
    "requires_grad_", "to_empty", "apply", "share_memory", "type",
))  # fmt: skip
# Containers of modules, whose items are called.
MODULE_CONTAINERS = frozenset((
    "torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict",
    "torch.nn.modules.container.ModuleList", "torch.nn.modules.container.Sequential",
))  # fmt: skip
PARTIAL = frozenset(("functools.partial", "partial"))
# The most bindings of one name, and the most names in a chain, that are followed.
MAX_BINDINGS = 6
MAX_CHAIN = 8


@dataclass(slots=True, eq=False)
class Scope:
    """The module, or one function or lambda, with the bindings of its names.

    ``owner`` is the class whose method this is or stands in; ``me`` is that method's first
    parameter. ``declared`` holds the names that the scope declares ``global``. ``seen`` caches the
    bindings that each use of a name in the scope may see.
    """

    module: ModuleMap
    node: ast.Module | Callable_
    outer: Scope | None = None
    owner: ClassInfo | None = None
    me: str = ""
    names: dict[str, list[ast.AST]] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    declared: set[str] = field(default_factory=set)
    seen: dict[int, list[ast.AST]] = field(default_factory=dict)

    def binds(self, name: str) -> Scope:
        """Return the scope in which an assignment binds a name: the module after ``global``."""
        scope = self
        if name in self.declared:
            while scope.outer is not None:
                scope = scope.outer
        return scope

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


@dataclass(slots=True, eq=False)
class Scopes:
    """All scopes of a module, and every call in each."""

    module: ModuleMap
    root: Scope
    of_function: dict[int, Scope] = field(default_factory=dict)
    calls: list[tuple[ast.Call, Scope]] = field(default_factory=list)
    functions: list[tuple[Callable_, Scope]] = field(default_factory=list)
    _attributes: dict[str, dict[str, list[tuple[ast.expr, Scope]]]] = field(default_factory=dict)

    def attribute(self, owner: ClassInfo, name: str) -> list[tuple[ast.expr, Scope]]:
        """Return the expressions that methods assign to ``self.name``, with their scopes."""
        if owner.key not in self._attributes:
            self._attributes[owner.key] = _assigned_attributes(owner, self)
        return self._attributes[owner.key].get(name, [])


def read_scopes(module: ModuleMap) -> Scopes:
    """Read all scopes of a module in one walk."""
    root = Scope(module, module.tree)
    scopes = Scopes(module, root)
    owners = {id(info.node): info for info in module.classes.values()}
    _read(module.tree.body, root, None, scopes, owners)
    return scopes


# Leaf nodes, which call and bind nothing.
LEAF_NODES = frozenset((ast.Name, ast.Constant))
# Nodes that open a scope, are calls or bind a name.
SCOPE_NODES = frozenset((
    *SCOPES, ast.Call, ast.Global, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For,
    ast.comprehension, ast.withitem,
))  # fmt: skip


def _read(
    nodes: list[ast.stmt],
    scope: Scope,
    owner: ClassInfo | None,
    scopes: Scopes,
    owners: dict[int, ClassInfo],
) -> None:
    """Read statements with one stack for all, without recursion into deep expressions."""
    waiting: list[tuple[ast.AST, Scope, ClassInfo | None]] = [(n, scope, owner) for n in nodes]
    waiting.reverse()
    while waiting:
        node, place, klass = waiting.pop()
        kind = type(node)
        if kind in LEAF_NODES:
            continue
        if kind not in SCOPE_NODES:
            inherited = klass if isinstance(node, ast.stmt) else None
            waiting.extend([(x, place, inherited) for x in reversed(children(node))])
            continue
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if klass is None:
                    place.names.setdefault(node.name, []).append(node)
                inner = _function_scope(node, place, klass)
                scopes.of_function[id(node)] = inner
                scopes.functions.append((node, inner))
                outside = [*node.decorator_list, *node.args.defaults, *_kw_defaults(node.args)]
                waiting.extend((x, place, None) for x in reversed(outside))
                waiting.extend((x, inner, None) for x in reversed(node.body))
                continue
            case ast.Lambda():
                inner = _function_scope(node, place, None)
                scopes.of_function[id(node)] = inner
                scopes.functions.append((node, inner))
                waiting.append((node.body, inner, None))
                continue
            case ast.ClassDef():
                found = owners.get(id(node))
                waiting.extend((x, place, found) for x in reversed(node.body))
                waiting.extend((x, place, None) for x in node.decorator_list)
                continue
            case ast.Call():
                scopes.calls.append((node, place))
            case ast.Global(names=names):
                place.declared.update(names)
        if klass is None and isinstance(node, BINDING):
            _bind(node, place)
        inherited = klass if isinstance(node, ast.stmt) else None
        waiting.extend([(x, place, inherited) for x in reversed(children(node))])


def _kw_defaults(args: ast.arguments) -> list[ast.expr]:
    return [x for x in args.kw_defaults if x is not None]


def _function_scope(node: Callable_, outer: Scope, klass: ClassInfo | None) -> Scope:
    args = node.args
    named = named_parameters(args)
    named.extend(x for x in (args.vararg, args.kwarg) if x is not None)
    first = [*args.posonlyargs, *args.args]
    static = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list
    )
    owner, me = outer.owner, outer.me
    if klass is not None:
        owner, me = klass, first[0].arg if first and not static else ""
    names = frozenset(a.arg for a in named)
    if klass is None and me in names:
        me = ""  # shadowed
    return Scope(outer.module, node, outer, owner, me, {}, names)


BINDING = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension, ast.withitem)


def _bind(node: ast.AST, scope: Scope) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Name):
                    scope.binds(target.id).names.setdefault(target.id, []).append(value)
                elif isinstance(target, (ast.Tuple, ast.List)):
                    _unknown(target, scope)
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            scope.binds(name).names.setdefault(name, []).append(value)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            scope.binds(name).names.setdefault(name, []).append(value)
        case ast.For(target=target, iter=source) | ast.comprehension(target=target, iter=source):
            _bind_elements(target, source, scope)
        case ast.withitem(optional_vars=ast.Name(id=name)):
            scope.binds(name).names.setdefault(name, []).append(node)


def _bind_elements(target: ast.expr, source: ast.expr, scope: Scope) -> None:
    """Bind the target of ``for layer in self.layers``, also under ``enumerate``."""
    match target, source:
        case (
            ast.Tuple(elts=[first, ast.Name() as last]),
            ast.Call(func=ast.Name(id="enumerate"), args=[given, *_]),
        ):
            _unknown(first, scope)
            _bind_elements(last, given, scope)
        case (ast.Name(id=name), _):
            element = ast.Starred(source, ast.Load())  # stands for "an element of"
            scope.binds(name).names.setdefault(name, []).append(element)
        case _:
            _unknown(target, scope)


def _unknown(target: ast.AST, scope: Scope) -> None:
    for inner in walk([target]):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            scope.binds(inner.id).names.setdefault(inner.id, []).append(inner)


def _assigned_attributes(
    owner: ClassInfo, scopes: Scopes
) -> dict[str, list[tuple[ast.expr, Scope]]]:
    found: dict[str, list[tuple[ast.expr, Scope]]] = {}
    for method in owner.functions:
        scope = scopes.of_function.get(id(method.node))
        if scope is None or not scope.me:
            continue
        for node in walk([method.node]):
            targets: list[ast.expr] = []
            value: ast.expr | None = None
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign):
                targets, value = [node.target], node.value
            for target in targets:
                match target:
                    case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == scope.me:
                        if value is not None:
                            found.setdefault(attr, []).append((value, scope))
    return found


class Resolver:
    """Follows expressions to the functions that calling them runs."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._module = scopes.module

    def functions(self, node: ast.AST, scope: Scope, left: int = MAX_CHAIN) -> list[Callable_]:
        """Return the functions of this module that calling ``node`` runs; empty if unknown."""
        if left <= 0:
            return []
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return [node]
            case ast.Name():
                return self._named(node, scope, left)
            case ast.Attribute():
                return self._attribute(node, scope, left)
            case ast.Call():
                return self._called(node, scope, left)
            case ast.IfExp(body=body, orelse=orelse):
                return [
                    *self.functions(body, scope, left - 1),
                    *self.functions(orelse, scope, left - 1),
                ]
            case ast.Starred(value=source) | ast.Subscript(value=source):
                return self._elements(source, scope, left - 1)
        return []

    def _named(self, name: ast.Name, scope: Scope, left: int) -> list[Callable_]:
        nodes, place = _bound(name, scope)
        found: list[Callable_] = []
        for node in nodes[:MAX_BINDINGS]:
            for function in self.functions(node, place, left - 1):
                if function not in found:
                    found.append(function)
        return found

    def _attribute(self, node: ast.Attribute, scope: Scope, left: int) -> list[Callable_]:
        if isinstance(node.value, ast.Name) and scope.owner is not None:
            if node.value.id == scope.me:
                return self.member(scope.owner, node.attr, left)
            if node.value.id == scope.owner.name:
                return _methods(scope.owner, node.attr)
        if isinstance(node.value, ast.Call) and _is_super(node.value):
            return self._inherited(scope.owner, node.attr)
        if isinstance(node.value, ast.Name) and node.value.id in self._module.classes:
            return _methods(self._module.classes[node.value.id], node.attr)
        owner = self.instance(node.value, scope, left - 1)
        return self.member(owner, node.attr, left - 1) if owner is not None else []

    def member(self, owner: ClassInfo, name: str, left: int = MAX_CHAIN) -> list[Callable_]:
        """Return a method by name, or the functions that calling an instance's attribute runs."""
        for klass in self.lineage(owner):
            if name in klass.methods:
                return [klass.methods[name].node]
        found: list[Callable_] = []
        for klass in self.lineage(owner):
            for value, scope in self._scopes.attribute(klass, name)[:MAX_BINDINGS]:
                found.extend(f for f in self.functions(value, scope, left - 1) if f not in found)
        return found

    def _inherited(self, owner: ClassInfo | None, name: str) -> list[Callable_]:
        lineage = list(self.lineage(owner))[1:] if owner is not None else []
        for klass in lineage:
            if name in klass.methods:
                return [klass.methods[name].node]
        return []

    def _called(self, node: ast.Call, scope: Scope, left: int) -> list[Callable_]:
        """Return the functions that calling the *result* of a call runs.

        They are an instance's forward, or a partial's function.
        """
        name = self._module.qualify(node.func)
        if name in PARTIAL or name.endswith(".partial"):
            return self.functions(node.args[0], scope, left - 1) if node.args else []
        owner = self.instance(node, scope, left)
        if owner is not None:
            return self.member(owner, "forward", left - 1) or self.member(
                owner, "__call__", left - 1
            )
        if name in MODULE_CONTAINERS:
            return self._elements(node, scope, left - 1)
        if wraps_first(name) and node.args:
            return self.functions(node.args[0], scope, left - 1)
        return []

    def instance(self, node: ast.expr, scope: Scope, left: int = MAX_CHAIN) -> ClassInfo | None:
        """Return the class of this module that an expression's value is an instance of."""
        if left <= 0:
            return None
        match node:
            case ast.Name(id=name):
                if name == scope.me:
                    return scope.owner
                for value, place in _values(node, scope):
                    made = self.instance(value, place, left - 1)
                    if made is not None:
                        return made
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == scope.me:
                if scope.owner is None:
                    return None
                for klass in self.lineage(scope.owner):
                    for value, place in self._scopes.attribute(klass, attr)[:MAX_BINDINGS]:
                        made = self.instance(value, place, left - 1)
                        if made is not None:
                            return made
            case ast.Call(func=ast.Name(id=name)) if name in self._module.classes:
                return self._module.classes[name]
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in SELF_RETURNING:
                return self.instance(inner, scope, left - 1)
            case ast.Call(args=[first, *_]) if wraps_first(self._module.qualify(node.func)):
                return self.instance(first, scope, left - 1)
            case ast.Starred(value=source) | ast.Subscript(value=source):
                return self._element_class(source, scope, left - 1)
        return None

    def lineage(self, owner: ClassInfo) -> Iterator[ClassInfo]:
        """Yield a class and its bases in this module, nearest first."""
        seen: set[str] = set()
        waiting = [owner]
        while waiting:
            klass = waiting.pop(0)
            if klass.key in seen:
                continue
            seen.add(klass.key)
            yield klass
            for base in klass.bases:
                found = self._module.classes.get(base.rpartition(".")[2])
                if found is not None:
                    waiting.append(found)

    def _elements(self, source: ast.expr, scope: Scope, left: int) -> list[Callable_]:
        owner = self._element_class(source, scope, left)
        return self.member(owner, "forward", left - 1) if owner is not None else []

    def _element_class(self, source: ast.expr, scope: Scope, left: int) -> ClassInfo | None:
        """Return the class of the elements of a list, ``ModuleList`` or ``Sequential``."""
        if left <= 0:
            return None
        match source:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                made = [self.instance(e, scope, left - 1) for e in elements[:MAX_BINDINGS]]
                return next((klass for klass in made if klass is not None), None)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self.instance(element, scope, left - 1)
            case ast.Call(args=[first, *_]) if (
                self._module.qualify(source.func) in MODULE_CONTAINERS
            ):
                inner = first.value if isinstance(first, ast.Starred) else first
                return self._element_class(inner, scope, left - 1) or self.instance(
                    inner, scope, left - 1
                )
            case ast.Name():
                for value, place in _values(source, scope):
                    klass = self._element_class(value, place, left - 1)
                    if klass is not None:
                        return klass
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == scope.me:
                if scope.owner is not None:
                    for klass in self.lineage(scope.owner):
                        for value, place in self._scopes.attribute(klass, attr)[:MAX_BINDINGS]:
                            made_of = self._element_class(value, place, left - 1)
                            if made_of is not None:
                                return made_of
        return None


def _bound(name: ast.Name, scope: Scope) -> tuple[list[ast.AST], Scope]:
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


def _values(name: ast.Name, scope: Scope) -> list[tuple[ast.expr, Scope]]:
    """Return the expressions that a name is bound to, each with its scope."""
    nodes, place = _bound(name, scope)
    return [(node, place) for node in nodes[:MAX_BINDINGS] if isinstance(node, ast.expr)]


def wraps_first(name: str) -> bool:
    """True for a function of torch that returns its first argument compiled or transformed."""
    return name in ("torch.compile", "torch.compiler.compile") or name in TRANSFORMS


# torch.func's transforms under all their qualified names.
_TRANSFORM_NAMES = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian")
TRANSFORMS = {
    f"{home}.{name}": name
    for home in ("torch.func", "functorch", "torch._functorch.apis")
    for name in _TRANSFORM_NAMES
} | {"torch.vmap": "vmap"}  # fmt: skip


def _methods(owner: ClassInfo, name: str) -> list[Callable_]:
    return [owner.methods[name].node] if name in owner.methods else []


def _is_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super"
