"""torch's sources, read as the linter reads them, with the objects that Python made from them."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch_table.stubs import undispatched

from flake8_torchperf.interpreter.driver.function_analysis import module_constant
from flake8_torchperf.interpreter.engine.analysis import Analysis
from flake8_torchperf.interpreter.inference.parameters import declared_parameters, parameters_of
from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
from flake8_torchperf.judgement.frequency.own_heat import NameEvidence
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.project.files import split_lines
from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap, read_module
from flake8_torchperf.project.resolver import Project

ROOT = Path(torch.__file__).parent


@dataclass(eq=False)
class Module:
    """A module of torch, with the inputs for interpreting its functions."""

    name: str
    path: Path
    map: ModuleMap
    analysis: Analysis

    @cached_property
    def heats(self) -> FunctionHeats:
        """The frequencies of the module's functions."""
        return FunctionHeats(self.analysis, NameEvidence(self.analysis.conventions, (), ()))

    @property
    def file(self) -> str:
        """Its path below torch's folder."""
        return self.path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Callee:
    """A function of torch's sources, and the class of the object that it is a method of."""

    info: FunctionInfo
    module: Module
    owner: type | None = None

    @cached_property
    def parameters(self) -> dict[str, ast.expr | None]:
        """Its parameters in order, with their defaults; the object itself is left out."""
        found = {a.arg: default for a, default in parameters_of(self.info.node.args)}
        if self.me:
            found.pop(self.me)
        return found

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """The parameters that a call can count to, in order."""
        arguments = self.info.node.args
        names = (a.arg for a in (*arguments.posonlyargs, *arguments.args))
        return tuple(name for name in names if name != self.me)

    @cached_property
    def me(self) -> str:
        """The name of its first parameter if it is a method."""
        static = "staticmethod" in self.info.decorators
        arguments = [*self.info.node.args.posonlyargs, *self.info.node.args.args]
        return arguments[0].arg if self.info.owner and arguments and not static else ""

    @cached_property
    def declared(self) -> dict[str, Any]:
        """The values of the parameters, by their declarations and by their use."""
        return declared_parameters(self.info, self.module.analysis)

    @cached_property
    def is_run_by_calling(self) -> bool:
        """True if a call runs the body, unlike that of a generator or a property."""
        lazy = ("property", "contextmanager", "overload", "abstractmethod", "classmethod")
        if any(d.rpartition(".")[2].endswith(lazy) for d in self.info.decorators):
            return False
        yields = (ast.Yield, ast.YieldFrom)
        return not self.info.nodes.of_any(*yields) and isinstance(self.info.node, ast.FunctionDef)


@dataclass(eq=False)
class Sources:
    """Reads each module of torch once."""

    _modules: dict[str, Module | None] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """Return a module of torch that is written in Python; None for any other."""
        if name not in self._modules:
            self._modules[name] = _read(name)
        return self._modules[name]

    def function(self, value: object, owner: type | None = None) -> Callee | None:
        """Return a function of torch by the object that it is; None if it has no source there."""
        if not callable(value):
            return None
        plain = undispatched(inspect.unwrap(undispatched(value)))
        if not inspect.isfunction(plain) or plain.__module__.partition(".")[0] != "torch":
            return None
        module = self.module(plain.__module__)
        holder, _, name = plain.__qualname__.rpartition(".")
        if module is None:
            return None
        if not holder:
            info = module.map.functions.get(name)
        else:
            held = module.map.classes.get(holder)
            info = None if held is None else held.methods.get(name)
        line = plain.__code__.co_firstlineno
        if info is None or not _first_line(info.node) <= line <= info.node.lineno:
            return None
        return Callee(info, module, owner)

    def method(self, owner: type, name: str, after: type | None = None) -> Callee | None:
        """Return the method of an object of this class, or of its ``super()`` in ``after``."""
        order = owner.__mro__
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else ()
        for base in order:
            if name in vars(base):
                return self.function(vars(base)[name], owner)
        return None

    def class_info(self, cls: type) -> ClassInfo | None:
        """Return the source of a class."""
        module = self.module(cls.__module__)
        return None if module is None else module.map.classes.get(cls.__qualname__)

    def class_of(self, info: FunctionInfo, owner: type | None) -> type | None:
        """Return the class, among those of an object, in which a method is written."""
        if owner is None or info.owner is None:
            return None
        written = (info.module.name, info.owner.name)
        found = (b for b in owner.__mro__ if (b.__module__, b.__qualname__) == written)
        return next(found, None)


def _read(name: str) -> Module | None:
    loaded = sys.modules.get(name)
    file = getattr(loaded, "__file__", None)
    if not file or not file.endswith(".py") or not Path(file).is_relative_to(ROOT):
        return None
    path = Path(file)
    text = path.read_text(encoding="utf-8")
    found = read_module(ast.parse(text), split_lines(text), path)
    return Module(name, path, found, Analysis(load(), Project(found), module_constant))


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def named(node: ast.expr, module: Module) -> object | None:
    """Return the object that a dotted name stands for in a module of torch, else None."""
    if isinstance(node, ast.Attribute):
        owner = named(node.value, module)
        return None if owner is None else getattr(owner, node.attr, None)
    if isinstance(node, ast.Name):
        found: object = vars(sys.modules[module.name]).get(node.id)
        return found
    return None
