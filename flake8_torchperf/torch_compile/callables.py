"""The functions that calling an expression runs, by the syntax of one module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.torch_compile.scopes import MAX_BINDINGS, bound_to, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.program.outlining import Callable_
    from flake8_torchperf.project.module_index import ClassInfo
    from flake8_torchperf.torch_compile.scopes import Scope, Scopes

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
# The most names in a chain that are followed.
MAX_CHAIN = 8


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
        nodes, place = bound_to(name, scope)
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
                for value, place in values_of(node, scope):
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
                for value, place in values_of(source, scope):
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
