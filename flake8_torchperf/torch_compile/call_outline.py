"""The calls that the functions of one module make, by names that other modules can resolve.

The outline is made once for each file of a package. It is small, because it drops the file's tree.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.project.files import read_bytes
from flake8_torchperf.project.module_index import read_module, record_import
from flake8_torchperf.project.resolver import NO_PYTHON, decoded
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.torch_compile.traced_nodes import body_of, not_traced, traced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap

# Decorators of a method that runs when its name is read.
PROPERTY_DECORATORS = ("property", "functools.cached_property", "cached_property")


class Called(NamedTuple):
    """One call: of ``name`` on an instance of the class ``owner``, both as dotted names.

    ``how`` is "name" for a dotted name alone (``owner`` is ""), "method", "inherited" for
    ``super()``, "attribute" for ``self.<name's first part>.<its second>``, "property" if ``name``
    is only read.
    """

    how: str
    owner: str
    name: str


@dataclass(frozen=True, slots=True)
class FunctionOutline:
    """A function or method: the calls in its traced code."""

    calls: tuple[Called, ...]
    is_traced: bool
    is_property: bool


@dataclass(frozen=True, slots=True)
class ClassOutline:
    """A class: its bases by dotted name, and the classes of the values of its attributes."""

    bases: tuple[str, ...]
    attributes: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ModuleOutline:
    """A module: its imports, its functions by qualified name, and its classes."""

    name: str
    path: str
    imports: dict[str, str]
    stars: tuple[str, ...]
    functions: dict[str, FunctionOutline]
    classes: dict[str, ClassOutline]


@lru_cache(maxsize=4096)
def outline(path: str, modified: int, size: int) -> ModuleOutline:
    """Return the outline of a file; an empty one if it is not Python."""
    data = read_bytes(path)
    text = ""
    tree = ast.Module([], [])
    try:
        text = decoded(data if isinstance(data, bytes) else b"")
        tree = ast.parse(text)
    except NO_PYTHON:
        pass  # flake8 reports the error when it lints that file
    module = read_module(tree, (text,), Path(path))
    found = ModuleOutline(
        module.name,
        path,
        dict(module.imports),
        tuple(module.stars),
        {info.qualname: _function(info) for info in module.defined},
        {name: _class(info) for name, info in module.classes.items()},
    )
    module.forget()
    return found


def _function(info: FunctionInfo) -> FunctionOutline:
    calls = dict.fromkeys(_Reader(info).calls())
    traces = not not_traced(info.node, info.module)
    return FunctionOutline(
        tuple(calls), traces, any(name in PROPERTY_DECORATORS for name in info.decorators)
    )


def _class(info: ClassInfo) -> ClassOutline:
    found: dict[str, list[str]] = {}
    for name, annotation in info.annotations.items():
        found.setdefault(name, []).extend(_stated(annotation, info.module))
    for method in info.functions:
        reader = _Reader(method)
        for node in walk([method.node]):
            match node:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=me), attr=attr)]):
                    if me == reader.me:
                        found.setdefault(attr, []).extend(reader.classes(node.value))
    return ClassOutline(info.bases, {name: tuple(made) for name, made in found.items() if made})


def _stated(annotation: ast.expr, module: ModuleMap) -> Iterator[str]:
    """Yield the dotted names in an annotation, also in one written as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except NO_PYTHON:
            return
    for node in walk([annotation]):
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = module.qualify(node)
            if name:
                yield name


class _Reader:
    """Reads the calls of one function, nested ones included."""

    def __init__(self, info: FunctionInfo) -> None:
        self._info = info
        self._module = info.module
        parameters = named_parameters(info.node.args)
        static = "staticmethod" in info.decorators
        self.me = parameters[0].arg if info.owner is not None and parameters and not static else ""
        self._owner = "" if info.owner is None else f"{info.module.name}.{info.owner.name}"
        self._imports: dict[str, str] = {}
        self._made: dict[str, list[str]] = {}
        for parameter in parameters:
            if parameter.annotation is not None:
                self._made[parameter.arg] = list(_stated(parameter.annotation, info.module))
        self._bind(info.nodes.of_any(ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign))

    def _bind(self, nodes: Iterable[ast.AST]) -> None:
        """Note the function's own imports, and the classes of the values of its names."""
        for node in nodes:
            match node:
                case ast.Import() | ast.ImportFrom():
                    self._imports.update(record_import(node, self._module.package)[0])
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value):
                    self._made.setdefault(name, []).extend(self.classes(value))
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    self._made.setdefault(name, []).extend(_stated(annotation, self._module))

    def classes(self, node: ast.expr) -> list[str]:
        """Return the dotted names that may be the class of an expression's value."""
        match node:
            case ast.Call(func=func):
                name = self._dotted(func)
                return [name] if name else []
            case ast.Name(id=name):
                return self._made.get(name, [])
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.classes(body), *self.classes(orelse)]
        return []

    def _dotted(self, node: ast.expr) -> str:
        """Return the dotted name of a function or class of any module; "" for a local one."""
        head = node
        parts: list[str] = []
        while isinstance(head, ast.Attribute):
            parts.insert(0, head.attr)
            head = head.value
        if not isinstance(head, ast.Name) or head.id == self.me:
            return ""
        name, module = head.id, self._module
        if name in self._imports:
            start = self._imports[name]
        elif name in self._made:
            return ""
        elif name in module.imports:
            start = module.imports[name]
        elif parts and name not in module.classes:
            return ""
        else:
            start = f"{module.name}.{name}"  # also for a name from a star import
        return ".".join([start, *parts])

    def calls(self) -> Iterator[Called]:
        """Yield every call in traced code, and every read of an attribute of ``self``."""
        waiting = body_of(self._info.node)
        while waiting:
            nested: list[ast.AST] = []
            for node in traced(waiting):
                if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                    nested.extend(body_of(node))
                elif isinstance(node, ast.Call):
                    yield from self._called(node.func)
                elif isinstance(node, ast.Attribute) and self._is_me(node.value):
                    yield Called("property", self._owner, node.attr)
            waiting = nested

    def _is_me(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.me and bool(self.me)

    def _called(self, func: ast.expr) -> Iterator[Called]:
        match func:
            case ast.Name() if self._is_me(func):
                yield Called("method", self._owner, "forward")
            case ast.Name(id=name) if name in self._made:
                yield from (Called("method", one, "forward") for one in self._made[name])
            case ast.Attribute(value=owner, attr=attr) if self._is_me(owner):
                yield Called("method", self._owner, attr)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in self._made:
                yield from (Called("method", one, attr) for one in self._made[name])
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr):
                yield Called("inherited", self._owner, attr)
            case ast.Attribute(value=ast.Attribute(value=owner, attr=first), attr=attr) if (
                self._is_me(owner)
            ):
                yield Called("attribute", self._owner, f"{first}.{attr}")
            case ast.Attribute(value=ast.Call() as made, attr=attr):
                yield from (Called("method", one, attr) for one in self.classes(made))
            case ast.Call():
                yield from (Called("method", one, "forward") for one in self.classes(func))
            case _:
                dotted = self._dotted(func)
                if dotted:
                    yield Called("name", "", dotted)
