"""Host data that is new in each call: passed to a function, or computed elsewhere on the host.

The result of an environment's step or of another library has to be copied to the device. The
analysis is by syntax alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import bound_by
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.syntax.traversal import once, plain_names, walk

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import FunctionNode, ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

# Attributes and builtins that describe an object but not its contents.
_DESCRIBING = methods_of("describes") | {"len"}


class DataFreshness:
    """The sources of the data that one function makes tensors of."""

    def __init__(self, node: FunctionNode, nodes: Nodes, module: ModuleMap, own: str) -> None:
        spec = node.args
        rest = [parameter for parameter in (spec.vararg, spec.kwarg) if parameter is not None]
        given = [*named_parameters(spec), *rest]
        self._parameters = {one.arg for one in given} - {own}
        self._given = {one.arg for one in given if not _number(one.annotation)} - {own}
        self._given -= _kept_by_callers(node, module, skipped=1 if own else 0)
        self._calls = {id(call) for call in nodes.of(ast.Call)}
        self._qualify: Callable[[ast.expr], str] = module.qualify
        self._known: dict[str, bool] = {}
        self._varying: set[str] | None = None
        self._bound: dict[str, list[ast.expr]] = {}
        # Values assigned whole to one name; parts of a tuple are left out, as they may be numbers.
        self._whole: dict[str, list[ast.expr]] = {}
        for assign in nodes.of(ast.Assign):
            for target in assign.targets:
                self._bind(target, assign.value)
                if isinstance(target, ast.Name):
                    self._whole.setdefault(target.id, []).append(assign.value)
        for annotated in nodes.of(ast.AnnAssign):
            if annotated.value is not None:
                self._bind(annotated.target, annotated.value)
        for loop in nodes.of(ast.For):
            if _of_elsewhere(loop.iter, self._bound):
                self._given |= bound_by(loop.target)
        assigned = set(self._bound)
        for loop in nodes.of_any(ast.For, ast.comprehension):
            self._bind(loop.target, loop.iter)
        self._appended: dict[str, list[ast.expr]] = {}
        for call in nodes.of(ast.Call):
            match call:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[one]
                ):
                    self._appended.setdefault(name, []).append(one)
        self._entries = set(self._bound) - assigned - self._given

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        for name in bound_by(target):
            self._bound.setdefault(name, []).append(value)

    def holds(self, call: ast.Call) -> bool:
        """True if the call stands in this function."""
        return id(call) in self._calls

    def varies(self, data: ast.expr) -> bool:
        """True if the data may differ in the next step: it depends on a parameter or on a loop."""
        if self._varying is None:
            self._varying = self._depending()
        return not self._varying.isdisjoint(plain_names(data))

    def _depending(self) -> set[str]:
        """Return the names whose values depend on parameters or loop targets, directly or not."""
        users: dict[str, list[str]] = {}
        for name, values in self._bound.items():
            for used in {used for value in values for used in plain_names(value)}:
                users.setdefault(used, []).append(name)
        found = self._parameters | self._entries
        waiting = list(found)
        while waiting:
            new = [name for name in users.get(waiting.pop(), ()) if name not in found]
            found.update(new)
            waiting += new
        return found

    def array(self, data: ast.expr) -> bool:
        """True if the data is passed to the function or derived from such data, without arithmetic.

        The result of an operator counts as computed from numbers.
        """
        return not isinstance(data, ast.BinOp) and self._fresh(data)

    def listed(self, data: ast.expr) -> bool:
        """True if a caller passes the list, or if it is made of passed data by entries or calls."""
        return self._listed(data, frozenset())

    def _listed(self, data: ast.expr, asked: frozenset[str]) -> bool:
        made = data
        while isinstance(made, (ast.Attribute, ast.Subscript)):
            made = made.value
        match data, made:
            case ast.Name(id=name), _:
                if name in self._entries or name in asked:
                    return False  # one entry in each round: they could be copied together
                if name in self._given or any(map(self._fresh, self._appended.get(name, ()))):
                    return True
                return any(
                    self._listed(value, asked | {name}) for value in self._whole.get(name, ())
                )
            case ast.ListComp(elt=elt), _:
                return not _tells_size(elt) and self._fresh(data)
            case _, ast.Call(func=ast.Attribute(attr=name)):
                one = name in methods_of("gives-one-number")
                return not one and not self._of_torch(made) and self._fresh(data)
        return False

    def _of_torch(self, node: ast.expr) -> bool:
        """True if the expression is a result of torch: ``torch.tensor(x).unsqueeze(0)``."""
        while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Call):
                node = node.func
                if self._qualify(node).startswith("torch."):
                    return True
            else:
                node = node.value
        return False

    def _fresh(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=owner, attr=name):
                return name not in _DESCRIBING and self._fresh(owner)
            case ast.Call():
                return self._made(node)
            case ast.Subscript(value=owner) | ast.Starred(value=owner):
                return self._fresh(owner)
            case ast.Constant() | ast.Lambda():
                return False
            case ast.ListComp(elt=elt) | ast.GeneratorExp(elt=elt) if _tells_size(elt):
                return False
            case ast.ListComp(generators=parts) | ast.GeneratorExp(generators=parts):
                return any(self._fresh(part.iter) for part in parts)
        return any(self._fresh(inner) for inner in ast.iter_child_nodes(node))

    def _named(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = False  # ends the recursion for a name that is made of itself
            values = self._bound.get(name, ())
            made = (*values, *self._appended.get(name, ()))
            self._known[name] = name in self._given or any(map(self._fresh, made))
        return self._known[name]

    def _made(self, call: ast.Call) -> bool:
        """True if the result of a call is derived from fresh data; numpy's factories never are."""
        name = self._qualify(call.func)
        if name.rpartition(".")[2] in _DESCRIBING or name in NUMPY_FACTORIES:
            return False
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in _DESCRIBING:
                return False
            given.append(call.func.value)
        return any(self._fresh(one) for one in given)


# Functions that make an array from a size.
NUMPY_FACTORIES = frozenset(
    f"numpy.{name}"
    for name in ("zeros", "ones", "full", "empty", "eye", "identity", "arange", "linspace", "tri")
)


def _of_elsewhere(iterated: ast.expr, bound: Collection[str]) -> bool:
    """True for a loop over data that the function did not make: ``for batch in loader``."""
    while isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
        if iterated.func.id == "range":
            return False
        iterated = iterated.args[0]  # enumerate(loader), tqdm(loader)
    return isinstance(iterated, (ast.Name, ast.Attribute)) and plain_names(iterated).isdisjoint(
        bound
    )


def _kept_by_callers(node: FunctionNode, module: ModuleMap, skipped: int) -> set[str]:
    """Return the parameters that a call in the module fills from ``self``: ``f(self.table, t)``."""
    names = [parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args)][skipped:]
    found: set[str] = set()
    for call in _calls_by_name(module.tree).get(node.name, ()):
        given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        found.update(name for name, value in given if name is not None and _of_self(value))
    return found


def _of_self(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Attribute)
        and isinstance(value.value, ast.Name)
        and (value.value.id == "self")
    )


@once
def _calls_by_name(tree: ast.AST) -> dict[str, list[ast.Call]]:
    """Return every call in a module by the last part of the callee's name."""
    found: dict[str, list[ast.Call]] = {}
    for node in walk([tree]):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                found.setdefault(name, []).append(node)
    return found


def _number(annotation: ast.expr | None) -> bool:
    """True for ``value: float``: a number that a kernel can take as an argument."""
    return isinstance(annotation, ast.Name) and annotation.id in ("float", "int", "bool")


def _tells_size(node: ast.expr) -> bool:
    """True for ``len(x)`` and ``x.shape[0]``: a size, which a kernel can take as an argument."""
    return any(
        (isinstance(inner, ast.Attribute) and inner.attr in _DESCRIBING)
        or (isinstance(inner, ast.Name) and inner.id in _DESCRIBING)
        for inner in ast.walk(node)
    )
