"""Which functions of a module ``torch.compile`` compiles or a ``torch.func`` transform runs.

Enters a module map; leaves `CompiledCode`: functions by identity, each with the words that say how
it comes to be compiled, and the calls that compile or transform. Works on syntax: a function that
is handed over in a way that syntax does not show stays unknown. A module that speaks of neither
costs one look at its text. Must not know values, sites or rules.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flake8_torchperf.project.scopes import (
    PARTIAL,
    TRANSFORMS,
    Callable_,
    Resolver,
    Scope,
    Scopes,
    read_scopes,
)
from flake8_torchperf.syntax.compile_guards import WORDS, guarded, leaves
from flake8_torchperf.syntax.traversal import SCOPES, children, walk
from flake8_torchperf.torch_compile.compile_calls import Settings, Ways, stated
from flake8_torchperf.torch_compile.recompilation import Mark, find_marks
from flake8_torchperf.torch_compile.vmap import BatchedNames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

# Decorators after which the compiler does not look into a function.
NOT_TRACED = frozenset((
    "disable", "_disable_dynamo", "allow_in_graph", "nonstrict_trace", "assume_constant_result",
    "substitute_in_graph", "custom_op", "triton_op", "disallow_in_graph", "leaf_function",
    "register_fake", "script", "jit", "autotune", "heuristics", "kernel", "register_kernel",
    "contextmanager", "asynccontextmanager", "skip",
))  # fmt: skip
# Switches of torch._dynamo.config with which a cause breaks no graph, as words of a module's text.
SWITCHES = frozenset((
    "capture_scalar_outputs", "capture_dynamic_output_shape_ops", "reorderable_logging_functions",
    "ignore_logging_functions", "ignore_logger_methods", "trace_autograd_ops", "allow_rnn",
    "allow_unspec_int_on_nn_module",
))  # fmt: skip
_SPEAKS = re.compile(
    r"torch\.compile\b|import[^\n#]*\bcompile\b|_dynamo(?:\.optimize| import)|(?<!\bre)\.compile\("
    r"|\bvmap\b|functorch|torch\.func\b"
)
# What code must name: torch._dynamo alone compiles nothing, torch._dynamo.optimize does.
_WORDS = frozenset(("compile", "optimize", "vmap", "functorch"))


@dataclass(frozen=True, slots=True)
class Compilation:
    """How a function comes to be compiled.

    ``words`` end a sentence: "of helper, called by the compiled step".
    """

    words: str
    settings: Settings
    name: str


@dataclass(frozen=True, slots=True)
class Wrap:
    """A call that compiles or transforms: which, with what settings, and what it is given."""

    operation: str
    settings: Settings
    targets: tuple[Callable_, ...]
    over_compiled: bool = False


@dataclass(slots=True, eq=False)
class CompiledCode:
    """What is known of one module; functions and calls are held by the identity of their nodes.

    ``advice`` holds the warnings that stand alone in a branch; ``rows`` the places where a name
    stands for a whole batch, because ``vmap`` runs the function; ``entries`` the functions that are
    handed to the compiler themselves.
    """

    functions: dict[int, Compilation] = field(default_factory=dict)
    transformed: dict[int, str] = field(default_factory=dict)
    wraps: dict[int, Wrap] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()
    marks: dict[int, Mark] = field(default_factory=dict)
    advice: set[int] = field(default_factory=set)
    rows: set[int] = field(default_factory=set)
    entries: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.functions or self.transformed or self.marks)

    def concerns(self, node: ast.AST) -> bool:
        """Is this a compiled or transformed function, or a marked place?"""
        key = id(node)
        return key in self.functions or key in self.transformed or key in self.marks

    def concerns_any(self, nodes: Nodes) -> bool:
        """The same of any of several nodes."""
        return any(self.concerns(node) for group in nodes.by_type().values() for node in group)


def find_compiled(module: ModuleMap, *, assume: bool = False) -> CompiledCode | None:
    """The compiled and transformed functions of a module; None where it has none.

    ``assume`` counts every ``forward`` of a class with a base as compiled.
    """
    text = "".join(module.lines)
    if not assume and not (_speaks(module.lines, text) and _names(module)):
        return None
    scopes = read_scopes(module)
    search = Search(scopes)
    search.decorators()
    search.calls()
    if assume:
        search.assume()
    search.callees()
    search.batched()
    found = search.found
    found.switches = frozenset(word for word in SWITCHES if word in text)
    found.marks = find_marks(search)
    return found if found else None


def _speaks(lines: Iterable[str], text: str) -> bool:
    """Is there a line in the text that may compile or transform something?"""
    said = [word for word in WORDS if word in text]
    return any(_SPEAKS.search(line) for line in lines if any(word in line for word in said))


def _names(module: ModuleMap) -> bool:
    """Do the words stand in code, not in comments and docstrings alone?"""
    nodes = module.nodes(module.tree)
    return (
        any(name.id in _WORDS for name in nodes.of(ast.Name))
        or any(_is_word(part) for part in nodes.of(ast.Attribute))
        or any(_imports(f"{s.module}.{a.name}") for s in nodes.of(ast.ImportFrom) for a in s.names)
        or any(_imports(alias.name) for s in nodes.of(ast.Import) for alias in s.names)
    )


def _is_word(part: ast.Attribute) -> bool:
    owner = part.value.id if isinstance(part.value, ast.Name) else ""
    return (part.attr in _WORDS and owner != "re") or (part.attr == "func" and owner == "torch")


def _imports(name: str) -> bool:
    return name.startswith("torch.func") or not IMPORTED.isdisjoint(name.split("."))


IMPORTED = _WORDS | {"_dynamo"}


class Search:
    """Collects into ``found``; each method adds what one way of compiling shows."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes
        self._module = scopes.module
        self.resolver = Resolver(scopes)
        self.root = scopes.root
        self.found = CompiledCode()
        self._entries: list[Callable_] = []
        self._mapped = BatchedNames(scopes, self.resolver)
        self.ways = Ways(scopes)

    def decorators(self) -> None:
        """``@torch.compile``, with options or without, and ``@torch.vmap``."""
        for node, scope in self.scopes.functions:
            if isinstance(node, ast.Lambda) or scope.outer is None:
                continue
            for decorator in node.decorator_list:
                settings = self.ways.settings(decorator, scope.outer)
                if settings is not None:
                    self._add(node, settings, "compiled")
                transform = self._transform_decorator(decorator, scope.outer)
                if transform:
                    self._add_transformed(node, transform)
                if transform == "vmap":
                    self._mapped.decorated(node, _in_dims(decorator))

    def calls(self) -> None:
        """``torch.compile(f)``, ``model.compile()``, ``vmap(f)``."""
        for call, scope in self.scopes.calls:
            wrapped = self.ways.wrapped(call, scope)
            if wrapped is not None:
                self._note_wrap(call, scope, *wrapped)
                continue
            settings = self._module_compile(call, scope)
            if settings is not None:
                self._note_module_compile(call, scope, settings)
        # Whether a transform is over compiled code is known when all compiled code is.
        for call, scope in self.scopes.calls:
            transform = TRANSFORMS.get(self._module.qualify(call.func))
            if transform and call.args:
                targets = self.resolver.functions(call.args[0], scope)
                for target in targets:
                    self._add_transformed(target, transform)
                if transform == "vmap":
                    self._mapped.start(call, scope, targets)
                over = self.is_compiled(call.args[0], scope)
                settings = Settings(line=call.lineno)
                self.found.wraps[id(call)] = Wrap(transform, settings, tuple(targets), over)

    def assume(self) -> None:
        """``forward`` of every class that has a base: what --torchperf-assume-compiled asks for."""
        for klass in self._module.classes.values():
            method = klass.methods.get("forward")
            function = any(base.rpartition(".")[2] == "Function" for base in klass.bases)
            if method is not None and klass.bases and not function:
                self._add(method.node, Settings(), "assumed to be compiled")

    def _note_wrap(self, call: ast.Call, scope: Scope, given: ast.expr, settings: Settings) -> None:
        targets = self.resolver.functions(given, scope)
        for target in targets:
            self._add(target, settings, "compiled")
        if not self.ways.wraps(call.func, scope):
            self.found.wraps[id(call)] = Wrap("compile", settings, tuple(targets))

    def _module_compile(self, call: ast.Call, scope: Scope) -> Settings | None:
        """``model.compile(...)`` of a module that this file defines."""
        match call.func:
            case ast.Attribute(value=receiver, attr="compile"):
                owner = self.resolver.instance(receiver, scope)
                if owner is None or "compile" in owner.methods:
                    return None
                return stated(call, Settings(line=call.lineno), scope)
        return None

    def _note_module_compile(self, call: ast.Call, scope: Scope, settings: Settings) -> None:
        assert isinstance(call.func, ast.Attribute)
        owner = self.resolver.instance(call.func.value, scope)
        targets = self.resolver.member(owner, "forward") if owner is not None else []
        for target in targets:
            self._add(target, settings, "compiled")
        if targets:
            self.found.wraps[id(call)] = Wrap("compile", settings, tuple(targets))

    def settings_of(self, node: ast.expr, scope: Scope) -> Settings | None:
        """The settings with which the value of ``node`` was compiled."""
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
        """Is the value of ``node`` the compiled function itself, by decorator or by wrapping?"""
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

    def _add(self, node: Callable_, settings: Settings, how: str) -> None:
        if id(node) in self.found.functions or not_traced(node, self._module):
            return
        name = "a lambda" if isinstance(node, ast.Lambda) else node.name
        self.found.functions[id(node)] = Compilation(_words(name, how), settings, name)
        self._entries.append(node)
        if how == "compiled":
            self.found.entries.add(id(node))

    def callees(self) -> None:
        """What compiled functions call in this module is compiled with them."""
        waiting = list(self._entries)
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
        """What is given a batched value by a function that ``vmap`` runs is run by it too."""
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


# Methods and functions that tell of misuse.
_WARNING = frozenset(("warn", "warning", "error", "critical", "exception", "warning_once"))


def _advice(node: ast.If) -> Iterator[int]:
    """The warnings that tell of misuse: all that a branch does, or told of a wrong type.

    Which way a branch on a type goes is known when tracing: the right type never comes there.
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
    """``x.dtype == torch.uint8``, ``isinstance(x, list)``, alone or beside other questions."""
    return any(
        (isinstance(inner, ast.Attribute) and inner.attr == "dtype")
        or (isinstance(inner, ast.Name) and inner.id == "isinstance")
        for inner in ast.walk(test)
    )


def _words(name: str, how: str) -> str:
    return f"of {name}, {how}" if how != "compiled" else f"of the compiled {name}"


def not_traced(node: Callable_, module: ModuleMap) -> bool:
    """Does a decorator keep the compiler out of this function?"""
    if isinstance(node, ast.Lambda):
        return False
    for decorator in node.decorator_list:
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        if module.qualify(inner).rpartition(".")[2] in NOT_TRACED:
            return True
    return False


def body_of(node: Callable_) -> list[ast.AST]:
    """The statements of a function, the expression of a lambda."""
    return [node.body] if isinstance(node, ast.Lambda) else list(node.body)


def traced(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node that the compiler meets: not what stands under a guard against it.

    Nested functions and lambdas are met, their bodies are not.
    """
    first = list(nodes)
    answer = _answers(first).get
    waiting = _met(first, answer)
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, (ast.If, ast.IfExp)):
            side = guarded(node.test, answer)
            if side is not None:
                kept = node.body if side else node.orelse
                waiting.extend(reversed(_met(kept, answer) if isinstance(kept, list) else [kept]))
                continue
        if isinstance(node, (ast.Raise, ast.ExceptHandler)):
            continue
        waiting.extend(reversed(_below(node, answer)))


def _below(node: ast.AST, answer: Callable[[str], bool | None]) -> list[ast.AST]:
    """The nodes right below one, without what its blocks hold that is not met."""
    found = children(node)
    for block in (getattr(node, part, None) for part in BLOCKS):
        if isinstance(block, list):
            left = set(map(id, block[len(_met(block, answer)) :]))
            found = [one for one in found if id(one) not in left] if left else found
    return found


BLOCKS = ("body", "orelse", "finalbody")


def _met(block: list[Any], answer: Callable[[str], bool | None]) -> list[ast.AST]:
    """The statements of a block without those below ``if is_compiling(): return``."""
    for place, statement in enumerate(block):
        if isinstance(statement, ast.If) and leaves(statement, answer):
            return block[: place + 1]
    return block


def _answers(nodes: list[ast.AST]) -> dict[str, bool]:
    """``c = is_compiling()``: of names that are bound but once, what they are in compiled code."""
    bound: set[str] = set()
    found: dict[str, bool] = {}
    for node in walk(nodes):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                side = guarded(value)
                if side is not None:
                    found[name] = side
            case ast.Name(id=name, ctx=ast.Store()):
                if name in bound:
                    found.pop(name, None)
                bound.add(name)
    return found
