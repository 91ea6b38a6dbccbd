"""The map of an imported module: functions and classes are parsed on demand.

Most definitions of an imported module are never used, and a tree that stays in memory also costs
time in every full garbage collection.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from flake8_torchperf.project.answers import (
    ALL,
    HEADED,
    IMPORTS,
    Bindings,
    NamesAsked,
    Parts,
    Readers,
    noting,
)
from flake8_torchperf.project.import_roots import module_name
from flake8_torchperf.project.module_index import (
    ModuleMap,
    Span,
    read_block,
    read_module,
    statements_of,
)
from flake8_torchperf.syntax.docstrings import raw_docstring
from flake8_torchperf.syntax.parsing import quietly_parsed

if TYPE_CHECKING:
    from pathlib import Path

    from flake8_torchperf.project.answers import AsParsed
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo

Info = TypeVar("Info")

# A line that starts a function or class at module level. The pattern begins with the newline before
# it, because a search for the start of a line is slow.
_DEFINES = r"(?P<decorator>@)|(?:async[ \t]+)?def[ \t]+(?P<function>\w+)|class[ \t]+(?P<klass>\w+)"
_HEADS = re.compile(rf"\n(?:{_DEFINES})")
# The start of a definition or of any other statement. A line that starts with a closing bracket or
# a comment continues the lines above it, and so does a line after a backslash.
_STARTS = re.compile(rf"\n(?:{_DEFINES}|(?<!\\\n)[^\s#)\]}}])")


class _UnclearError(Exception):
    """The module level of a text can't be cut by patterns of lines."""


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function or class at module level: its text, decorators included, and its first line."""

    name: str
    is_class: bool
    text: str
    line: int

    @property
    def end(self) -> int:
        """The line after the definition."""
        return self.line + self.text.count("\n") + 1


class _Deferred(dict[str, Info]):
    """Definitions by name, as in any module map; each is parsed when it is first looked up."""

    def __init__(self, module: list[ModuleMap], parts: Parts) -> None:
        super().__init__()
        self._module = module
        self._parts = parts
        self._waiting: dict[str, _Definition] = {}
        # The bytes of text that were parsed so far.
        self.read = 0
        # The parts that were queried while a definition was read, which resolves bases of classes.
        self._heard: dict[str, dict[str, None]] = {}

    def defer(self, definition: _Definition) -> None:
        """Add a definition; a later function replaces an earlier one, a later class does not."""
        if not definition.is_class or definition.name not in self._waiting:
            self._waiting[definition.name] = definition

    def clear(self) -> None:
        """Drop all definitions, and the module that they are read into."""
        super().clear()
        self._waiting.clear()
        self._module.clear()

    def heard_before(self, heard: dict[str, None]) -> None:
        """Record queries again when a class is looked up that the code between defined."""
        if heard:
            self._heard.update(dict.fromkeys(dict.keys(self), heard))

    def __contains__(self, name: object) -> bool:
        waiting = self._waiting.pop(str(name), None) if self._waiting else None
        if waiting is not None:
            self._read(waiting)
            return super().__contains__(name)
        self._parts.ask(f"{HEADED}{name}")
        if name in self._heard:
            for part in self._heard[str(name)]:
                self._parts.ask(part)
        return super().__contains__(name)

    def _read(self, waiting: _Definition) -> None:
        """Read a definition, and record the query for it."""
        body = _parsed(waiting)
        self.read += len(waiting.text)
        if body:
            self._parts.offer(waiting.text, body, waiting.line - 1)
        self._parts.ask(f"{HEADED}{waiting.name}")
        self._parts.withdraw(waiting.text)
        with self._parts.heard() as heard:
            read_block(body, self._module[0])
        self._heard[waiting.name] = heard

    def __getitem__(self, name: str) -> Info:
        if name in self:
            return super().__getitem__(name)
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the definition of a name, as `dict.get` does."""
        return super().get(name, default) if name in self else default


def text_read(module: ModuleMap) -> int:
    """Return the bytes of a module's definitions that were parsed; 0 for one that is no outline."""
    tables = (module.functions, module.classes)
    return sum(one.read for one in tables if isinstance(one, _Deferred))


def _parsed(definition: _Definition) -> list[ast.stmt]:
    try:
        return quietly_parsed("\n" * (definition.line - 1) + definition.text).body
    except (SyntaxError, ValueError, RecursionError):
        return []  # flake8 reports the error when it lints that file


def read_outline(text: str, path: Path) -> ModuleMap:
    """Map an imported module. Raises SyntaxError or ValueError if it is not Python."""
    try:
        rest, definitions = _cut(text)
        tree = quietly_parsed(rest)
    except (_UnclearError, SyntaxError):
        return read_module(quietly_parsed(text), (text,), path)
    holder: list[ModuleMap] = []
    parts = Parts(str(path), text, PART_READERS, tree.body)
    functions: _Deferred[FunctionInfo] = _Deferred(holder, parts)
    classes: _Deferred[ClassInfo] = _Deferred(holder, parts)
    for definition in definitions:
        (classes if definition.is_class else functions).defer(definition)
    name, package, checked = module_name(path, text)
    module = ModuleMap(
        name,
        package,
        (text,),
        None,
        path,
        imports=NamesAsked(parts, IMPORTS),
        functions=functions,
        classes=classes,
        constants=NamesAsked(parts, ALL),
        annotations=NamesAsked(parts, ALL),
        checked=checked,
        parts=parts,
        outside=tree,
        spans=[Span(one.line, one.end, one.name, one.is_class) for one in definitions],
    )
    holder.append(module)
    # A map is made for all who read it: what this asks is recorded when a class is looked up.
    with noting(None), parts.heard() as heard:
        read_block(tree.body, module)
    classes.heard_before(heard)
    return module


def parts_of(text: str) -> Parts | None:
    """Return the parts of a module that may be queried; None if it can only be queried whole."""
    try:
        rest, _ = _cut(text)
        outside = quietly_parsed(rest).body
    except (_UnclearError, SyntaxError, ValueError):
        return None
    return Parts("", text, PART_READERS, outside)


def cut(text: str) -> tuple[str, list[tuple[str, str, int]]]:
    """Return a module's text without functions and classes, and these.

    Each has its name, its text, and its first line.
    """
    rest, definitions = _cut(text)
    return rest, [(one.name, one.text, one.line) for one in definitions]


def bindings(rest: str, body: list[ast.stmt]) -> Bindings:
    """Return what a module's text without functions and classes binds, as `read_block` reads it.

    ``body`` holds the statements of that text.
    """
    lines = rest.split("\n")
    names: dict[str, list[str]] = {}
    imports: list[str] = []
    stars: list[str] = []
    heads: dict[str, list[str]] = {}
    level = ["\n".join(lines[one.lineno - 1 : one.end_lineno]) for one in body if _runs(one)]
    for one in statements_of(body):
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            source = f"{one.level} {one.module}" if isinstance(one, ast.ImportFrom) else ""
            for alias in one.names:
                if alias.name == "*":
                    stars.append(source)
                    continue
                bound = alias.asname or alias.name
                bound = bound if source else bound.partition(".")[0]
                head = (getattr(one, "module", None) or alias.name).partition(".")[0]
                heads.setdefault(head, []).append(bound)
                said = f"import {source} {alias.name} as {alias.asname}"
                names.setdefault(bound, []).append(said)
                imports.append(said)
            continue
        above = (each.lineno for each in getattr(one, "decorator_list", ()))
        text = "\n".join(lines[min((one.lineno, *above)) - 1 : one.end_lineno])
        for name in _bound_by(one):
            names.setdefault(name, []).append(text)
    return Bindings(names, imports, stars, heads, level)


def _runs(one: ast.stmt) -> bool:
    """True for a statement that is no import and no docstring."""
    if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
        return False
    return not isinstance(one, (ast.Import, ast.ImportFrom))


def _bound_by(one: ast.stmt) -> list[str]:
    """Return the names that a statement other than an import binds."""
    match one:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def split(text: str, known: AsParsed | None = None) -> tuple[str, list[tuple[str, str, int]]]:
    """Return a definition's text without bodies, and the methods of a class.

    Each method has its name, its text, and the number of lines before it. The text of a class holds
    no bodies of its methods; but a method in a branch or of a nested class stays where it is, and
    so does a function with its body on a line of its head. ``known`` holds the definition where
    somebody has parsed it.
    """
    try:
        [node], above = (quietly_parsed(text).body, 0) if known is None else known
    except (SyntaxError, ValueError, RecursionError):
        return text, []
    lines = [f"{line}\n" for line in text.split("\n")]
    head: list[str] = []
    methods: list[tuple[str, str, int]] = []
    done = 0
    for one in node.body if isinstance(node, ast.ClassDef) else (node,):
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        body, before = one.body[0].lineno - 1 - above, one.body[0].col_offset
        if lines[body][:before].strip():
            continue
        start = min((one.lineno, *(each.lineno for each in one.decorator_list))) - 1 - above
        end = (one.end_lineno or one.lineno) - above
        if one is not node:
            methods.append((one.name, "".join(lines[start:end]), start))
        head += lines[done:body]
        done = end
    return "".join((*head, *lines[done:])), methods


def bare(text: str) -> str:
    """Return the text of a function or method without its docstring, if that has its own lines."""
    if not text[:1].isspace():
        above, source = 0, text
    else:
        above, source = 1, f"if True:\n{text}"
    try:
        [node] = quietly_parsed(source).body
    except (SyntaxError, ValueError, RecursionError):
        return text
    if isinstance(node, ast.If):
        node = node.body[0]
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not raw_docstring(node):
        return text
    lines = text.split("\n")
    said = node.body[0]
    first, last = said.lineno - 1 - above, (said.end_lineno or said.lineno) - above
    behind = lines[last - 1].encode("utf-8", "surrogatepass")[said.end_col_offset :]
    alone = not lines[first][: said.col_offset].strip() and not behind.strip()
    return "\n".join((*lines[:first], *lines[last:])) if alone else text


def writes(text: str) -> list[str]:
    """Return the attributes that the methods of classes in a text write, each with these methods.

    A method is told by its place among those of its class: several may have one name.
    """
    try:
        module = read_module(quietly_parsed(text), (text,), None)
    except (SyntaxError, ValueError, RecursionError):
        return [text]
    return [
        f"{klass.name} {attribute} {' '.join(str(klass.functions.index(one)) for one in methods)}"
        for klass in module.classes.values()
        for table in (klass.writers, klass.setters)
        for attribute, methods in (("", []), *table.items())
    ]


def _cut(text: str) -> tuple[str, list[_Definition]]:
    """Return the text with its definitions blanked line for line, and the definitions."""
    whole = f"\n{text}"
    rest: list[str] = []
    found: list[_Definition] = []
    line, done = 0, 0  # the lines and the characters before the rest
    quotes = _Quotes(whole)
    head = _HEADS.search(whole)
    while head is not None:
        if not quotes.closed(head.start()):
            head = _HEADS.search(whole, head.end())
            continue
        rest.append(whole[done : head.start()])
        line += rest[-1].count("\n")
        name, is_class, end = _definition(whole, head, quotes)
        piece = whole[head.start() + 1 : end]
        found.append(_Definition(name, is_class, piece, line + 1))
        rest.append("\n" * (piece.count("\n") + 1))
        line += piece.count("\n") + 1
        done = end
        head = _HEADS.search(whole, end)
    if not quotes.closed(len(whole)):
        raise _UnclearError
    rest.append(whole[done:])
    return "".join(rest)[1:], found


def _definition(text: str, head: re.Match[str], quotes: _Quotes) -> tuple[str, bool, int]:
    """Return the name of a definition, True for a class, and the end of its text.

    ``head`` may be a decorator of the definition.
    """
    after = head
    while True:
        start = _STARTS.search(text, after.end())
        end = len(text) if start is None else start.start()
        closed = quotes.closed(end)
        if closed and not head["decorator"]:
            name = head["function"] or head["klass"]
            if not name:
                raise _UnclearError
            return name, head["klass"] is not None, end
        if start is None:
            raise _UnclearError
        if closed:
            head = start  # the decorated definition, or a further decorator
        after = start


PART_READERS = Readers(cut, split, bindings, writes, bare)


class _Quotes:
    """Decides if a position is outside multi-line strings; positions must ascend."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._single = self._double = 0

    def closed(self, end: int) -> bool:
        """Return True if no multi-line string is open after the first ``end`` characters."""
        self._double ^= self._text.count('"""', self._at, end) & 1
        self._single ^= self._text.count("'''", self._at, end) & 1
        self._at = end
        return not self._single and not self._double
