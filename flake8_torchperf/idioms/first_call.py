"""Branches that few calls take: the first, because its result is stored, or some listed steps."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.names import names_of
from flake8_torchperf.syntax.bindings import bound_by
from flake8_torchperf.syntax.names import dotted_name, spelled
from flake8_torchperf.syntax.traversal import inside, once, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


# Expressions that hold some steps; a call may return all of them, as ``range`` does.
_LISTED = (ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Set)


def asks_for_steps(test: ast.AST) -> bool:
    """True if a test asks if the count of steps is one of several, so that few steps pass it."""
    match test:
        case ast.Compare(
            left=ast.Name() | ast.Attribute() as count, ops=[ast.In()], comparators=[steps]
        ):
            last = dotted_name(count).rpartition(".")[2].rpartition("_")[2]
            return isinstance(steps, _LISTED) and last in names_of("step-counters")
    return False


@once
def interval_flags(function: ast.AST) -> frozenset[str]:
    """Return the names that a function binds to whether a step is one in several, and to no more.

    ``save = every and step % every == 0`` is an example.
    """
    flags: list[str] = []
    for node in inside(function, ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if asks_for_interval(value, ()):
                    flags.append(name)
    if not flags:
        return frozenset()
    counts = Counter(name for one in inside(function, ast.Name) for name in bound_by(one))
    return frozenset(name for name, count in Counter(flags).items() if counts[name] == count)


def asks_for_interval(test: ast.expr, flags: Collection[str]) -> bool:
    """True if a test holds for one step in several: it, or one of some flags, says so."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            return all(asks_for_interval(one, flags) for one in values)
        case ast.BoolOp(values=values):
            return any(asks_for_interval(one, flags) for one in values)
        case ast.Compare(left=ast.BinOp(op=ast.Mod()), ops=[ast.Eq()]):
            return True
        case ast.Name(id=name):
            return name in flags
    return asks_for_steps(test)


def first_only(node: ast.If, loop: ast.AST | None, function: ast.AST | None) -> bool:
    """True if a branch runs only on the first call, or in the first round of the loop around it."""
    if made_once(node) or in_first_round(node, loop, function):
        return True
    return function is not None and (
        kept_in_table(node, function) or fills_table(node, function) or turned_on(node, function)
    )


def fills_table(node: ast.If, function: ast.AST) -> bool:
    """True for ``if key not in TABLE:`` above ``TABLE[key] = ...``, if a function finds the table.

    A table that the function makes itself is empty in each call.
    """
    match node.test:
        case ast.Compare(left=key, ops=[ast.NotIn()], comparators=[ast.Name(id=table)]):
            filled = f"{table}[{spelled(key)}]"
            return table not in _locals(function) and any(
                isinstance(statement, ast.Assign) and filled in map(spelled, statement.targets)
                for statement in walk(node.body)
            )
    return False


@once
def _locals(function: ast.AST) -> frozenset[str]:
    """Return the names that a function binds, but to an attribute or to an item of one."""
    nodes = walk([function])
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    aliases = {id(target) for node in nodes for target in _aliases(node)}
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own = (one for one in nodes if isinstance(one, ast.Name) and id(one) not in aliases)
    bound.update(name for one in own for name in bound_by(one))
    return frozenset(bound - shared)


def _aliases(node: ast.AST) -> list[ast.expr]:
    """Return the targets of an assignment to which an attribute, or an item of one, is bound."""
    match node:
        case ast.Assign(targets=targets, value=ast.Attribute()):
            return targets
        case ast.Assign(targets=targets, value=ast.Subscript(value=ast.Attribute())):
            return targets
    return []


def turned_on(node: ast.If, function: ast.AST) -> bool:
    """True for ``if not self.started:`` in a function that sets ``self.started`` to True."""
    match node.test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute() as flag):
            return spelled(flag) in _made_true(function)
    return False


@once
def _made_true(function: ast.AST) -> frozenset[str]:
    """Return the attributes that a function sets to True."""
    return frozenset(
        spelled(target)
        for node in inside(function, ast.Assign)
        if isinstance(node.value, ast.Constant) and node.value.value is True
        for target in node.targets
        if isinstance(target, ast.Attribute)
    )


@once
def made_once(node: ast.If) -> bool:
    """True for ``if self.x is None:`` above ``self.x = ...``: the branch makes its value only once.

    True as well for a flag that the branch sets (``if not self.ready:`` above ``self.ready =
    True``), for an attribute or a key that does not exist yet, and for a value that is made anew
    if it doesn't fit any more: ``if self.x is None or self.x.size() != size:``.
    """
    if isinstance(node.test, ast.Attribute):
        return _turned_off(node)
    if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or):
        return _made_to_fit(node, node.test.values)
    awaited = _awaited(node.test)
    paths = {_public(path) for path in awaited} if awaited else ()
    for statement in walk(node.body) if paths else ():
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(_public(spelled(target)) in paths for target in targets):
                return True
    return False


def _made_to_fit(node: ast.If, tests: list[ast.expr]) -> bool:
    """True if a branch makes the value that one test finds missing, and the others ask about.

    The others may ask about other attributes that the branch assigns.
    """
    made = {
        spelled(target)
        for statement in walk(node.body)
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Attribute)
    }
    missing = [made.intersection(_awaited(test)) for test in tests]
    return any(missing) and all(
        found
        or any(isinstance(one, ast.Attribute) and spelled(one) in made for one in walk([test]))
        for found, test in zip(missing, tests, strict=True)
    )


def kept_in_table(node: ast.If, function: ast.AST) -> bool:
    """True for ``if found is None:`` above ``table[key] = found``.

    The function must also look it up: ``found = table.get(key)``.
    """
    missing = _missing(node.test)
    tables = _looked_up(function).get(missing, frozenset()) if missing else ()
    for statement in walk(node.body) if tables else ():
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Subscript) and spelled(target.value) in tables:
                    return True
    return False


def _missing(test: ast.expr) -> str:
    """Return the name in ``best is None``; "" for any other test."""
    match test:
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]
        ):
            return name
    return ""


@once
def _looked_up(function: ast.AST) -> dict[str, frozenset[str]]:
    """Return the tables that each name is looked up in: ``found = table.get(key)``."""
    found: dict[str, frozenset[str]] = {}
    for node in inside(function, ast.Assign):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=table, attr="get")),
            ):
                found[name] = found.get(name, frozenset()) | {spelled(table)}
    return found


def _public(path: str) -> str:
    """Return ``self.x`` for ``self._x``: a property has the name of the attribute behind it."""
    return path.replace("._", ".")


def made_by_call(node: ast.If, methods: Callable[[str], Iterable[ast.AST]]) -> bool:
    """True for ``if self.x is None: self.find_x(...)``, where that method assigns ``self.x``.

    Assigning ``self._x``, the attribute behind a property, counts too. ``methods`` returns the
    methods of this object with a given name.
    """
    paths = {_public(path) for path in _awaited(node.test)}
    for statement in node.body if paths else ():
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name))):
                for method in methods(name):
                    if not paths.isdisjoint(map(_public, _kept_paths(method))):
                        return True
    return False


def returns_kept(node: ast.If, function: ast.AST) -> bool:
    """True for ``if self.x is not None: return self.x`` in a function that also assigns ``self.x``.

    The rest of the function then runs once. True as well for a flag, a key, or a name that stands
    for the stored value.
    """
    if not isinstance(node.body[-1], ast.Return):
        return False
    match node.test:
        case ast.BoolOp(op=ast.And(), values=tests):
            pass
        case test:
            tests = [test]
    kept = {path for test in tests for path in _there(test)}
    if not kept:
        return False
    kept |= {path for name in kept for path in _stands_for(function).get(name, ())}
    return not kept.isdisjoint(_kept_paths(function))


def _there(test: ast.expr) -> tuple[str, ...]:
    """Return the paths that a test finds to exist already."""
    match test:
        case ast.Compare(
            left=ast.Attribute() | ast.Name() as made,
            ops=[ast.IsNot()],
            comparators=[ast.Constant(value=None)],
        ):
            return (spelled(made),)
        case ast.Attribute():
            return (spelled(test),)
        case ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=str(name))]):
            return (f"{spelled(owner)}.{name}",)
        case ast.Compare(ops=[ast.In()], comparators=[ast.Attribute() as table]):
            return (spelled(table),)
    return ()


@once
def _kept_paths(function: ast.AST) -> frozenset[str]:
    """Return the attributes that a function assigns, writes an entry of, or changes in place."""
    found: set[str] = set()
    for assignment in inside(function, ast.Assign):
        found.update(map(_attribute, assignment.targets))
    for declared in inside(function, ast.AnnAssign):
        if declared.value is not None:
            found.add(_attribute(declared.target))
    for call in inside(function, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
            found.add(_attribute(call.func.value))
    return frozenset(found - {""})


def _attribute(node: ast.expr) -> str:
    """Return ``self.x`` for ``self.x``, ``self.x[key]`` and ``self.x.data``; "" for a name."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return spelled(node) if isinstance(node, ast.Attribute) else ""


@once
def _stands_for(function: ast.AST) -> dict[str, tuple[str, ...]]:
    """Return the attributes that each name is read from: ``found = self.cache.get(key)``."""
    found: dict[str, tuple[str, ...]] = {}
    for node in inside(function, ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                    value = value.func.value
                path = _attribute(value)
                if path:
                    found[name] = (*found.get(name, ()), path)
    return found


def in_first_round(node: ast.If, loop: ast.AST | None, function: ast.AST | None) -> bool:
    """True for ``if best is None:`` above ``best = ...`` in a loop that ``best = None`` precedes.

    Nothing in the loop may set it to None again.
    """
    name = _missing(node.test)
    if not name or loop is None or function is None:
        return False
    if not any(name in _bound(s) for s in node.body):
        return False
    return name not in _made_none(loop) and name in _made_none(function)


@once
def _made_none(code: ast.AST) -> frozenset[str]:
    """Return the names that are set to None somewhere in a piece of code."""
    return frozenset(
        name
        for node in walk([code])
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, ast.Constant)
        and node.value.value is None
        for name in _bound(node)
    )


def _bound(node: ast.AST) -> list[str]:
    """Return the plain names that an assignment binds; unpacked ones are left out."""
    match node:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return [name]
    return []


def _turned_off(node: ast.If) -> bool:
    """True for ``if self.first:`` above ``self.first = False``: the branch clears its own flag."""
    flag = spelled(node.test)
    return any(
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is False
        and any(spelled(target) == flag for target in statement.targets)
        for statement in node.body
    )


# The tests that an assignment may make fail.
_AWAITING = (ast.Compare, ast.UnaryOp, ast.BoolOp)


def _awaited(test: ast.expr) -> tuple[str, ...]:
    """Return the paths whose assignment makes the test fail the next time."""
    if not isinstance(test, _AWAITING):
        return ()
    match test:
        case ast.Compare(
            left=ast.Attribute() | ast.Subscript() as made,
            ops=[ast.Is()],
            comparators=[ast.Constant(value=None)],
        ):
            return (spelled(made),)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute() as flag):
            return (spelled(flag),)
        case ast.UnaryOp(
            op=ast.Not(),
            operand=ast.Call(
                func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=str(name))]
            ),
        ):
            return (f"{spelled(owner)}.{name}",)
        case ast.Compare(left=key, ops=[ast.NotIn()], comparators=[ast.Attribute() as table]):
            return (f"{spelled(table)}[{spelled(key)}]",)
        case ast.BoolOp(op=ast.And(), values=values):
            return tuple(path for value in values for path in _awaited(value))
    return ()


@once
def written_above(function: ast.AST) -> dict[int, frozenset[str]]:
    """Return what the statements above each assignment, in the same block, assign anew."""
    found: dict[int, frozenset[str]] = {}
    for holder in walk([function]):
        for block in (getattr(holder, name, None) for name in ("body", "orelse", "finalbody")):
            written: frozenset[str] = frozenset()
            for statement in block if isinstance(block, list) else ():
                if isinstance(statement, ast.Assign):
                    found[id(statement)] = written
                    written |= set(map(spelled, statement.targets))
    return found
