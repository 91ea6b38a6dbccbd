"""What a fix may ask about the place of a finding: the code around it, on the ast that was linted.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import FUNCTIONS

if TYPE_CHECKING:
    from flake8_torchperf.absint.domain.site import Site
    from flake8_torchperf.findings.model import Finding
    from flake8_torchperf.project.module_index import FunctionNode, ModuleMap

_BUILTIN = frozenset(dir(builtins))
_LAZY = (*FUNCTIONS, ast.Lambda)


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


class Surroundings:
    """The linted module, with the node around each node; made once per file that is fixed."""

    def __init__(self, module: ModuleMap) -> None:
        self.module = module
        self.tree = module.tree
        # Of the module's own statements that were asked about: to walk all would take longer than
        # to lint most files.
        self._parents: dict[int, ast.AST] = {}
        self._starts = [_first_line(one) for one in self.tree.body]
        self._known: set[int] = set()
        self._bound: dict[int, dict[str, str]] = {}

    def _learn(self, node: ast.AST) -> None:
        """Note the nodes around all that stands in the module's statements at a node's line."""
        line = getattr(node, "lineno", None)
        if line is None:  # a clause, or a list of arguments, which may stand anywhere
            for number in range(len(self._starts)):
                self._walk(number)
            return
        number = bisect_right(self._starts, line) - 1
        while number >= 0:
            self._walk(number)
            # Where a statement begins, the one before it may end.
            number = number - 1 if self._starts[number] == line else -1

    def _walk(self, number: int) -> None:
        if number in self._known:
            return
        self._known.add(number)
        top = self.tree.body[number]
        self._parents[id(top)] = self.tree
        waiting: list[ast.AST] = [top]
        while waiting:
            node = waiting.pop()
            for child in ast.iter_child_nodes(node):
                self._parents[id(child)] = node
                waiting.append(child)

    def holds(self, node: ast.AST) -> bool:
        """Does the node stand in this module's tree?"""
        return self.parent(node) is not None

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node right around one; None around the module."""
        if id(node) not in self._parents:
            self._learn(node)
        return self._parents.get(id(node))

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that a node is, or stands in."""
        here: ast.AST | None = node
        while here is not None and not isinstance(here, ast.stmt):
            here = self.parent(here)
        return here

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around a node."""
        here = self.parent(node)
        while here is not None and not isinstance(here, FUNCTIONS):
            here = self.parent(here)
        return here

    def qualified(self, node: ast.expr) -> str:
        """The dotted name that an expression surely stands for: "torch.zeros", "builtins.len".

        "" where its first name is bound by something other than one import, or not at all.
        """
        head = node
        while isinstance(head, ast.Attribute):
            head = head.value
        if not isinstance(head, ast.Name):
            return ""
        module, local = self.module, self._local(head.id, head)
        if local is not None:
            return f"{local}{module.qualify(node)[len(module.qualify(head)) :]}" if local else ""
        if head.id in module.imports:
            return "" if head.id in module.constants else module.qualify(node)
        known = (module.functions, module.classes, module.constants, module.annotations)
        if head.id in _BUILTIN and not any(head.id in table for table in known):
            return f"builtins.{module.qualify(node)}"
        return ""

    def name_of(self, qualified: str) -> str:
        """How this file writes a module or a function: "torch", "t.nn"; "" if it imports none."""
        rest: list[str] = []
        while qualified:
            for name, imported in self.module.imports.items():
                if imported == qualified and name not in self.module.constants:
                    return ".".join((name, *reversed(rest)))
            qualified, _, last = qualified.rpartition(".")
            rest.append(last)
        return ""

    def reach(self, qualified: str, at: ast.AST) -> tuple[str, tuple[str, ...]] | None:
        """How to write a function of torch at a place, and the imports that this needs.

        None where its first name means something else there.
        """
        written, imports = self.name_of(qualified), tuple[str, ...]()
        module = self.module
        if not written:
            written, imports = qualified, (_head(qualified),)
            known = (module.imports, module.functions, module.classes, module.constants)
            if any(imports[0] in table for table in known):
                return None
        local = self._local(_head(written), at)
        return (
            None if local not in (None, module.imports.get(_head(written))) else (written, imports)
        )

    def _local(self, name: str, at: ast.AST) -> str | None:
        """What a function or class around a place imports under a name.

        "" where it is bound there in another way, None where no scope around binds it.
        """
        here = self.parent(at)
        while here is not None:
            if isinstance(here, (*_LAZY, ast.ClassDef)):
                bound = self._names_bound(here)
                if name in bound:
                    return bound[name]
            here = self.parent(here)
        return None

    def _names_bound(self, scope: ast.AST) -> dict[str, str]:
        """All names that are bound anywhere in a function or class, with what one imports."""
        found = self._bound.get(id(scope))
        if found is None:
            found = self._bound[id(scope)] = _imports(scope)
            found.update(dict.fromkeys(_bindings(scope), ""))
        return found


def _imports(scope: ast.AST) -> dict[str, str]:
    """The names that imports in a scope bind; "" for one that may be either of two."""
    found: dict[str, str] = {}
    for node in ast.walk(scope):
        rows: list[tuple[str, str]] = []
        match node:
            case ast.Import(names=aliases):
                rows = [(a.asname or _head(a.name), a.name if a.asname else _head(a.name))
                        for a in aliases]  # fmt: skip
            case ast.ImportFrom(names=aliases, module=str(module), level=0):
                rows = [(a.asname or a.name, f"{module}.{a.name}") for a in aliases]
            case ast.ImportFrom(names=aliases):
                rows = [(a.asname or a.name, "") for a in aliases]
        for name, qualified in rows:
            found[name] = qualified if found.get(name, qualified) == qualified else ""
    return found


def _head(name: str) -> str:
    return name.partition(".")[0]


def _bindings(scope: ast.AST) -> list[str]:
    """The names that a scope, or one within it, binds otherwise than by an import."""
    names: list[str] = []
    for node in ast.walk(scope):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                names.append(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.append(name)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.append(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if node is not scope:
                    names.append(name)
            case ast.ClassDef(name=name) if node is not scope:
                names.append(name)
            case ast.Global(names=declared) | ast.Nonlocal(names=declared):
                names += declared
    return names


@dataclass(frozen=True, slots=True)
class Place:
    """One finding and the code around it: all that `plan` of a fix is given."""

    finding: Finding
    around: Surroundings

    @property
    def site(self) -> Site:
        """What the interpreter saw there: node, operand with its value, traits, loops."""
        return self.finding.site


def repeatable(node: ast.expr) -> bool:
    """Can an expression be evaluated earlier, later or twice without anybody noticing?

    Constants, names, attributes of those, and ``torch.device(...)`` of a constant.
    """
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.Attribute(value=value):
            return repeatable(value)
        case ast.Call(func=func, args=[*args], keywords=[]) if _makes_device(func):
            return all(isinstance(arg, ast.Constant) for arg in args)
    return False


def _makes_device(func: ast.expr) -> bool:
    match func:
        case ast.Attribute(value=ast.Name(), attr="device") | ast.Name(id="device"):
            return True
    return False
