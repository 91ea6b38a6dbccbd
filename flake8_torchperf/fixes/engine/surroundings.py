"""The code around a finding, on the ast that was linted, as fixes look at it.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from flake8_torchperf.syntax.bindings import bound_by
from flake8_torchperf.syntax.statement_lines import ByLine
from flake8_torchperf.syntax.traversal import FUNCTIONS, Nodes, below, children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.judgement.judged_site import JudgedSite
    from flake8_torchperf.project.module_index import FunctionNode, ModuleMap
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.values.site import SiteKind

T = TypeVar("T")

_BUILTIN = frozenset(dir(builtins))
_LAZY = (*FUNCTIONS, ast.Lambda)


class Surroundings:
    """The linted module, with the parent of each node; made once per file that is fixed.

    ``project`` finds other modules, where there may be some.
    """

    def __init__(
        self,
        module: ModuleMap,
        sites: Sequence[JudgedSite] = (),
        project: Project | None = None,
    ) -> None:
        self.module = module
        self.project = project
        self.tree = module.tree
        self._sites = sites
        # The sites of a kind, and the index of each among them.
        self._by_kind: dict[SiteKind, tuple[list[JudgedSite], dict[int, int]]] = {}
        # The parents of nodes on the way to those that were looked up. Walking whole functions
        # would take longer than linting most files.
        self._parents: dict[int, ast.AST] = {}
        self._below: dict[int, ByLine] = {}
        self._all_known = False
        self._bound: dict[int, dict[str, str]] = {}
        self._known: dict[object, object] = {}

    def known(self, make: Callable[[Surroundings], T]) -> T:
        """Return what a function finds out about the module; it is called once."""
        if make not in self._known:
            self._known[make] = make(self)
        return cast("T", self._known[make])

    def _learn(self, node: ast.AST) -> None:
        """Record the parents of the nodes on the way from the module to a node."""
        line: int | None = getattr(node, "lineno", None)
        if line is not None:
            self._open(line)
        if id(node) not in self._parents and not self._all_known:
            # It has no line, or, in an f-string of an older Python, a wrong one.
            self._learn_all()

    def _learn_all(self) -> None:
        """Note the node around each node of the module."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            here = waiting.pop()
            below = children(here)
            for node in below:
                self._parents[id(node)] = here
            waiting += below
        self._all_known = True

    def _open(self, line: int) -> None:
        """Note the nodes around those that cover a line."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            here = waiting.pop()
            below = self._below.get(id(here))
            if below is None:
                nodes = children(here)
                self._parents.update([(id(node), here) for node in nodes])
                below = self._below[id(here)] = ByLine(nodes)
            waiting += below.at(line)

    def holds(self, node: ast.AST) -> bool:
        """True if the node is part of this module's tree."""
        return self.parent(node) is not None

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node directly around one; None for the module."""
        if id(node) not in self._parents:
            self._learn(node)
        return self._parents.get(id(node))

    def reported(self, *kinds: SiteKind) -> list[JudgedSite]:
        """Return the places of these kinds that are reported in the module."""
        return [site for site in self._sites if site.kind in kinds]

    def reported_behind(self, site: JudgedSite) -> Iterator[JudgedSite]:
        """Yield the later sites of the same kind that are reported, in the file's order."""
        if site.kind not in self._by_kind:
            alike = self.reported(site.kind)
            self._by_kind[site.kind] = (alike, {id(one.node): i for i, one in enumerate(alike)})
        alike, places = self._by_kind[site.kind]
        yield from itertools.islice(alike, places.get(id(site.node), len(alike)) + 1, None)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the innermost statement that is, or contains, a node."""
        here: ast.AST | None = node
        while here is not None and not isinstance(here, ast.stmt):
            here = self.parent(here)
        return here

    def function(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function around a node."""
        here = self.parent(node)
        while here is not None and not isinstance(here, FUNCTIONS):
            here = self.parent(here)
        return here

    def qualified(self, node: ast.expr) -> str:
        """Return the dotted name that an expression surely has: "torch.zeros", "builtins.len".

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
        """Return the file's own name for a module or a function: "torch", "t.nn"; "" if none."""
        rest: list[str] = []
        while qualified:
            for name, imported in self.module.imports.items():
                if imported == qualified and name not in self.module.constants:
                    return ".".join((name, *reversed(rest)))
            qualified, _, last = qualified.rpartition(".")
            rest.append(last)
        return ""

    def reach(self, qualified: str, at: ast.AST) -> tuple[str, tuple[str, ...]] | None:
        """Return a function of torch as written at a place, and the imports that this needs.

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
        """Return the full name that a function or class around a place imports under a name.

        Returns "" if the name is bound there in another way, None if no scope around binds it.
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
        """Return all names that a function or class binds anywhere, with what one import gives."""
        found = self._bound.get(id(scope))
        if found is None:
            found = self._bound[id(scope)] = names_bound(scope)
        return found


def names_bound(scope: ast.AST) -> dict[str, str]:
    """Return the names that a scope, or one within it, binds, with the full name of each import.

    The full name is "" if the binding is not an import, or if there are several bindings.
    """
    nodes = Nodes([scope])
    found: dict[str, str] = {}
    for statement in nodes.of_any(ast.Import, ast.ImportFrom):
        for name, qualified in _imported(statement):
            found[name] = qualified if found.get(name, qualified) == qualified else ""
    inside = (one for one in below(scope) if not isinstance(one, (ast.Import, ast.ImportFrom)))
    names = [name for one in inside for name in bound_by(one)]
    names += [one.arg for one in nodes.of(ast.arg)]
    found.update(dict.fromkeys(names, ""))
    return found


def _imported(statement: ast.Import | ast.ImportFrom) -> list[tuple[str, str]]:
    """Return the names that an import binds, with the name each stands for; "" where relative."""
    if isinstance(statement, ast.Import):
        return [
            (one.asname, one.name) if one.asname else (_head(one.name), _head(one.name))
            for one in statement.names
        ]
    module = f"{statement.module}." if statement.module and not statement.level else ""
    return [(one.asname or one.name, module and module + one.name) for one in statement.names]


def _head(name: str) -> str:
    return name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class FixPlace:
    """One finding and the code around it: the argument of a fix's `plan`."""

    finding: Finding
    around: Surroundings

    @property
    def site(self) -> JudgedSite:
        """The site of the finding: node, operand with its value, traits, loops."""
        return self.finding.site


def repeatable(node: ast.expr) -> bool:
    """True if it makes no difference when an expression is evaluated earlier, later or twice.

    Holds for constants, names, attributes of those, and ``torch.device(...)`` of a constant.
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
