"""Values as JSON can hold them, to be compared with those of a later run or made again there.

A definition is written by its name and its place among those of its name, a node of the linted
module by its place in the tree, and any other node by what it says.
"""

from __future__ import annotations

import ast
import json
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.function_facts import functions_named, held_in, place_of
from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap
from flake8_torchperf.syntax.traversal import FUNCTIONS, Nodes
from flake8_torchperf.values import provenance, values
from flake8_torchperf.values.environments import root_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis

# The classes of the interpreter's values and of what they consist of, by name.
_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        values.Tensor, values.Scalar, values.NDArray, values.Opaque, values.Device, values.DType,
        values.Sequence, values.Mapping_, values.Told, values.External, values.Imported,
        values.Function, values.ClassValue, values.Instance, values.BoundMethod,
        values.Partial, values.Returning, values.Union, provenance.Reason,
    )
}  # fmt: skip
_NODES: dict[str, type[ast.AST]] = {
    name: kind
    for name, kind in vars(ast).items()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_ENUMS = {kind.__name__: kind for kind in (provenance.Strength, provenance.Source)}
_SINGLE = {"UNKNOWN": values.UNKNOWN, "COMPARED": values.COMPARED, "NONE": values.NONE}
_SINGLE_NAMES = {id(value): name for name, value in _SINGLE.items()}
_PLAIN = (bool, int, str, type(None))
# Where a node is evaluated again, and not only told.
_EVALUATED = (values.Told, values.BoundMethod)


class NoData(Exception):
    """A value that can't be written, or made again."""


_FIELDS = {name: tuple(one.name for one in fields(kind)) for name, kind in _KINDS.items()}


# The places of the nodes of one type in a function of the linted module, or outside all of them, by
# their identity.
_PLACES: Cache[tuple[int, type[ast.AST]], dict[int, int]] = Cache("places of nodes")
_OUTSIDE: Cache[None, Nodes] = Cache("nodes outside functions")


class Written:
    """Writes values as data. ``again``: they are to be made again, not only compared.

    ``now``: nested functions still have the names of the call that is written down.
    """

    def __init__(self, analysis: Analysis, *, again: bool, now: bool) -> None:
        self._analysis = analysis
        self._again = again
        self._now = now
        # The data of values that are held as long as this is, by their identity.
        self._known: dict[int, list[Any]] = {}
        # The nested functions that are being written, by their keys.
        self._open: set[int] = set()

    def data(self, value: Any) -> Any:
        """Return a value as data. Raises NoData."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        name = kind.__name__
        if name in _KINDS:
            return self._record(value, name)
        if kind is values.Closure:
            return self._closure(value)
        if id(value) in _SINGLE_NAMES:
            return [_SINGLE_NAMES[id(value)]]
        if kind is tuple:
            return ["tuple", *map(self.data, value)]
        if kind is frozenset:
            return ["set", *sorted(map(self.data, value), key=json.dumps)]
        if kind is dict:
            return ["dict", *([key, self.data(one)] for key, one in value.items())]
        if isinstance(value, Enum):
            return ["enum", name, value.name]
        if kind is float:
            return ["float", repr(value)]
        if kind is bytes:
            return ["bytes", value.hex()]
        if isinstance(value, ast.AST):
            return self._node(value)
        return self._definition(value)

    def _record(self, value: Any, name: str) -> list[Any]:
        if self._again and isinstance(value, _EVALUATED):
            raise NoData
        known = self._known.get(id(value))
        if known is not None:
            return known
        left_out = _left_out(value)
        data = [
            name,
            *(None if one in left_out else self.data(getattr(value, one))
              for one in _FIELDS[name]),
        ]  # fmt: skip
        self._known[id(value)] = data
        return data

    def _closure(self, closure: values.Closure) -> list[Any]:
        """Return a nested function with the names outside it that its body uses."""
        if closure.key in self._open or not self._now:
            raise NoData  # it holds itself, or its names may have changed since
        self._open.add(closure.key)
        words = closure.module.nodes(closure.node).words()
        held = {path: one for path, one in closure.env.items() if root_of(path) in words}
        env, module = self.data(held), self._module(closure.module)
        self._open.discard(closure.key)
        inner = self._inner(closure)
        if inner[0] == "other":
            raise NoData  # in a function that another of its name replaces
        return ["Closure", inner, module, env]

    def _inner(self, closure: values.Closure) -> list[Any]:
        """Return the node of a nested function, by its place in the function around it."""
        around = function_at(closure.module, closure.node.lineno)
        if closure.module is self._analysis.project.linted:
            return self._node(closure.node)
        if around is None:
            raise NoData
        places = (n for n, one in enumerate(ast.walk(around.tree)) if one is closure.node)
        place = next(places, None)
        if place is None:
            raise NoData
        return ["inner", self.data(around), place, ast.dump(closure.node)]

    def _node(self, node: ast.AST) -> list[Any]:
        linted, kind = self._analysis.project.linted, type(node)
        around = function_at(linted, getattr(node, "lineno", 0))
        places = _PLACES.kept(
            self._analysis,
            (0 if around is None else id(around.tree), kind),
            lambda: {
                id(one): place for place, one in enumerate(_nodes(self._analysis, around).of(kind))
            },
        )
        place = places.get(id(node))
        if place is not None:
            return ["node", 0 if around is None else around.tree.lineno, kind.__name__, place]
        said = getattr(node, _SAID, None)
        return ["other", type(node).__name__, ast.dump(node) if said is None else said]

    def _definition(self, value: Any) -> list[Any]:
        match value:
            case FunctionInfo():
                place = place_of(value)
                if place is not None:
                    return ["def", self._module(value.module), value.qualname, place]
            case ClassInfo():
                if held_in(value.module.classes, value.name) is value:
                    return ["class", self._module(value.module), value.name]
            case ModuleMap():
                return ["module", self._module(value)]
        raise NoData

    def _module(self, module: ModuleMap) -> str:
        """Return the name by which a module is found; "" for the linted one."""
        project = self._analysis.project
        if module is project.linted:
            return ""
        if not project.has_read(module):
            raise NoData
        return module.name


def _nodes(analysis: Analysis, around: FunctionInfo | None) -> Nodes:
    """Return the nodes of a function of the linted module, or those outside all functions."""
    linted = analysis.project.linted
    if around is not None:
        return linted.nodes(around.tree)
    return _OUTSIDE.kept(analysis, None, lambda: Nodes(list(_outside_functions(linted.tree.body))))


def _outside_functions(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the code of a module or class without the functions in it and the classes' heads."""
    for one in body:
        if isinstance(one, FUNCTIONS):
            yield from one.decorator_list
        elif isinstance(one, ast.ClassDef):
            yield from (*one.decorator_list, *one.bases, *one.keywords)
            yield from _outside_functions(one.body)
        else:
            yield one


# Of a node that stands for one of another run: what that one says.
_SAID = "_torchperf_said"


def _left_out(value: Any) -> tuple[str, ...]:
    """Return the fields of a record that follow from its others, and hold lines or identities."""
    match value:
        case values.Function() | values.ClassValue():
            return ("key",)
        case values.Instance(name=name, info=info) if info is not None and info.key == name:
            return ("name",)
    return ()


class Made:
    """Makes values again from data, for the analysis of a later run."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._modules: dict[str, ModuleMap] = {}

    def value(self, data: Any) -> Any:
        """Return a value. Raises NoData for one that isn't there any more."""
        if not isinstance(data, list):
            return data
        name, *rest = data
        if name in _KINDS:
            return self._record(_KINDS[name], rest)
        if name in _SINGLE:
            return _SINGLE[name]
        match name, rest:
            case "tuple", _:
                return tuple(map(self.value, rest))
            case "set", _:
                return frozenset(map(self.value, rest))
            case "dict", _:
                return {key: self.value(one) for key, one in rest}
            case "enum", [kind, member]:
                return _ENUMS[kind][member]
            case "float", [text]:
                return float(text)
            case "bytes", [text]:
                return bytes.fromhex(text)
            case "node", [line, kind, place]:
                linted = self._analysis.project.linted
                around = function_at(linted, line) if line else None
                return _nodes(self._analysis, around).of(_NODES[kind])[place]
            case "inner", [around, place, said]:
                inside = list(ast.walk(self.value(around).tree))
                if place >= len(inside) or ast.dump(inside[place]) != said:
                    raise NoData
                return inside[place]
            case "Closure", [node, module, env]:
                found = self.value(node)
                return values.Closure(found, id(found), self.value(env), self._module(module))
            case "other", [kind, said]:
                node = _NODES[kind]()
                setattr(node, _SAID, said)
                return node
        return self._definition(name, rest)

    def _record(self, kind: type[Any], data: list[Any]) -> Any:
        if kind in _EVALUATED:
            raise NoData
        given = dict(zip(_FIELDS[kind.__name__], map(self.value, data), strict=True))
        if kind in (values.Function, values.ClassValue):
            given["key"] = given["info"].key
        elif kind is values.Instance and given["name"] is None:
            given["name"] = given["info"].key
        return kind(**given)

    def _definition(self, kind: str, data: list[Any]) -> Any:
        module = self._module(data[0])
        if kind == "module":
            return module
        found = (
            module.classes.get(data[1]) if kind == "class" else self._function(module, *data[1:])
        )
        if found is None:
            raise NoData
        return found

    def owner(self, name: str) -> ClassInfo:
        """Return a class by its name, which begins with that of its module. Raises NoData."""
        module, qualname = self._named(name)
        found = module.classes.get(qualname)
        if found is None:
            raise NoData
        return found

    def keys_of(self, name: str) -> list[str]:
        """Return the keys of the functions of a name, which begins with that of the module."""
        module, qualname = self._named(name)
        self._function(module, qualname, 0)
        return [one.key for one in functions_named(module, qualname)]

    def _named(self, name: str) -> tuple[ModuleMap, str]:
        module, _, qualname = name.rpartition(":")
        is_linted = module == self._analysis.project.linted.name
        return self._module("" if is_linted else module), qualname

    def _module(self, name: str) -> ModuleMap:
        project = self._analysis.project
        module = self._modules.get(name)
        if module is None:
            module = project.linted if not name else project.module(name)
            if module is None:
                raise NoData
            self._modules[name] = module
        return module

    def _function(self, module: ModuleMap, qualname: str, place: int) -> FunctionInfo | None:
        owner, _, method = qualname.partition(".")
        (module.classes if method else module.functions).get(owner)  # reads an outline's
        return next(iter(functions_named(module, qualname)[place:]), None)


def is_same(one: Any, other: Any) -> bool:
    """True if data says the same of values, wherever in a function its nested functions stand."""
    if one == other:
        return True
    if not (isinstance(one, list) and isinstance(other, list) and len(one) == len(other)):
        return False
    if one[:1] == ["inner"] == other[:1]:
        return bool(one[1] == other[1] and one[3] == other[3])
    return all(map(is_same, one, other))


# Nested data deeper than this is not searched for functions.
MAX_DEPTH = 3


def holds_closure(value: Any, depth: int = 0) -> bool:
    """True if a value is a nested function, or holds one."""
    kind = type(value)
    if kind is values.Closure:
        return True
    if depth == MAX_DEPTH:
        return False
    parts: Any = ()
    if kind is dict:
        parts = value.values()
    elif kind is tuple:
        parts = value
    elif kind is values.Union:
        parts = value.options
    elif kind is values.Sequence:
        parts = (value.element, *(value.items or ()))
    elif kind is values.Mapping_:
        parts = (value.element, *(one for _, one in value.items))
    elif kind is values.Partial:
        parts = (value.callee, *value.positional, *(one for _, one in value.keywords))
    return any(holds_closure(one, depth + 1) for one in parts)
