"""Reads specs from expressions: literals, sizes, and the tensors that torch's functions make.

Follows names that a function assigns once before. Nothing is run.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flake8_torchperf.runtime.confirm.specs.input_specs import (
    InputSpec,
    fixed,
    mapping,
    tensor,
    value,
)

_DEPTH = 12
# Sizes that a test would not make, and that an input here must not have either.
_MOST_NUMBERS = 2_000_000
_FLOATS = frozenset(("randn", "rand", "zeros", "ones", "empty", "full", "normal"))
_INTS = frozenset(("randint", "arange", "randperm"))
_ALIKE = frozenset(("randn_like", "rand_like", "zeros_like", "ones_like", "empty_like",
                    "full_like"))  # fmt: skip
# Methods that keep a tensor's shape, and its kind of dtype.
_SAME = frozenset(("to", "cuda", "cpu", "float", "half", "double", "clone", "detach", "contiguous",
                   "requires_grad_", "abs", "exp", "softmax", "sigmoid"))  # fmt: skip
_KINDS = {"long": "int", "int": "int", "int64": "int", "int32": "int", "bool": "bool"}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class VisibleValues:
    """The assignments that are visible at a place: by name, in order of their lines."""

    bound: dict[str, list[tuple[int, ast.expr]]] = field(default_factory=dict)
    outer: VisibleValues | None = None
    line: int = 1 << 60
    imports: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_module(cls, tree: ast.Module) -> VisibleValues:
        """Return the names that a module's top level binds."""
        return cls(_bound(tree.body), imports=_imports(tree))

    def inside(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> VisibleValues:
        """Return the names that a function binds, defaults of its parameters too."""
        bound = _bound(list(ast.walk(function)))
        ordinary = [*function.args.posonlyargs, *function.args.args]
        defaults = function.args.defaults
        for arg, default in zip(ordinary[len(ordinary) - len(defaults) :], defaults, strict=True):
            bound.setdefault(arg.arg, []).insert(0, (0, default))
        return VisibleValues(bound, self)

    def until(self, line: int) -> VisibleValues:
        """Return the same names, as they are bound before a line."""
        return VisibleValues(self.bound, self.outer, line, self.imports)

    def value(self, node: ast.expr, depth: int = 0) -> ast.expr:
        """Return the expression that a name stands for, or the node itself."""
        if not isinstance(node, ast.Name) or depth > _DEPTH:
            return node
        for line, bound in reversed(self.bound.get(node.id, [])):
            if line < self.line and not (isinstance(bound, ast.Name) and bound.id == node.id):
                return self.value(bound, depth + 1)
        return self.outer.value(node, depth + 1) if self.outer is not None else node

    def arguments(self, call: ast.Call, parameters: Sequence[str]) -> dict[str, InputSpec]:
        """Return the specs of a call's arguments that can be read, by parameter."""
        found: dict[str, InputSpec] = {}
        pairs = [*zip(parameters, call.args, strict=False)]
        pairs += [(one.arg, one.value) for one in call.keywords if one.arg is not None]
        for name, node in pairs:
            if isinstance(node, ast.Starred):
                break
            spec = self.spec(node)
            if spec is not None:
                found[name] = spec
        return found

    def number(self, node: ast.expr, depth: int = 0) -> int | float | None:
        """Return the number that an expression stands for; None if that cannot be read."""
        if depth > _DEPTH:
            return None
        match self.value(node):
            case ast.Constant(value=int() | float() as found):
                return found
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                positive = self.number(operand, depth + 1)
                return None if positive is None else -positive
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                one, other = self.number(left, depth + 1), self.number(right, depth + 1)
                if one is None or other is None or (other == 0 and type(op) in _DIVISIONS):
                    return None
                return _OPERATORS[type(op)](one, other)  # type: ignore[no-any-return]
            case ast.Call(func=ast.Name(id="int" | "float"), args=[inner]):
                return self.number(inner, depth + 1)
        return None

    def spec(self, node: ast.expr, depth: int = 0) -> InputSpec | None:
        """Return the spec of an expression's value; None if it cannot be read."""
        if depth > _DEPTH:
            return None
        number = self.number(node)
        if number is not None:
            return value(number)
        match self.value(node):
            case ast.Constant(value=str() | bool() | None as literal):
                return value(literal)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) as made:
                specs = [self.spec(one, depth + 1) for one in parts]
                form = "list" if isinstance(made, ast.List) else "tuple"
                known = [one for one in specs if one is not None]
                return fixed(known, form) if len(known) == len(specs) else None
            case ast.Dict(keys=keys, values=values):
                return self._mapping(keys, values, depth)
            case ast.Compare(left=left):
                found = self.spec(left, depth + 1)
                return {**found, "dtype": "bool"} if _is_tensor(found) and found else None
            case ast.BinOp(left=left, right=right):
                sides = (self.spec(left, depth + 1), self.spec(right, depth + 1))
                return next((one for one in sides if _is_tensor(one)), None)
            case ast.Call() as call:
                return self._called(call, depth)
        return None

    def _mapping(
        self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], depth: int
    ) -> InputSpec | None:
        found: dict[str, InputSpec] = {}
        for key, one in zip(keys, values, strict=True):
            spec = self.spec(one, depth + 1)
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or spec is None:
                return None
            found[key.value] = spec
        return mapping(found)

    def _called(self, call: ast.Call, depth: int) -> InputSpec | None:
        match call.func:
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                return self._made(name, call, depth)
            case ast.Attribute(value=base, attr=name):
                found = self.spec(base, depth + 1)
                if _is_tensor(found) and found:
                    return self._method(found, name, call)
        return self._instance(call, depth)

    def _instance(self, call: ast.Call, depth: int) -> InputSpec | None:
        """Return the object of an imported class, if all arguments can be read."""
        name = self._imported(call.func)
        if not name or not name.rpartition(".")[2][:1].isupper():
            return None
        arguments = [self.spec(one, depth + 1) for one in call.args]
        named = {one.arg: self.spec(one.value, depth + 1) for one in call.keywords if one.arg}
        if None in arguments or None in named.values() or len(named) < len(call.keywords):
            return None
        return {"kind": "instance", "name": name, "arguments": arguments, "named": named}

    def _imported(self, node: ast.expr) -> str:
        """Return the dotted name of what an import binds; "" for anything else."""
        match node:
            case ast.Attribute(value=base, attr=attr):
                found = self._imported(base)
                return f"{found}.{attr}" if found else ""
            case ast.Name(id=name):
                if name in self.imports:
                    return self.imports[name]
                return self.outer._imported(node) if self.outer is not None else ""
        return ""

    def _made(self, name: str, call: ast.Call, depth: int) -> InputSpec | None:
        named = {one.arg: one.value for one in call.keywords}
        if name in _ALIKE and call.args:
            found = self.spec(call.args[0], depth + 1)
            return found if _is_tensor(found) else None
        shape: list[int] | None = None
        if name in _FLOATS:
            sizes = call.args[:1] if name == "full" else call.args
            shape = self._sizes(sizes or [one for key, one in named.items() if key == "size"])
        elif name == "randint":
            sizes = [one for one in (*call.args, *named.values()) if self._is_sequence(one)]
            shape = self._sizes(sizes[:1])
        elif name in _INTS and call.args:
            shape = self._sizes(call.args[:1])
        elif name == "tensor" and call.args:
            return self._literal(call.args[0])
        if shape is None:
            return None
        return _sized(shape, _kind(named.get("dtype")) or ("int" if name in _INTS else "float"))

    def _is_sequence(self, node: ast.expr) -> bool:
        return isinstance(self.value(node), (ast.Tuple, ast.List))

    def _sizes(self, nodes: Sequence[ast.expr]) -> list[int] | None:
        """Return the sizes that arguments state, one by one or in one tuple."""
        if len(nodes) == 1 and isinstance(found := self.value(nodes[0]), (ast.Tuple, ast.List)):
            nodes = found.elts
        sizes = [self.number(one) for one in nodes]
        whole = [one for one in sizes if isinstance(one, int) and one >= 0]
        return whole if len(whole) == len(sizes) else None

    def _literal(self, node: ast.expr) -> InputSpec | None:
        """Return the tensor of nested lists of numbers."""
        shape: list[int] = []
        found = self.value(node)
        while isinstance(found, (ast.List, ast.Tuple)):
            shape.append(len(found.elts))
            if not found.elts:
                return _sized(shape, "float")
            found = self.value(found.elts[0])
        match found:
            case ast.Constant(value=bool()):
                return _sized(shape, "bool")
        number = self.number(found)
        return None if number is None else _sized(shape, "int" if type(number) is int else "float")

    def _method(self, spec: InputSpec, name: str, call: ast.Call) -> InputSpec | None:
        if name in _KINDS:
            return {**spec, "dtype": _KINDS[name]}
        if name in ("view", "reshape"):
            sizes = self._sizes(call.args)
            return None if sizes is None else {**spec, "shape": sizes}
        if name == "unsqueeze" and call.args:
            place = self.number(call.args[0])
            shape = list(spec["shape"])
            if isinstance(place, int) and -len(shape) - 1 <= place <= len(shape):
                shape.insert(place if place >= 0 else len(shape) + 1 + place, 1)
                return {**spec, "shape": shape}
            return None
        return spec if name in _SAME else None


_DIVISIONS = (ast.FloorDiv, ast.Div)


def _kind(node: ast.expr | None) -> str:
    return _KINDS.get(node.attr, "float") if isinstance(node, ast.Attribute) else ""


def _sized(shape: list[int], dtype: str) -> InputSpec | None:
    count = 1
    for one in shape:
        count *= one
    return tensor(tuple(shape), dtype) if count <= _MOST_NUMBERS else None


def _is_tensor(spec: InputSpec | None) -> bool:
    return spec is not None and spec["kind"] == "tensor"


def _bound(nodes: Sequence[ast.AST]) -> dict[str, list[tuple[int, ast.expr]]]:
    """Return what names are bound to; a loop over a literal binds its first item."""
    found: dict[str, list[tuple[int, ast.expr]]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=given):
                for target in targets:
                    for name, part in _pairs(target, given):
                        found.setdefault(name, []).append((node.lineno, part))
            case ast.For(
                target=target, iter=ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_])
            ):
                for name, part in _pairs(target, first):
                    found.setdefault(name, []).append((node.lineno, part))
    for bound in found.values():
        bound.sort(key=lambda pair: pair[0])
    return found


def _imports(tree: ast.Module) -> dict[str, str]:
    """Return the dotted names that imports bind, except relative ones."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for one in names:
                    whole = one.name if one.asname else one.name.partition(".")[0]
                    found[one.asname or whole] = whole
            case ast.ImportFrom(module=str() as module, names=names, level=0):
                found.update({one.asname or one.name: f"{module}.{one.name}" for one in names})
    return found


def _pairs(target: ast.expr, given: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, given:
        case ast.Name(id=name), _:
            yield name, given
        case (ast.Tuple(elts=targets), ast.Tuple(elts=parts) | ast.List(elts=parts)):
            for one, part in zip(targets, parts, strict=False):
                yield from _pairs(one, part)
