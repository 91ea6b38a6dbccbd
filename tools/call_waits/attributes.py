"""The constructor arguments for which an attribute of an object is true, or false."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from call_waits.model import NEVER, OFF, ON, Atom, Condition
from call_waits.paths import guards
from call_waits.sources import Callee, Sources
from flake8_torchperf.syntax.names import is_name

# Constructors that call one another.
_MAX_DEPTH = 6


@dataclass(frozen=True)
class _Write:
    """A value that a constructor writes: an argument of it (``parameter``), or something else."""

    parameter: str
    value: ast.expr
    where: Callee


class Attributes:
    """The attributes of objects of one class."""

    def __init__(self, owner: type, sources: Sources) -> None:
        self._owner = owner
        self._sources = sources

    def truth(self, name: str, holds: bool) -> Condition:
        """Return a condition that suffices for an attribute to be true or false; or `NEVER`."""
        start = self._sources.method(self._owner, "__init__")
        writes = (
            [] if start is None else self._writes(start, {p: p for p in start.parameters}, name)
        )
        if self._written_later(name) or not any(w.parameter for w in writes):
            return NEVER
        given = {w.parameter for w in writes} - {""}
        constants = [w.value for w in writes if not w.parameter]
        fits = all(isinstance(c, ast.Constant) and bool(c.value) is not holds for c in constants)
        if len(given) != 1 or (constants and not (fits and holds)):
            return NEVER
        default = self._default(name)
        skips = [self._skips_none(w) for w in writes if w.parameter]
        if None in skips or (any(skips) and default is None):
            return NEVER
        truth_of_none = bool(default) if any(skips) else False
        atom = Atom(given.pop(), ON if holds else OFF, truth_of_none is holds, own=True)
        return (frozenset((atom,)),)

    def _writes(
        self, init: Callee, given: Mapping[str, str], name: str, depth: int = 0
    ) -> list[_Write]:
        """Return the writes of a constructor and of those that it calls by ``super()``.

        `given` says which argument of the object's own constructor each parameter is.
        """
        found: list[_Write] = []
        for statement in init.info.nodes.of_any(ast.Assign, ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if _is_own(target, init.me, name) and statement.value is not None:
                    value = statement.value
                    plain = value.id if isinstance(value, ast.Name) else ""
                    found.append(_Write(given.get(plain, ""), value, init))
        for call in init.info.nodes.of(ast.Call):
            above = self._above(call, init) if depth < _MAX_DEPTH else None
            if above is not None:
                found += self._writes(above, passed(call, above, given), name, depth + 1)
        return found

    def _above(self, call: ast.Call, init: Callee) -> Callee | None:
        match call.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr="__init__"):
                after = self._sources.class_of(init.info, self._owner)
                return self._sources.method(self._owner, "__init__", after)
        return None

    def _written_later(self, name: str) -> bool:
        """True if a method other than a constructor writes the attribute."""
        for base in self._owner.__mro__:
            info = self._sources.class_info(base)
            writers = [] if info is None else info.writers.get(name, [])
            if any(writer.name != "__init__" for writer in writers):
                return True
        return False

    def _default(self, name: str) -> object:
        """Return the value that the class itself gives the attribute; None if it gives none."""
        for base in self._owner.__mro__:
            info = self._sources.class_info(base)
            match None if info is None else info.assigned.get(name):
                case ast.Constant(value=value):
                    return value
                case ast.Name(id="__debug__"):
                    return True  # unless Python runs with -O
        return None

    def _skips_none(self, write: _Write) -> bool | None:
        """True if it is written only where the argument is not None; None for other tests."""
        found = guards(write.where.info.node.body, write.value)
        match found:
            case []:
                return False
            case [one]:
                match one.test:
                    case ast.Compare(left=left, ops=[ast.IsNot()]) if one.holds:
                        same = ast.unparse(left) == ast.unparse(write.value)
                        return True if same else None
        return None

    def empty(self, name: str) -> bool:
        """True if the attribute is known to be empty or missing; a subclass outweighs its bases."""
        for base in self._owner.__mro__:
            info = self._sources.class_info(base)
            if info is None:
                continue
            match info.assigned.get(name):
                case ast.Dict(keys=[]) | ast.List(elts=[]) | ast.Tuple(elts=[]):
                    return True
                case ast.expr():
                    return False
            if name in info.methods:
                return isinstance(info.methods[name].node.body[-1], ast.Raise)
        return False


def _is_own(target: ast.expr, me: str, name: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == name and is_name(target.value, me)


def passed(call: ast.Call, callee: Callee, given: Mapping[str, str]) -> dict[str, str]:
    """Map parameters of the next constructor to the first one's arguments that they are given."""
    found: dict[str, str] = {}
    if any(isinstance(a, ast.Starred) for a in call.args):
        return found
    names = zip(callee.positional, call.args, strict=False)
    keywords = [(k.arg, k.value) for k in call.keywords if k.arg]
    for name, value in [*names, *keywords]:
        if isinstance(value, ast.Name) and value.id in given:
            found[name] = given[value.id]
    return found
