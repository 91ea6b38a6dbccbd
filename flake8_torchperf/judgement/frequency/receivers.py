"""The classes of the objects that a module calls methods on, by the text of the module alone.

An object's class is known by the call that makes it or by an annotation, wherever the module keeps
it: in a name, in an attribute, in a list or dict, or in a parameter that its own calls fill.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from flake8_torchperf.syntax.names import named_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap

# How many names, attributes and parameters may lead to one another.
MAX_STEPS = 6
# The most calls of a function whose arguments are looked at.
MAX_CALLS = 4
# Containers made of the class of their values, or that hold what they are given.
MADE_OF_ONE_CLASS = ("defaultdict",)
HOLDING_CLASSES = ("dict", "list", "tuple", "OrderedDict")
# Annotations of one object; the last argument of others is the class of the values.
OPTIONAL = ("Optional", "Final", "ClassVar", "Annotated", "Union")


class _Bound(NamedTuple):
    """An expression that a name is bound to, or whose items it is bound to one by one."""

    node: ast.expr
    items: bool = False
    stated: bool = False


_Bindings: TypeAlias = "dict[str, list[_Bound]]"


class Receivers:
    """Finds the classes of objects in one module, as dotted names."""

    def __init__(self, module: ModuleMap) -> None:
        self._module = module
        self._bindings: dict[str, _Bindings] = {}
        self._called: dict[str, list[tuple[ast.Call, FunctionInfo]]] | None = None

    def classes(self, node: ast.expr, scope: FunctionInfo | None) -> frozenset[str]:
        """Return the classes that an object in a function (None: module level) may have.

        The result is empty if the module does not show them.
        """
        return frozenset(self._of(node, scope, 0))

    def _of(
        self, node: ast.expr, scope: FunctionInfo | None, steps: int, *, items: bool = False
    ) -> Iterator[str]:
        """Yield the classes of an object or, with ``items``, of those that it holds."""
        if steps > MAX_STEPS:
            return
        match node:
            case ast.Name(id=name):
                for bound, place in self._bound(name, scope):
                    yield from self._of_bound(bound, place, steps + 1, items=items)
            case ast.Attribute(value=owner, attr=name):
                for info in self._own(owner, scope, steps + 1):
                    for bound, place in _kept_in(info, name):
                        yield from self._of_bound(bound, place, steps + 1, items=items)
            case ast.IfExp(body=body, orelse=other):
                for one in (body, other):
                    yield from self._of(one, scope, steps + 1, items=items)
            case ast.BoolOp(values=values):
                for one in values:
                    yield from self._of(one, scope, steps + 1, items=items)
            case ast.Subscript(value=held) if not items:
                yield from self._of(held, scope, steps + 1, items=True)
            case ast.Call(func=ast.Attribute(value=held, attr="get" | "pop" | "setdefault")):
                if not items:
                    yield from self._of(held, scope, steps + 1, items=True)
            case ast.Call(func=func) if not items:
                yield from self._class(func)
            case _ if items:
                for one in _held(node):
                    yield from self._of(one, scope, steps + 1)

    def _of_bound(
        self, bound: _Bound, scope: FunctionInfo | None, steps: int, *, items: bool
    ) -> Iterator[str]:
        if bound.stated:
            yield from self._stated(bound.node, items=items)
        elif not (bound.items and items):
            yield from self._of(bound.node, scope, steps, items=items or bound.items)

    def _stated(self, annotation: ast.expr, *, items: bool) -> Iterator[str]:
        """Yield the classes that an annotation names: ``Meter | None``, ``dict[str, Meter]``."""
        match annotation:
            case ast.Constant(value=str(text)) if text.replace(".", "").isidentifier():
                yield from self._stated(ast.parse(text, mode="eval").body, items=items)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                for one in (left, right):
                    yield from self._stated(one, items=items)
            case ast.Subscript(value=outer, slice=inner):
                named = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                if self._module.qualify(outer).rpartition(".")[2] in OPTIONAL:
                    for one in named:
                        yield from self._stated(one, items=items)
                elif items:
                    yield from self._stated(named[-1], items=False)
            case ast.Name() | ast.Attribute() if not items:
                yield from self._class(annotation)

    def _class(self, node: ast.expr) -> Iterator[str]:
        """Yield the class that an expression names; functions have names in lower case."""
        name = self._module.qualify(node)
        if name.rpartition(".")[2].lstrip("_")[:1].isupper():
            yield name

    def _own(self, node: ast.expr, scope: FunctionInfo | None, steps: int) -> Iterator[ClassInfo]:
        """Yield the classes of the module that an object may have."""
        if scope is not None and scope.owner is not None and isinstance(node, ast.Name):
            me = named_parameters(scope.node.args)[:1]
            if me and me[0].arg == node.id:
                yield scope.owner
                return
        for name in self._of(node, scope, steps):
            head, _, last = name.rpartition(".")
            if head == self._module.name and last in self._module.classes:
                yield self._module.classes[last]

    def _bound(
        self, name: str, scope: FunctionInfo | None
    ) -> Iterator[tuple[_Bound, FunctionInfo | None]]:
        """Yield what a name is bound to, with the function in which that is evaluated."""
        if scope is not None:
            known = self._bindings.get(scope.key)
            if known is None:
                known = self._bindings[scope.key] = _bindings(scope)
            if name in known:
                yield from ((bound, scope) for bound in known[name])
                return
            for position, parameter in enumerate(named_parameters(scope.node.args)):
                if parameter.arg == name:
                    yield from self._given(scope, position, parameter)
                    return
        yield from ((_Bound(node), None) for node in self._module.constants.get(name, ()))

    def _given(
        self, function: FunctionInfo, position: int, parameter: ast.arg
    ) -> Iterator[tuple[_Bound, FunctionInfo | None]]:
        """Yield the annotation of a parameter, or else the arguments of the module's own calls."""
        if parameter.annotation is not None:
            yield _Bound(parameter.annotation, stated=True), function
            return
        name = function.name if function.name != "__init__" else ""
        if function.owner is not None:
            name = name or function.owner.name
            position -= "staticmethod" not in function.decorators
        for call, caller in self._calls().get(name, ())[:MAX_CALLS]:
            if caller.key == function.key:
                continue
            if 0 <= position < len(call.args):
                yield _Bound(call.args[position]), caller
            for keyword in call.keywords:
                if keyword.arg == parameter.arg:
                    yield _Bound(keyword.value), caller

    def _calls(self) -> dict[str, list[tuple[ast.Call, FunctionInfo]]]:
        """Return the calls in the module's functions by the last name of the called expression."""
        if self._called is None:
            self._called = {}
            for info in self._module.defined:
                for call in info.nodes.of(ast.Call):
                    func = call.func
                    name = func.attr if isinstance(func, ast.Attribute) else ""
                    if isinstance(func, ast.Name):
                        name = func.id
                    self._called.setdefault(name, []).append((call, info))
        return self._called


def _bindings(info: FunctionInfo) -> _Bindings:
    """Return what the names in a function are bound to, parameters left out."""
    found: _Bindings = {}
    for assigned in info.nodes.of(ast.Assign):
        for target in assigned.targets:
            _bind(target, _Bound(assigned.value), found)
    for annotated in info.nodes.of(ast.AnnAssign):
        _bind(annotated.target, _Bound(annotated.annotation, stated=True), found)
    for walrus in info.nodes.of(ast.NamedExpr):
        _bind(walrus.target, _Bound(walrus.value), found)
    for managed in info.nodes.of(ast.withitem):
        if managed.optional_vars is not None:
            _bind(managed.optional_vars, _Bound(managed.context_expr), found)
    for loop in (*info.nodes.of_any(ast.For, ast.AsyncFor), *info.nodes.of(ast.comprehension)):
        _bind_round(loop.target, loop.iter, found)
    return found


def _bind(target: ast.expr, bound: _Bound, found: _Bindings) -> None:
    match target, bound.node:
        case ast.Name(id=name), _:
            found.setdefault(name, []).append(bound)
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for one, value in zip(targets, values, strict=True):
                _bind(one, _Bound(value), found)


def _bind_round(target: ast.expr, source: ast.expr, found: _Bindings) -> None:
    """Note the names that a loop over a list, or over the values of a dict, binds."""
    match target, source:
        case ast.Tuple(elts=[_, value]), ast.Call(func=ast.Attribute(value=held, attr="items")):
            _bind(value, _Bound(held, items=True), found)
        case _, ast.Call(func=ast.Attribute(value=held, attr="values")):
            _bind(target, _Bound(held, items=True), found)
        case ast.Tuple(elts=[_, value]), ast.Call(func=ast.Name(id="enumerate"), args=[held]):
            _bind(value, _Bound(held, items=True), found)
        case ast.Name(), ast.Name() | ast.Attribute() | ast.List() | ast.Tuple():
            _bind(target, _Bound(source, items=True), found)


def _kept_in(info: ClassInfo, name: str) -> Iterator[tuple[_Bound, FunctionInfo | None]]:
    """Yield what an attribute is set to, and what is set as an item of it."""
    if name in info.annotations:
        yield _Bound(info.annotations[name], stated=True), None
    elif name in info.assigned:
        yield _Bound(info.assigned[name]), None
    for method in info.writers.get(name, ()):
        for node in method.nodes.of(ast.Assign):
            for target in node.targets:
                match target:
                    case ast.Attribute(attr=attr) if attr == name:
                        yield _Bound(node.value), method
                    case ast.Subscript(value=ast.Attribute(attr=attr)) if attr == name:
                        yield _Bound(ast.List([node.value])), method
        for annotated in method.nodes.of(ast.AnnAssign):
            if isinstance(annotated.target, ast.Attribute) and annotated.target.attr == name:
                yield _Bound(annotated.annotation, stated=True), method
                if annotated.value is not None:
                    yield _Bound(annotated.value), method


def _held(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the values that a new container holds, as expressions that make one each."""
    match node:
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Dict(values=values):
            yield from values[:MAX_CALLS]
        case ast.DictComp(value=value):
            yield value
        case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            yield value
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[made, *_]):
            if name in MADE_OF_ONE_CLASS:
                yield made.body if isinstance(made, ast.Lambda) else ast.Call(made, [], [])
            elif name in HOLDING_CLASSES:
                yield from _held(made)
