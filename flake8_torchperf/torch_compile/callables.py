"""The functions that calling an expression runs, by the syntax of one module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.program.alone import names_and_objects
from flake8_torchperf.program.given import TRANSFORMING
from flake8_torchperf.program.life.compiled import COMPILE_FUNCTIONS
from flake8_torchperf.program.linking import Unit
from flake8_torchperf.torch_compile.scopes import MAX_BINDINGS, bound_to

if TYPE_CHECKING:
    from flake8_torchperf.program.outlines.outlining import Callable_
    from flake8_torchperf.project.module_index import ClassInfo
    from flake8_torchperf.torch_compile.scopes import Scope, Scopes

PARTIAL = frozenset(("functools.partial", "partial"))
# The most names in a chain that are followed.
MAX_CHAIN = 8


class Resolver:
    """Follows expressions to the functions that calling them runs."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._module = scopes.module
        self._path = scopes.module.place
        self._linker, self._objects = names_and_objects(scopes.module)

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
            case ast.Subscript():
                return self._forward(node, scope)
        return []

    def _named(self, name: ast.Name, scope: Scope, left: int) -> list[Callable_]:
        nodes, place = bound_to(name, scope)
        found: list[Callable_] = []
        for node in nodes[:MAX_BINDINGS]:
            for function in self.functions(node, place, left - 1):
                if function not in found:
                    found.append(function)
        return found or self._forward(name, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope, left: int) -> list[Callable_]:
        match node.value:
            case ast.Call(func=ast.Name(id="super")):
                bases = [] if scope.owner is None else self.lineage(scope.owner)[1:]
                above = next((one for one in bases if node.attr in one.methods), None)
                return [] if above is None else [above.methods[node.attr].node]
            case ast.Name(id=name) if name in self._module.classes:
                method = self._module.classes[name].methods.get(node.attr)
                return [] if method is None else [method.node]
        owners = self.instances(node.value, scope)
        return [one for owner in owners for one in self.member(owner, node.attr, left - 1)]

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

    def _called(self, node: ast.Call, scope: Scope, left: int) -> list[Callable_]:
        """Return the functions that calling the *result* of a call runs.

        They are an instance's forward, or a partial's function.
        """
        name = self._module.qualify(node.func)
        if (name in PARTIAL or name.endswith(".partial") or wraps_first(name)) and node.args:
            return self.functions(node.args[0], scope, left - 1)
        return self._forward(node, scope) or self._forward(node, scope, items=True)

    def _forward(self, node: ast.expr, scope: Scope, *, items: bool = False) -> list[Callable_]:
        """Return what calling an instance, or the items of a container, runs."""
        return [
            one
            for owner in self.instances(node, scope, items=items)
            for one in self.member(owner, "forward") or self.member(owner, "__call__")
        ]

    def instances(self, node: ast.expr, scope: Scope, *, items: bool = False) -> list[ClassInfo]:
        """Return the classes of this module that an expression's value, or items, may be of."""
        seen = bound_to(node, scope)[0] if isinstance(node, ast.Name) else []
        # The program doesn't know which of several values a name has at one use.
        only = id(seen[0]) if len(seen) == 1 else id(node)
        number = self._scopes.numbers.get(only, self._scopes.numbers.get(id(node)))
        if number is None:
            return []
        found = self._objects.classes(self._path, number, items=items)
        units = sorted(one for one in found if isinstance(one, Unit))
        classes = (self._scopes.classes[one.number] for one in units)
        return [one for one in classes if one is not None]

    def lineage(self, owner: ClassInfo) -> list[ClassInfo]:
        """Return a class and its bases in this module, nearest first."""
        classes = self._scopes.classes
        unit = Unit(self._path, classes.index(owner), is_class=True)
        found = (classes[one.number] for one in self._linker.lineage(unit))
        return [one for one in found if one is not None]


def wraps_first(name: str) -> bool:
    """True for a function of torch that returns its first argument compiled or transformed."""
    return name in COMPILE_FUNCTIONS or name in TRANSFORMS


# torch.func's transforms under all their qualified names.
TRANSFORMS = {
    f"{home}.{name}": name
    for home in ("torch.func", "functorch", "torch._functorch.apis")
    for name in TRANSFORMING - {"compile", "partial"}
} | {"torch.vmap": "vmap"}  # fmt: skip
