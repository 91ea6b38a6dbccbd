"""The map of one module, read from the ast that flake8 already built."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from flake8_torchperf.project.answers import (
    ALL,
    FROM,
    HEADED,
    LEVEL,
    NAMED,
    READ_OF,
    SAYS,
    STARS,
    WRITES,
    MethodsAsked,
    NamesAsked,
)
from flake8_torchperf.project.import_roots import module_name, record_import
from flake8_torchperf.project.noted_calls import read_of_attributes
from flake8_torchperf.project.noted_writes import record_writes
from flake8_torchperf.syntax.host_expressions import HostNames
from flake8_torchperf.syntax.record_types import empty_class, made_record
from flake8_torchperf.syntax.traversal import Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, MutableMapping
    from pathlib import Path

    from flake8_torchperf.project.answers import Parts

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Writers: TypeAlias = "dict[str, list[FunctionInfo]]"


@dataclass(frozen=True, eq=False)
class FunctionInfo:
    """A function or method: its definition, the class it stands in, and its module.

    Whoever reads more of one in an outline than its decorators and parameters asks for its body.
    """

    name: str
    qualname: str
    tree: FunctionNode
    owner: ClassInfo | None
    module: ModuleMap

    def ask(self) -> None:
        """Record a query for all of the function."""
        if self.module.parts is not None:
            for part in self.queries:
                self.module.parts.ask(part)

    @property
    def node(self) -> FunctionNode:
        """The definition, with its body."""
        if self.module.parts is not None:  # nearly all that is asked is of the linted module
            self.ask()
        return self.tree

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """The queries for the text of the function.

        A method of a nested class, or in a branch, is a part of the head of a class.
        """
        outer = self.qualname.partition(".<locals>")[0]
        owner, _, method = outer.partition(".")
        return (f"{HEADED}{owner}", f"{NAMED}{outer}") if method else (f"{NAMED}{owner}",)

    @cached_property
    def key(self) -> str:
        """A name that is unique over all modules read in one run."""
        return f"{self.module.name}:{self.qualname}:{self.tree.lineno}"

    @property
    def nodes(self) -> Nodes:
        """The nodes of the function, nested functions included."""
        if self.module.parts is not None:
            self.ask()
        return self.module.nodes(self.tree)

    @property
    def hosts(self) -> HostNames:
        """The names of the function whose values lie on the host wherever they are bound."""
        self.ask()
        return self._hosts

    @cached_property
    def _hosts(self) -> HostNames:
        """See `hosts`."""
        return HostNames(self.node.args, self.nodes)

    @cached_property
    def facts(self) -> dict[str, object]:
        """The facts about the function that were found so far (`project/function_facts.py`)."""
        return {}

    @property
    def decorators(self) -> tuple[str, ...]:
        """The qualified names of the decorators; calls are written without their arguments."""
        if not self.tree.decorator_list:
            return ()
        called = [d.func if isinstance(d, ast.Call) else d for d in self.tree.decorator_list]
        return tuple(filter(None, map(self.module.qualify, called)))


@dataclass(frozen=True, eq=False)
class ClassInfo:
    """A class: its bases by qualified name, its methods, and the declarations in its body.

    In an outline, reading the whole class is a query, and so is what its methods write.
    """

    name: str
    tree: ast.ClassDef
    module: ModuleMap
    bases: tuple[str, ...]
    methods: MutableMapping[str, FunctionInfo] = field(default_factory=dict)
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    held: list[FunctionInfo] = field(default_factory=list)
    _tables: list[Writers] = field(default_factory=list)

    def ask(self, kind: str = NAMED) -> None:
        """Record a query for all of the class, or of another kind; a local one counts whole."""
        if self.module.parts is not None:
            outer, _, inner = self.name.partition(".")
            self.module.parts.ask(f"{NAMED if '<locals>' in inner else kind}{outer}")

    @property
    def node(self) -> ast.ClassDef:
        """The definition, with all of its methods."""
        self.ask()
        return self.tree

    @property
    def functions(self) -> list[FunctionInfo]:
        """All functions in the body, also several of one name."""
        self.ask(HEADED)
        return self.held

    @property
    def writers(self) -> Writers:
        """Attribute -> methods that write it by ``self.x = ...``."""
        return self._noted()[0]

    @property
    def setters(self) -> Writers:
        """Attribute -> methods that write it by a call given its name."""
        return self._noted()[1]

    @property
    def written_by(self) -> dict[str, list[FunctionInfo]]:
        """Attribute -> the methods that write it, in any way."""
        self.ask(WRITES)
        return self._written_by

    @property
    def written(self) -> dict[str, frozenset[str]]:
        """Key of a method -> the attributes that it writes."""
        self.ask(WRITES)
        return self._written

    @cached_property
    def _written_by(self) -> dict[str, list[FunctionInfo]]:
        """See `written_by`."""
        found = {attribute: list(methods) for attribute, methods in self.writers.items()}
        for attribute, methods in self.setters.items():
            found.setdefault(attribute, []).extend(methods)
        return found

    @cached_property
    def _written(self) -> dict[str, frozenset[str]]:
        """See `written`."""
        found: dict[str, set[str]] = {}
        for table in self._noted():
            for attribute, methods in table.items():
                for method in methods:
                    found.setdefault(method.key, set()).add(attribute)
        return {key: frozenset(attributes) for key, attributes in found.items()}

    def read_of(self, attribute: str) -> tuple[str, ...]:
        """Return the attributes that the methods read of an attribute of that name, each once."""
        found = tuple(self._read.get(attribute, ()))
        if "<locals>" in self.name:
            self.ask()
        elif self.module.parts is not None and self.module.parts.listens:
            self.module.parts.tell(f"{READ_OF}{self.name} {attribute}", found)
        return found

    @cached_property
    def _read(self) -> dict[str, dict[str, None]]:
        """See `read_of`."""
        return read_of_attributes([self.module.nodes(method.tree) for method in self.held])

    def _noted(self) -> list[Writers]:
        """Return both tables, made on first use, because they take a walk over every method."""
        self.ask(WRITES)
        if not self._tables:
            self._tables.extend(({}, {}))
            for method in self.held:
                record_writes(method, self.module.nodes(method.tree), *self._tables)
        return self._tables

    @cached_property
    def by_line(self) -> list[FunctionInfo]:
        """All functions of the class and of those in it, by their lines; asks for nothing."""
        first, last = self.tree.lineno, self.tree.end_lineno or self.tree.lineno
        held = (one for one in self.module.defined if first <= one.tree.lineno <= last)
        return sorted(held, key=lambda one: one.tree.lineno)

    def forget(self) -> None:
        """Drop the methods, which refer to their class."""
        self.methods.clear()
        self.held.clear()
        self._tables.clear()
        vars(self).pop("_written_by", None)
        vars(self).pop("by_line", None)

    @cached_property
    def key(self) -> str:
        """A name that is unique over all modules read in one run."""
        return f"{self.module.name}:{self.name}:{self.tree.lineno}"


class Span(NamedTuple):
    """The first line of a definition, decorators included, the line after it, and its name."""

    line: int
    end: int
    name: str
    is_class: bool


@dataclass(frozen=True, slots=True, eq=False)
class ModuleMap:
    """One module: the source lines, and the definitions of the names at its top level.

    The tables by name need not be plain dicts: those of an outline record what is looked up, and
    parse definitions then (see `lazy_index.py`). Compiled code would bypass that if they were
    declared as dicts.
    """

    name: str
    package: str
    held: tuple[str, ...]
    parsed: ast.Module | None
    path: Path | None
    imports: MutableMapping[str, str] = field(default_factory=dict)
    starred: list[str] = field(default_factory=list)
    functions: MutableMapping[str, FunctionInfo] = field(default_factory=dict)
    classes: MutableMapping[str, ClassInfo] = field(default_factory=dict)
    constants: MutableMapping[str, list[ast.expr]] = field(default_factory=dict)
    annotations: MutableMapping[str, ast.expr] = field(default_factory=dict)
    defined: list[FunctionInfo] = field(default_factory=list)
    # The queries that decided the module's name (`import_roots.Place`).
    checked: dict[str, str] = field(default_factory=dict)
    # Records the queries of an outline.
    parts: Parts | None = None
    # The definitions of an outline at module level, in order, and the statements outside them.
    spans: list[Span] = field(default_factory=list)
    outside: ast.Module | None = None
    _nodes: dict[int, Nodes] = field(default_factory=dict)
    _places: list[str] = field(default_factory=list)
    # The answers that `module_facts.once_per_module` keeps.
    facts: dict[Callable[[ModuleMap], object], object] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The path of the module, links resolved; "" for a text without a file."""
        if not self._places:
            self._places.append("" if self.path is None else str(self.path.resolve()))
        return self._places[0]

    @property
    def stars(self) -> list[str]:
        """The modules of the star imports."""
        if self.parts is not None:
            self.parts.ask(STARS)
        return self.starred

    def imported_from(self, packages: Collection[str]) -> dict[str, str]:
        """Return the names that imports bind to something of some packages, with its dotted name.

        Where the module is in one of them, a relative import leads there, too.
        """
        held = self.imports
        own = self.package.partition(".")[0]
        if self.parts is None or own in packages or not isinstance(held, NamesAsked):
            items = held.items()
        else:
            self.parts.ask(f"{FROM}{' '.join(sorted(packages))}")
            items = held.unasked()
        return {name: to for name, to in items if to.partition(".")[0] in packages}

    @property
    def lines(self) -> tuple[str, ...]:
        """The source; reading it from an outline is recorded as a query for the whole module."""
        if self.parts is not None:
            self.parts.ask(ALL)
        return self.held

    @property
    def tree(self) -> ast.Module:
        """The ast of the whole module; parsed again each time if the map is only an outline."""
        return self.parsed or ast.parse("".join(self.lines))

    @property
    def level(self) -> ast.Module | None:
        """The statements of an outline outside its definitions; the ast of any other module."""
        if self.parts is not None:
            self.parts.ask(LEVEL)
        return self.outside if self.parsed is None else self.parsed

    def says(self, word: str) -> bool:
        """True if the source contains a word, even as part of a longer one."""
        if self.parts is not None:
            self.parts.ask(f"{SAYS}{word}")
        return word in "".join(self.held)

    def nodes(self, node: ast.AST) -> Nodes:
        """Return the nodes in a piece of the module, cached."""
        found = self._nodes.get(id(node))
        if found is None:
            found = self._nodes[id(node)] = Nodes((node,))
        return found

    def forget(self) -> None:
        """Drop all references back to the map, so that it is freed with its last user.

        A tree that waits for the garbage collector takes memory until then and makes the collector
        slower.
        """
        for info in self.classes.values():
            info.forget()
        for table in (self.functions, self.classes, self._nodes):
            table.clear()
        self.facts.clear()
        self.defined.clear()

    def qualify(self, node: ast.expr) -> str:
        """Return the dotted name that an expression stands for, imports resolved; "" if none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Subscript):  # Generic[T] as a base class
            return self.qualify(node.value)
        if not isinstance(node, ast.Name):
            return ""
        head = self.imports.get(node.id)
        if head is None:
            head = f"{self.name}.{node.id}" if node.id in self.classes else node.id
        parts.append(head)
        return ".".join(reversed(parts))


def forget(module: ModuleMap | None) -> None:
    """Drop all references back to the map of a module, if there is one."""
    if module is not None:
        module.forget()


def read_module(tree: ast.Module, lines: tuple[str, ...], path: Path | None) -> ModuleMap:
    """Map a module; ``path`` (None for text without a file) decides its dotted name."""
    name, package, checked = module_name(path, "".join(lines))
    module = ModuleMap(name, package, lines, tree, path, checked=checked)
    read_block(tree.body, module)
    return module


def read_block(body: list[ast.stmt], module: ModuleMap) -> None:
    """Add the definitions of statements at a module's top level to its map."""
    for statement in statements_of(body):
        match statement:
            case ast.Import() | ast.ImportFrom():
                bound, stars = record_import(statement, module.package)
                for name, dotted in bound.items():
                    module.imports.setdefault(name, dotted)
                module.starred.extend(stars)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _add_function(statement, module)
            case ast.ClassDef():
                _add_class(statement, module)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        _add_constant(target.id, value, statement, module)
            case ast.AnnAssign(target=ast.Name(id=variable), annotation=annotation, value=given):
                module.annotations[variable] = annotation
                if given is not None:
                    module.constants.setdefault(variable, []).append(given)
            case _:
                pass


def statements_of(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements at a module's top level, with those in its branches and loops."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for block in ("body", "orelse", "finalbody"):
                yield from statements_of(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                yield from statements_of(handler.body)
        else:
            yield statement


def _add_function(node: FunctionNode, module: ModuleMap) -> None:
    info = FunctionInfo(node.name, node.name, node, None, module)
    module.functions[node.name] = info
    module.defined.append(info)


def local_class(node: ast.ClassDef, module: ModuleMap, place: str) -> ClassInfo:
    """Return a class defined inside the function ``place``; the module's tables do not list it."""
    info = _class_info(node, module, f"{place}.<locals>.")
    _read_class_body(node.body, info, module, [])
    return info


def _add_constant(name: str, value: ast.expr, node: ast.stmt, module: ModuleMap) -> None:
    """Add a name assigned at module level, also as a class if it is a named tuple or typed dict."""
    module.constants.setdefault(name, []).append(value)
    record = made_record(value)
    if record is not None:
        made = empty_class(name, node)
        info = ClassInfo(name, made, module, (record.base,), annotations=record.fields)
        module.classes.setdefault(name, info)


def _add_class(node: ast.ClassDef, module: ModuleMap, prefix: str = "") -> None:
    info = _class_info(node, module, prefix)
    module.classes.setdefault(info.name, info)
    _read_class_body(node.body, info, module, module.defined)


def _class_info(node: ast.ClassDef, module: ModuleMap, prefix: str) -> ClassInfo:
    records = [made_record(base) for base in node.bases]
    bases = tuple(
        module.qualify(base) if record is None else record.base
        for base, record in zip(node.bases, records, strict=True)
    )
    parts = None if prefix else module.parts
    methods = {} if parts is None else MethodsAsked(node.name, parts)
    info = ClassInfo(prefix + node.name, node, module, bases, methods)
    for record in records:
        info.annotations.update({} if record is None else record.fields)
    return info


def _read_class_body(
    body: list[ast.stmt], info: ClassInfo, module: ModuleMap, defined: list[FunctionInfo]
) -> None:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                qualname = f"{info.name}.{name}"
                function = FunctionInfo(name, qualname, statement, info, module)
                defined.append(function)
                setter = any(
                    isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter")
                    for d in statement.decorator_list
                )
                if not setter:
                    info.methods[name] = function
                info.held.append(function)
            case ast.AnnAssign(target=ast.Name(id=attr), annotation=annotation):
                info.annotations[attr] = annotation
                if statement.value is not None:
                    info.assigned[attr] = statement.value
            case ast.Assign(targets=[ast.Name(id=attr)], value=value):
                info.assigned[attr] = value
            case ast.ClassDef() if defined is module.defined:
                _add_class(statement, module, f"{info.name}.")
            case ast.If():
                inside = [*statement.body, *statement.orelse]
                _read_class_body(inside, info, module, defined)
            case _:
                pass


def nested_info(node: FunctionNode, outer: str, module: ModuleMap) -> FunctionInfo:
    """Return the info of a function nested in another, whose qualified name is ``outer``."""
    return FunctionInfo(node.name, f"{outer}.<locals>.{node.name}", node, None, module)


def imports_torch(module: ModuleMap) -> bool:
    """True if a module imports torch, or something of it, at its top level."""
    if module.imported_from(("torch",)):
        return True
    return any(name.partition(".")[0] == "torch" for name in module.stars)
