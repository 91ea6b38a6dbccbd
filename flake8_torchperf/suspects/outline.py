"""The map of a module of which little will be asked: functions and classes parsed on demand.

Enters the text of an imported module; leaves a module map that answers like any other. Most of
what stands beside the names that a file imports is never looked at, and a tree that is kept costs
memory and, in every full garbage collection, time. Must not know what the code means.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from flake8_torchperf.suspects.modulemap import ModuleMap, module_name, read_block, read_module

if TYPE_CHECKING:
    from pathlib import Path

    from flake8_torchperf.suspects.modulemap import ClassInfo, FunctionInfo

Info = TypeVar("Info")

# The first character of a line that starts a statement at module level, and what it defines. A
# line that starts with a closing bracket or a comment goes on with what stands above it.
_STARTS = re.compile(
    r"^(?:(?P<decorator>@)|(?:async[ \t]+)?def[ \t]+(?P<function>\w+)"
    r"|class[ \t]+(?P<klass>\w+)|[^\s#)\]}])",
    re.MULTILINE,
)


class _UnclearError(Exception):
    """The text cannot be cut at its module level by its look."""


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function or class at module level: its text, decorators included, and its first line."""

    name: str
    is_class: bool
    text: str
    line: int


class _Deferred(dict[str, Info]):
    """Names to what they define, as in any module map; parsed when first looked for."""

    def __init__(self, module: list[ModuleMap]) -> None:
        super().__init__()
        self._module = module
        self._waiting: dict[str, _Definition] = {}

    def defer(self, definition: _Definition) -> None:
        """A later function of the same name replaces an earlier one, a later class does not."""
        if not definition.is_class or definition.name not in self._waiting:
            self._waiting[definition.name] = definition

    def __contains__(self, name: object) -> bool:
        waiting = self._waiting.pop(str(name), None) if self._waiting else None
        if waiting is not None:
            read_block(_parsed(waiting), self._module[0])
        return super().__contains__(name)

    def __missing__(self, name: str) -> Info:
        if name in self:
            return self[name]
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """As of any dict."""
        return super().get(name, default) if name in self else default


def _parsed(definition: _Definition) -> list[ast.stmt]:
    try:
        return ast.parse("\n" * (definition.line - 1) + definition.text).body
    except (SyntaxError, ValueError, RecursionError):
        return []  # flake8 reports the file itself when it is linted


def read_outline(text: str, path: Path) -> ModuleMap:
    """Map an imported module. Raises SyntaxError or ValueError where it is no Python."""
    try:
        rest, definitions = _cut(text)
        tree = ast.parse(rest)
    except (_UnclearError, SyntaxError):
        return read_module(ast.parse(text), (text,), path)
    holder: list[ModuleMap] = []
    functions: _Deferred[FunctionInfo] = _Deferred(holder)
    classes: _Deferred[ClassInfo] = _Deferred(holder)
    for definition in definitions:
        (classes if definition.is_class else functions).defer(definition)
    name, package = module_name(path)
    module = ModuleMap(name, package, (text,), None, path, functions=functions, classes=classes)
    holder.append(module)
    read_block(tree.body, module)
    return module


def _cut(text: str) -> tuple[str, list[_Definition]]:
    """The text with its functions and classes left blank, line for line, and those."""
    starts = list(_STARTS.finditer(text))
    if not starts:
        return text, []
    rest = [text[: starts[0].start()]]
    found: list[_Definition] = []
    line = rest[0].count("\n") + 1
    begin, head = starts[0].start(), starts[0]
    fresh, single, double = True, 0, 0
    for start, end in zip(starts, [*(s.start() for s in starts[1:]), len(text)], strict=True):
        if fresh:
            begin, head, fresh = start.start(), start, False
        elif head["decorator"] and not single and not double:
            head = start  # what is decorated, or a further decorator
        double ^= text.count('"""', start.start(), end) & 1
        single ^= text.count("'''", start.start(), end) & 1
        if single or double or head["decorator"]:
            continue  # inside a string, or what is decorated comes next
        piece, name = text[begin:end], head["function"] or head["klass"]
        if name:
            found.append(_Definition(name, head["klass"] is not None, piece, line))
            rest.append("\n" * piece.count("\n"))
        elif piece.startswith("@"):
            raise _UnclearError
        else:
            rest.append(piece)
        line += piece.count("\n")
        fresh = True
    if not fresh:
        raise _UnclearError
    return "".join(rest), found
