"""The conditions on a function's arguments that the tests on the way to a place make."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from call_waits.model import (
    ALWAYS,
    GIVEN,
    NEVER,
    NONE,
    OFF,
    ON,
    TENSOR,
    Atom,
    Condition,
    all_of,
    any_of,
)
from call_waits.paths import Guard
from call_waits.sources import Callee, named
from flake8_torchperf.syntax.compile_guards import MODE_TESTS
from flake8_torchperf.syntax.shape_tests import counts_nothing, is_none
from flake8_torchperf.values.values import Tensor

# torch/overrides.py: true if an argument is an object that stands in for a plain tensor.
_STAND_INS = frozenset(
    ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
)
# torch/_jit_internal.py, torch/jit/__init__.py and torch/__init__.py: false in a plain program.
_ELSEWHERE = _STAND_INS | MODE_TESTS.keys()
# Names that lead to one another before the next counts as unknown.
_MAX_STEPS = 5


@dataclass
class Scope:
    """One function of torch, with the facts needed to read its tests.

    `attribute` gives the condition for an attribute of the object to be true (or false); `empty`
    says if one is known to be empty.
    """

    callee: Callee
    attribute: Callable[[str, bool], Condition]
    empty: Callable[[str], bool]
    # Parameters that are taken to be tensors, and expressions that are, where a tensor is read.
    tensors: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    _steps: int = field(default=0, repr=False)

    def of_all(self, guards: Iterable[Guard]) -> Condition:
        """Return the condition under which all tests lead on."""
        return all_of(map(self._guard, guards))

    def _guard(self, guard: Guard) -> Condition:
        if guard.test is None:
            return NEVER
        if guard.each:
            return NEVER if self._is_empty(guard.test) else ALWAYS
        return self.judge(guard.test, guard.holds)

    def judge(self, test: ast.expr, holds: bool) -> Condition:
        """Return a condition that suffices for a test to hold, or to fail; `NEVER` if unknown."""
        match test:
            case ast.Constant(value=value):
                return ALWAYS if bool(value) is holds else NEVER
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self.judge(inner, not holds)
            case ast.BoolOp(op=op, values=values):
                outcomes = [self.judge(value, holds) for value in values]
                return all_of(outcomes) if isinstance(op, ast.And) is holds else any_of(outcomes)
            case ast.Name(id=name):
                return self._name(test, name, holds)
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self.callee.me:
                return self.attribute(attr, holds)
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[right]):
                if is_none(right):
                    return self._none(left, isinstance(test.ops[0], ast.Is) is holds)
            case ast.Compare():
                counted = counts_nothing(test)
                if counted is not None:
                    return NEVER if counted[1] is holds else ALWAYS
            case ast.Call():
                return self._call(test, holds)
        return NEVER

    def _name(self, node: ast.Name, name: str, holds: bool) -> Condition:
        if self.is_parameter(name, node.lineno):
            if name in self.tensors:
                return NEVER  # that reads it: it is a place of its own
            return (frozenset((Atom(name, ON if holds else OFF, none=not holds),)),)
        assigned = self._assigned_once.get(name)
        if assigned is None or assigned.lineno >= node.lineno or self._steps >= _MAX_STEPS:
            return NEVER
        self._steps += 1
        found = self.judge(assigned, holds)
        self._steps -= 1
        return found

    def is_parameter(self, name: str, line: int) -> bool:
        """True if a name in this line still holds the caller's argument."""
        return name in self.callee.parameters and not any(
            n.id == name and isinstance(n.ctx, ast.Store) and n.lineno <= line
            for n in self.callee.info.nodes.of(ast.Name)
        )

    @cached_property
    def _assigned_once(self) -> dict[str, ast.expr]:
        """The values of names that are assigned once, in the function's own block."""
        stored = [n.id for n in self.callee.info.nodes.of(ast.Name) if isinstance(n.ctx, ast.Store)]
        body = list(self.callee.info.node.body)
        body += [s for outer in body if isinstance(outer, (ast.Try, ast.With)) for s in outer.body]
        found: dict[str, ast.expr] = {}
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if stored.count(name) == 1 and name not in self.callee.parameters:
                        found[name] = value
        return found

    def _none(self, node: ast.expr, is_none: bool) -> Condition:
        """Return the condition for ``p is None``, and for ``(x := self._scale) is None``.

        If the test reads an attribute, None means an object that has not been used yet.
        """
        kept = self._is_kept(node)
        if isinstance(node, ast.NamedExpr):
            node = node.target
        if isinstance(node, ast.Name) and self.is_parameter(node.id, node.lineno):
            if self.is_tensor(node.id):
                return NEVER if is_none else ALWAYS
            return (frozenset((Atom(node.id, NONE if is_none else GIVEN),)),)
        return ALWAYS if not is_none and kept and ast.unparse(node) in self.read else NEVER

    def _is_kept(self, node: ast.expr) -> bool:
        """True if the value is an attribute of the object, or returned by a method of it."""
        if isinstance(node, ast.NamedExpr):
            node = node.value
        if isinstance(node, ast.Name):
            node = self._assigned_once.get(node.id, node)
        while isinstance(node, (ast.Attribute, ast.Call)):
            node = node.value if isinstance(node, ast.Attribute) else node.func
        return isinstance(node, ast.Name) and node.id == self.callee.me != ""

    def is_tensor(self, name: str) -> bool:
        """True if a parameter is declared a tensor, or taken to be one."""
        return name in self.tensors or isinstance(self.callee.declared.get(name), Tensor)

    def _call(self, test: ast.Call, holds: bool) -> Condition:
        called = test.func.attr if isinstance(test.func, ast.Attribute) else ""
        called = test.func.id if isinstance(test.func, ast.Name) else called
        if called in _ELSEWHERE:
            return NEVER if holds else ALWAYS
        match called, test.args:
            case "isinstance", [ast.Name(id=name), classes] if self.is_parameter(name, test.lineno):
                return self._instance(name, classes, holds)
            case "is_tensor", [ast.Name(id=name)] if holds and self.is_parameter(name, test.lineno):
                return self.tensor(name)
        return NEVER

    def _instance(self, name: str, classes: ast.expr, holds: bool) -> Condition:
        nodes = classes.elts if isinstance(classes, ast.Tuple) else [classes]
        found = [named(node, self.callee.module) for node in nodes]
        among = any(getattr(one, "__name__", "") in ("Tensor", "Parameter") for one in found)
        known = all(isinstance(one, type) for one in found)
        return self.tensor(name) if known and among is holds else NEVER

    def tensor(self, name: str) -> Condition:
        """Return the condition under which a parameter is a tensor."""
        if isinstance(self.callee.declared.get(name), Tensor):
            return ALWAYS
        return (frozenset((Atom(name, TENSOR),)),)

    def _is_empty(self, node: ast.expr) -> bool:
        """True if the iterable of a loop is known to be empty."""
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="items" | "values" | "keys")):
                return self._is_empty(inner)
            case ast.Name(id=name) if name in self._assigned_first:
                return self._is_empty(self._assigned_first[name])
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self.callee.me:
                return self.empty(attr)
            case ast.Dict(keys=[]) | ast.List(elts=[]) | ast.Tuple(elts=[]):
                return True
        return False

    @cached_property
    def _assigned_first(self) -> dict[str, ast.expr]:
        """The first value that is assigned to each name of the function."""
        found: dict[str, ast.expr] = {}
        for statement in self.callee.info.nodes.of(ast.Assign):
            match statement.targets:
                case [ast.Name(id=name)]:
                    found.setdefault(name, statement.value)
        return found
