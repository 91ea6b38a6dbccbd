"""Facts about a function, by its text alone: findings that ask for one depend on it alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from flake8_torchperf.project.answers import FACT
from flake8_torchperf.project.noted_calls import called_by_super, called_on_first
from flake8_torchperf.syntax.docstrings import raw_docstring

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

Fact = TypeVar("Fact")

# Finds a fact in plain values, without line numbers, by its name.
FACTS: dict[str, Callable[[FunctionInfo], object]] = {}


# Where `place_of` keeps what it found, beside the facts.
_PLACE = "place"


class FunctionFact(Generic[Fact]):
    """One fact about functions; ``find`` reads their trees without a query for their bodies."""

    def __init__(self, name: str, find: Callable[[FunctionInfo], Fact]) -> None:
        self._name = name
        self._find = find
        FACTS[name] = find

    def of(self, info: FunctionInfo) -> Fact:
        """Return the fact; for a function of an outline, that is recorded as a query."""
        if self._name not in info.facts:
            info.facts[self._name] = self._find(info)
        found = cast("Fact", info.facts[self._name])
        parts = info.module.parts
        if parts is not None and parts.listens:
            place = place_of(info)
            if place is None:
                info.ask()
            else:
                parts.tell(f"{FACT}{self._name} {info.qualname} {place}", (found,))
        return found


def place_of(info: FunctionInfo) -> int | None:
    """Return the place of a function among those of its name in its class or module.

    None for one that can't be found by its name again: in a function, a branch or a nested class.
    """
    known = info.facts.get(_PLACE)
    if known is None:
        among = functions_named(info.module, info.qualname)
        known = next((place for place, one in enumerate(among) if one is info), None)
        if known is not None:
            info.facts[_PLACE] = known
    return cast("int | None", known)


def functions_named(module: ModuleMap, qualname: str) -> list[FunctionInfo]:
    """Return the functions of a name that were read before; this is no query.

    Several methods have one name where a property has a setter.
    """
    owner, _, method = qualname.partition(".")
    if not method:
        function = held_in(module.functions, owner)
        return [] if function is None else [function]
    klass = held_in(module.classes, owner)
    return [] if klass is None else [one for one in klass.held if one.name == method]


Info = TypeVar("Info")


def held_in(table: MutableMapping[str, Info], name: str) -> Info | None:
    """Return an entry of a table that records look-ups, without a record."""
    return cast("Info | None", dict.get(cast("dict[str, Info]", table), name))


def _nodes(info: FunctionInfo) -> Nodes:
    return info.module.nodes(info.tree)


def _given_writes(info: FunctionInfo) -> tuple[tuple[str, str], ...]:
    """Return the parameters of which a function sets attributes, with these, each once."""
    names = {a.arg for a in (*info.tree.args.posonlyargs, *info.tree.args.args)}
    found: dict[tuple[str, str], None] = {}
    for node in _nodes(info).of(ast.Attribute):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Store()):
                if name in names:
                    found[name, attribute] = None
    return tuple(found)


def _is_left_open(info: FunctionInfo) -> bool:
    """True for a body that only raises NotImplementedError, or is ``...``."""
    first, *rest = info.tree.body
    if raw_docstring(info.tree) and rest:
        first, *rest = rest
    match first:
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "NotImplementedError"
        case ast.Expr(value=ast.Constant(value=value)):
            return value is Ellipsis and not rest
    return False


def _may_only_call(info: FunctionInfo) -> bool:
    """True for a body that is one call, behind a test perhaps, with a return behind that."""
    body = info.tree.body
    if raw_docstring(info.tree):
        body = body[1:]
    match body:
        case [ast.If(body=[inner], orelse=[])] | [ast.If(body=[inner], orelse=[]), ast.Return()]:
            return _is_call(inner)
        case [statement]:
            return _is_call(statement)
    return False


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Expr, ast.Return)) and isinstance(statement.value, ast.Call)


# A function with more lines than this is interpreted by itself, but not for its callers.
MAX_SUMMARY_LINES = 250
# A function with more lines than this is no helper whose sites count for its calls.
MAX_HELPER_LINES = 60


def _lines(info: FunctionInfo) -> int:
    """Return the number of lines below the first."""
    return (info.tree.end_lineno or 0) - info.tree.lineno


def _returns_a_method_call(info: FunctionInfo) -> bool:
    results = (one.value for one in _nodes(info).of(ast.Return))
    return any(isinstance(r, ast.Call) and isinstance(r.func, ast.Attribute) for r in results)


def _kept_parameters(info: FunctionInfo) -> tuple[tuple[str, int, str], ...]:
    """Return the assignments as ``self.model = model``: attribute, position, and parameter."""
    parameters = [a.arg for a in (*info.tree.args.posonlyargs, *info.tree.args.args)]
    found: list[tuple[str, int, str]] = []
    for statement in _nodes(info).of(ast.Assign):
        match statement:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id=owner), attr=attribute)],
                value=ast.Name(id=name),
            ) if owner == parameters[0] and name in parameters[1:]:
                found.append((attribute, parameters.index(name, 1) - 1, name))
    return tuple(found)


def _sets_attributes(info: FunctionInfo) -> bool:
    return any(isinstance(one.ctx, ast.Store) for one in _nodes(info).of(ast.Attribute))


def _calls_itself(info: FunctionInfo) -> bool:
    """True for a body that calls a function or a method of the same name."""
    called = (call.func for call in _nodes(info).of(ast.Call))
    return any(
        (isinstance(f, ast.Name) and f.id == info.name)
        or (isinstance(f, ast.Attribute) and f.attr == info.name)
        for f in called
    )


def _rebound(info: FunctionInfo) -> tuple[str, ...]:
    """Return the parameters that the body binds anew or deletes."""
    spec = info.tree.args
    names = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    stored = (n.id for n in _nodes(info).of(ast.Name) if not isinstance(n.ctx, ast.Load))
    return tuple(sorted(names.intersection(stored)))


# The methods that are called on the first parameter, and those through ``super()``.
OWN_CALLS = FunctionFact("own-calls", lambda i: called_on_first(i.tree.args, _nodes(i)))
SUPER_CALLS = FunctionFact("super-calls", lambda info: called_by_super(_nodes(info)))
GIVEN_WRITES = FunctionFact("given-writes", _given_writes)
KEPT_PARAMETERS = FunctionFact("kept-parameters", _kept_parameters)
IS_LEFT_OPEN = FunctionFact("left-open", _is_left_open)
IS_LONG = FunctionFact("long", lambda info: _lines(info) > MAX_SUMMARY_LINES)
SETS_ATTRIBUTES = FunctionFact("sets-attributes", _sets_attributes)
# Both decide which literals of a call hold in the body.
CALLS_ITSELF = FunctionFact("calls-itself", _calls_itself)
REBOUND = FunctionFact("rebound-parameters", _rebound)
IS_OF_HELPER_SIZE = FunctionFact("helper-size", lambda info: _lines(info) <= MAX_HELPER_LINES)
MAY_ONLY_CALL = FunctionFact("may-only-call", _may_only_call)
RETURNS_A_METHOD_CALL = FunctionFact("returns-a-method-call", _returns_a_method_call)
DOCSTRING = FunctionFact("docstring", lambda info: raw_docstring(info.tree))
SPEAKS_OF_BOOLEANS = FunctionFact(
    "speaks-of-booleans", lambda i: "bool" in raw_docstring(i.tree).lower()
)
