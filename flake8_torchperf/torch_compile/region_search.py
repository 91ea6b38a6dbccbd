"""The search for functions that a module compiles or transforms."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.program.outlines.outlining import Callable_
from flake8_torchperf.torch_compile.callables import PARTIAL, TRANSFORMS, Resolver
from flake8_torchperf.torch_compile.compile_calls import CompileSettings, Ways, stated
from flake8_torchperf.torch_compile.compiled_code import Compilation, CompiledCode, Wrap
from flake8_torchperf.torch_compile.scopes import Scope, Scopes
from flake8_torchperf.torch_compile.traced_nodes import body_of, is_entry, not_traced, traced
from flake8_torchperf.torch_compile.vmap import BatchedNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.project.module_index import FunctionInfo


class RegionSearch:
    """Collects results in ``found``; each method covers one way of compiling."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self._module = scopes.module
        self.resolver = Resolver(scopes)
        self.root = scopes.root
        self.found = CompiledCode()
        self._entries: list[Callable_] = []
        self._mapped = BatchedNames(scopes, self.resolver)
        self.ways = Ways(scopes)
        # True if anything is compiled or transformed, even if the function is not known.
        self.wraps_any = False

    def decorators(self) -> None:
        """Find ``@torch.compile``, with options or without, and ``@torch.vmap``."""
        for node, scope in self.scopes.functions:
            if isinstance(node, ast.Lambda) or scope.outer is None:
                continue
            for decorator in node.decorator_list:
                settings = self.ways.settings(decorator, scope.outer)
                if settings is not None:
                    self.wraps_any = True
                    self._add(node, settings, "compiled")
                transform = self._transform_decorator(decorator, scope.outer)
                if transform:
                    self.wraps_any = True
                    self._add_transformed(node, transform)
                if transform == "vmap":
                    self._mapped.decorated(node, _in_dims(decorator))

    def calls(self) -> None:
        """Find ``torch.compile(f)``, ``model.compile()`` and ``vmap(f)``."""
        for call, scope in self.scopes.calls:
            wrapped = self.ways.wrapped(call, scope)
            if wrapped is not None:
                self.wraps_any = True
                self._note_wrap(call, scope, *wrapped)
                continue
            settings = self._module_compile(call, scope)
            if settings is not None:
                self.wraps_any = True
                self._note_module_compile(call, scope, settings)
        # All compiled code must be known to decide if a transform is over compiled code.
        for call, scope in self.scopes.calls:
            transform = TRANSFORMS.get(self._module.qualify(call.func))
            if transform:
                self.wraps_any = True
            if transform and call.args:
                targets = self.resolver.functions(call.args[0], scope)
                for target in targets:
                    self._add_transformed(target, transform)
                if transform == "vmap":
                    self._mapped.start(call, scope, targets)
                over = self.is_compiled(call.args[0], scope)
                settings = CompileSettings(line=call.lineno)
                self.found.wraps[id(call)] = Wrap(transform, settings, tuple(targets), over)

    def assume(self) -> None:
        """Add ``forward`` of every class with a base, for --torchperf-assume-compiled."""
        for klass in self._module.classes.values():
            method = klass.methods.get("forward")
            if method is not None and is_entry(method):
                self._add(method.node, CompileSettings(), "assumed to be compiled")

    def outside(self, found: Callable[[FunctionInfo], Compilation | None]) -> None:
        """Add the functions that compiled code of other modules runs, as ``found`` tells."""
        for info in self._module.defined:
            known = id(info.node) in self.found.functions
            compilation = None if known else found(info)
            if compilation is not None:
                self.found.functions[id(info.node)] = compilation
                self._entries.append(info.node)
                if compilation.is_entry:
                    self.found.entries.add(id(info.node))

    def _note_wrap(
        self, call: ast.Call, scope: Scope, given: ast.expr, settings: CompileSettings
    ) -> None:
        targets = self.resolver.functions(given, scope)
        for target in targets:
            self._add(target, settings, "compiled")
        if not self.ways.wraps(call.func, scope):
            self.found.wraps[id(call)] = Wrap("compile", settings, tuple(targets))

    def _module_compile(self, call: ast.Call, scope: Scope) -> CompileSettings | None:
        """Return the settings of ``model.compile(...)`` of a module that this file defines."""
        match call.func:
            case ast.Attribute(value=receiver, attr="compile"):
                owners = self.resolver.instances(receiver, scope)
                if not owners or any("compile" in owner.methods for owner in owners):
                    return None
                return stated(call, CompileSettings(line=call.lineno), scope)
        return None

    def _note_module_compile(self, call: ast.Call, scope: Scope, settings: CompileSettings) -> None:
        assert isinstance(call.func, ast.Attribute)
        owners = self.resolver.instances(call.func.value, scope)
        targets = [one for owner in owners for one in self.resolver.member(owner, "forward")]
        for target in targets:
            self._add(target, settings, "compiled")
        if targets:
            self.found.wraps[id(call)] = Wrap("compile", settings, tuple(targets))

    def settings_of(self, node: ast.expr, scope: Scope) -> CompileSettings | None:
        """Return the settings with which the value of ``node`` was compiled."""
        match node:
            case ast.Call():
                wrapped = self.ways.wrapped(node, scope)
                return wrapped[1] if wrapped is not None else None
            case ast.Name(id=name):
                bound = scope.lookup(name)
                if bound is None or len(bound[0]) != 1:
                    return None
                value, place = bound[0][0], bound[1]
                if isinstance(value, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    return self.ways.first_settings(value.decorator_list, place)
                return self.settings_of(value, place) if isinstance(value, ast.Call) else None
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == scope.me:
                if scope.owner is not None:
                    assigned = self.scopes.attribute(scope.owner, attr)
                    if len(assigned) == 1 and isinstance(assigned[0][0], ast.Call):
                        return self.settings_of(*assigned[0])
        return None

    def is_compiled(self, node: ast.expr, scope: Scope) -> bool:
        """True if ``node`` is itself a compiled function, by decorator or by wrapping."""
        return self.settings_of(node, scope) is not None

    def _transform_decorator(self, node: ast.expr, scope: Scope) -> str:
        if isinstance(node, ast.Call):
            if self._module.qualify(node.func) in PARTIAL and node.args:
                return self._transform_decorator(node.args[0], scope)
            return ""
        return TRANSFORMS.get(self._module.qualify(node), "")

    def _add_transformed(self, node: Callable_, transform: str) -> None:
        if transform == "vmap" or id(node) not in self.found.transformed:
            self.found.transformed[id(node)] = transform

    def _add(self, node: Callable_, settings: CompileSettings, how: str) -> None:
        if id(node) in self.found.functions or not_traced(node, self._module):
            return
        name = "a lambda" if isinstance(node, ast.Lambda) else node.name
        self.found.functions[id(node)] = Compilation(_words(name, how), settings, name)
        self._entries.append(node)
        if how == "compiled":
            self.found.entries.add(id(node))

    def callees(self) -> None:
        """Add the functions that compiled functions call in this module."""
        waiting, self._entries = self._entries, []
        while waiting:
            caller = waiting.pop(0)
            place = self.scopes.of_function.get(id(caller))
            if place is None:
                continue
            how = self.found.functions[id(caller)]
            for inner in traced(body_of(caller)):
                if isinstance(inner, ast.If):
                    self.found.advice.update(_advice(inner))
                for callee in self._run_by(inner, place):
                    if id(callee) in self.found.functions or not_traced(callee, self._module):
                        continue
                    name = "a lambda" if isinstance(callee, ast.Lambda) else callee.name
                    words = _words(name, f"called by the compiled {how.name}")
                    self.found.functions[id(callee)] = Compilation(words, how.settings, how.name)
                    waiting.append(callee)

    def batched(self) -> None:
        """Add the functions that are passed a batched value in code that ``vmap`` runs."""
        for node in self._mapped.finish(lambda f: not_traced(f, self._module)):
            self._add_transformed(node, "vmap")
        self.found.rows = self._mapped.places

    def _run_by(self, node: ast.AST, scope: Scope) -> Iterable[Callable_]:
        match node:
            case ast.FunctionDef() | ast.Lambda():
                return [node]
            case ast.Call():
                return [
                    f
                    for f in self.resolver.functions(node.func, scope)
                    if not (isinstance(f, ast.FunctionDef) and f.name == "__init__")
                ]
        return []


def _in_dims(decorator: ast.expr) -> ast.expr | None:
    given = decorator.keywords if isinstance(decorator, ast.Call) else []
    return next((k.value for k in given if k.arg == "in_dims"), None)


# Methods and functions that warn of misuse.
_WARNING = frozenset(("warn", "warning", "error", "critical", "exception", "warning_once"))


def _advice(node: ast.If) -> Iterator[int]:
    """Yield the warnings about misuse: a branch holds nothing else, or its test is of a type.

    The outcome of a type test is known when tracing, so with the right type the warning is not
    traced.
    """
    for block in (node.body, node.orelse):
        told = [s.value for s in block if isinstance(s, ast.Expr) and _warns(s.value)]
        if len(told) == len(block) or _asks_type(node.test):
            yield from map(id, told)


def _warns(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _WARNING
    return False


def _asks_type(test: ast.expr) -> bool:
    """True for ``x.dtype == torch.uint8`` and ``isinstance(x, list)``, also as part of a test."""
    return any(
        (isinstance(inner, ast.Attribute) and inner.attr == "dtype")
        or (isinstance(inner, ast.Name) and inner.id == "isinstance")
        for inner in ast.walk(test)
    )


def _words(name: str, how: str) -> str:
    return f"of {name}, {how}" if how != "compiled" else f"of the compiled {name}"
