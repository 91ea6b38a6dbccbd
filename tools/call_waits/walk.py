"""Under which conditions a function of torch waits, by itself and by the functions it calls."""

from __future__ import annotations

import ast
from dataclasses import replace

from call_waits.attributes import Attributes
from call_waits.conditions import Scope
from call_waits.model import (
    ALWAYS,
    NEVER,
    OFF,
    ON,
    TENSOR,
    Atom,
    Condition,
    Facts,
    Place,
    add,
    all_of,
    both,
    minimal,
)
from call_waits.paths import guards
from call_waits.sites import Sites, Wait
from call_waits.sources import Callee, Sources, named
from flake8_torchperf.syntax.names import is_name
from flake8_torchperf.values.values import (
    UNKNOWN,
    Scalar,
    Union,
)

# Functions that call one another are followed this deep.
_MAX_DEPTH = 8


class Walk:
    """Finds the facts of functions, each once."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._sites = Sites()
        self._facts: dict[tuple[str, type | None], Facts] = {}
        self._attributes: dict[type, Attributes] = {}
        self._depth = 0

    def facts(self, callee: Callee) -> Facts:
        """Return the ways in which a call of this function waits."""
        key = (callee.info.key, callee.owner)
        if key not in self._facts:
            self._facts[key] = {}  # a recursive call adds nothing
            if callee.is_run_by_calling and self._depth < _MAX_DEPTH:
                self._depth += 1
                self._facts[key] = minimal(self._of_itself(self._found(callee), callee))
                self._depth -= 1
        return self._facts[key]

    def _found(self, callee: Callee) -> Facts:
        facts: Facts = {}
        scope = self._scope(callee)
        plain = self._sites.of(callee)
        for wait in plain:
            add(facts, self._way(wait, callee, scope), self._place(wait, callee))
        known = {(wait.line, wait.operation) for wait in plain}
        for parameter, value in callee.declared.items():
            if parameter == callee.me or not _may_be_tensor(value):
                continue
            given: Condition = (frozenset((Atom(parameter, TENSOR),)),)
            taken = self._scope(callee, frozenset((parameter,)))
            for wait in self._sites.of(callee, parameter):
                if (wait.line, wait.operation) not in known:
                    way = both(given, self._way(wait, callee, taken))
                    add(facts, way, self._place(wait, callee))
        for call in callee.info.nodes.of(ast.Call):
            self._by_call(call, callee, facts)
        return facts

    def _of_itself(self, facts: Facts, callee: Callee) -> Facts:
        """Return the facts of a function; those of a constructor ask its own arguments.

        A constructor is itself the object's constructor, of which its atoms ask.
        """
        owner = callee.owner
        made = None if owner is None else self.sources.method(owner, "__init__")
        if made is None or made.info is not callee.info:
            return facts
        found: Facts = {}
        for atoms, place in facts.items():
            add(found, (frozenset(replace(atom, own=False) for atom in atoms),), place)
        return found

    def _way(self, wait: Wait, callee: Callee, scope: Scope) -> Condition:
        scope.read = wait.read
        return scope.of_all(guards(callee.info.node.body, wait.node))

    def _place(self, wait: Wait, callee: Callee) -> Place:
        return Place(callee.module.file, wait.line, wait.operation)

    def _scope(self, callee: Callee, tensors: frozenset[str] = frozenset()) -> Scope:
        owner = callee.owner
        if owner is None or not callee.me:
            return Scope(callee, lambda name, holds: NEVER, lambda name: False, tensors)
        attributes = self._attributes.setdefault(owner, Attributes(owner, self.sources))
        return Scope(callee, attributes.truth, attributes.empty, tensors)

    def _by_call(self, call: ast.Call, callee: Callee, facts: Facts) -> None:
        """Add the waits of a call in a function, in terms of the function's own arguments."""
        called = self._called(call, callee)
        inner = {} if called is None else self.facts(called)
        if called is None or not inner:
            return
        scope = self._scope(callee)
        way = scope.of_all(guards(callee.info.node.body, call))
        if not way:
            return
        given = _arguments(call, called)
        same = _is_same_object(call.func, callee)
        for atoms, place in inner.items():
            asked = [_asked(atom, given, called, scope, same=same) for atom in sorted(atoms)]
            add(facts, all_of([way, *asked]), place)

    def _called(self, call: ast.Call, callee: Callee) -> Callee | None:
        """Return the function of torch that a call runs, if its name shows it."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=me), attr=name) if me and me == callee.me:
                return None if callee.owner is None else self.sources.method(callee.owner, name)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr=name):
                after = self.sources.class_of(callee.info, callee.owner)
                if callee.owner is None or after is None:
                    return None
                return self.sources.method(callee.owner, name, after)
            case ast.Name(id=name) if _is_local(name, callee):
                return None
        found = named(call.func, callee.module)
        if isinstance(found, type):
            return self.sources.method(found, "__init__")
        return self.sources.function(found)


def _is_same_object(func: ast.expr, callee: Callee) -> bool:
    """True for a method of the object at hand: ``self.check`` or ``super().check``."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    if isinstance(owner, ast.Call):
        return is_name(owner.func, "super")
    return owner is not None and bool(callee.me) and is_name(owner, callee.me)


def _may_be_tensor(value: object) -> bool:
    """True if a tensor may be passed for a parameter that is not declared one."""
    if isinstance(value, Union):
        return any(map(_may_be_tensor, value.options))
    if isinstance(value, Scalar):
        return value.kind in ("int", "float", "number", "object")
    return value is UNKNOWN


def _is_local(name: str, callee: Callee) -> bool:
    """True if a function itself binds a name."""
    return name in callee.parameters or any(
        n.id == name and isinstance(n.ctx, ast.Store) for n in callee.info.nodes.of(ast.Name)
    )


def _arguments(call: ast.Call, callee: Callee) -> dict[str, ast.expr] | None:
    """Return the expression that a call gives for each parameter; None if some are hidden."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    found = dict(zip(callee.positional, call.args, strict=False))
    return found | {k.arg: k.value for k in call.keywords if k.arg}


def _asked(
    atom: Atom, given: dict[str, ast.expr] | None, called: Callee, scope: Scope, *, same: bool
) -> Condition:
    """Return an atom of a function as a condition on the arguments of its caller."""
    if atom.own and same:
        return (frozenset((atom,)),)
    if atom.own and called.info.name != "__init__":
        return NEVER
    if given is None:
        return NEVER
    value = given.get(atom.parameter, called.parameters.get(atom.parameter))
    match value:
        case ast.Constant(value=literal):
            return ALWAYS if atom.holds_for(literal) else NEVER
        case ast.Name(id=name) if scope.is_parameter(name, value.lineno):
            if atom.asks == TENSOR:
                return scope.tensor(name)
            if scope.is_tensor(name):
                return NEVER
            moved = Atom(name, atom.asks, atom.none)
            return (frozenset((moved,)),)
        case ast.expr() if atom.asks in (ON, OFF):
            return scope.judge(value, atom.asks == ON)
    return NEVER
