"""Sizes that come with the data: of a tensor that a function is given and answers in kind."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.triton_kernels import (
    COUNTING,
    KEEPING_FIRST,
    LIKE,
    ROW_MAKERS,
    SIZED,
)
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.syntax.traversal import walk

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import FunctionNode, ModuleMap

# How many assignments a size or a tensor is followed back through.
MAX_STEPS = 8
# A tensor of this many dimensions is a batch of sequences: its first two sizes vary.
BATCHED_SEQUENCES = 3
# Operators whose result varies as their left operand does.
VARYING = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


class Sizes:
    """The sizes in one function that vary with its arguments.

    An argument counts as data if the function returns it, or makes a tensor of its shape, or of
    its first size in front; a weight's sizes stay the same. In the ``forward`` of a module, all
    arguments are data.
    """

    def __init__(self, function: FunctionNode, module: ModuleMap, *, is_forward: bool) -> None:
        self._module = module
        self._nodes = walk([function])
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        self._parameters = {one.arg for one in parameters} - {"self", "ctx"}
        self._assigned: dict[str, list[tuple[ast.expr, int, int]]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)
        self._data = self._parameters if is_forward else self._answered()

    def owner(self, size: ast.expr) -> str:
        """Return the argument whose data a size is of; "" if it is none or not known."""
        found = self._owner(size, MAX_STEPS)
        return found if found in self._data else ""

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Note what a name is given: the value, and its position among how many parts (or 0)."""
        if isinstance(target, ast.Name):
            self._assigned.setdefault(target.id, []).append((value, 0, 0))
        elif isinstance(target, ast.Tuple):
            plain = not any(isinstance(one, ast.Starred) for one in target.elts)
            parts = value.elts if isinstance(value, ast.Tuple) else None
            for position, one in enumerate(target.elts):
                if parts is not None and len(parts) == len(target.elts):
                    self._bind(one, parts[position])
                elif isinstance(one, ast.Name) and (plain or position == 0):
                    count = len(target.elts) if plain else -1
                    self._assigned.setdefault(one.id, []).append((value, position, count))

    def _owner(self, size: ast.expr, steps: int) -> str:
        if steps <= 0:
            return ""
        match size:
            case ast.Name(id=name):
                return self._of_name(name, steps)
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, VARYING):
                found = self._owner(left, steps - 1)
                divides = isinstance(op, ast.FloorDiv)
                return found or ("" if divides else self._owner(right, steps - 1))
            case ast.Subscript(value=shape, slice=ast.Constant(value=0)):
                return self._shaped(shape, steps)
            case ast.Call(
                func=ast.Attribute(value=tensor, attr="size"), args=[ast.Constant(value=0)]
            ):
                return self._tensor(tensor, steps, whole=False)
            case ast.Call(func=ast.Attribute(value=tensor, attr=name), args=[], keywords=[]) if (
                name in methods_of("counts-elements")
            ):
                return self._tensor(tensor, steps, whole=True)
            case ast.Call(func=ast.Name(id="len"), args=[tensor]):
                return self._tensor(tensor, steps, whole=False)
            case ast.Call(func=func, args=[counted, *_]) if self._module.qualify(func) in COUNTING:
                return self._owner(counted, steps - 1)
        return ""

    def _of_name(self, name: str, steps: int) -> str:
        """Return the owner of a size by name, if each value that it is given is a size of data."""
        found = set()
        for value, position, count in self._assigned.get(name, ()):
            if count == 0:
                found.add(self._owner(value, steps - 1))
            elif position == 0 or (position == 1 and count == BATCHED_SEQUENCES):
                found.add(self._shaped(value, steps))
            else:
                found.add("")
        return found.pop() if len(found) == 1 else ""

    def _shaped(self, shape: ast.expr, steps: int) -> str:
        """Return the argument whose shape an expression is."""
        match shape:
            case ast.Attribute(value=tensor, attr="shape"):
                return self._tensor(tensor, steps, whole=False)
            case ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[], keywords=[]):
                return self._tensor(tensor, steps, whole=False)
            case ast.Name(id=name):
                values = self._assigned.get(name, ())
                if len(values) == 1 and values[0][1:] == (0, 0) and steps > 0:
                    return self._shaped(values[0][0], steps - 1)
        return ""

    def _tensor(self, tensor: ast.expr, steps: int, *, whole: bool) -> str:
        """Return the argument that a tensor is a view or a copy of, its first size in front.

        For the number of elements (``whole``), the order does not matter.
        """
        if steps <= 0:
            return ""
        match tensor:
            case ast.Name(id=name):
                return self._named(name, steps, whole=whole)
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if _keeps(
                tensor, whole=whole
            ):
                return self._tensor(inner, steps - 1, whole=whole)
        return ""

    def _named(self, name: str, steps: int, *, whole: bool) -> str:
        values = self._assigned.get(name, [])
        if name in self._parameters:
            # `x = x.contiguous()` is of the argument `x`
            same = all(not count and _is_of(one, name, whole=whole) for one, _, count in values)
            return name if same else ""
        if len(values) != 1 or values[0][2]:
            return ""
        return self._tensor(values[0][0], steps - 1, whole=whole)

    def _answered(self) -> set[str]:
        """Return the arguments that are returned, or that a new tensor has the first size of."""
        found: set[str] = set()
        for node in self._nodes:
            match node:
                case ast.Return(value=ast.Tuple(elts=parts)):
                    found |= {self._tensor(one, MAX_STEPS, whole=True) for one in parts}
                case ast.Return(value=ast.expr() as one):
                    found.add(self._tensor(one, MAX_STEPS, whole=True))
                case ast.Call(func=func, args=[first, *_]) if called_name(func) in LIKE:
                    found.add(self._tensor(first, MAX_STEPS, whole=True))
                case ast.Call(func=func, args=[first, *_]) if called_name(func) in SIZED:
                    sizes = first.elts if isinstance(first, (ast.Tuple, ast.List)) else [first]
                    found |= {self._owner(one, MAX_STEPS) for one in sizes[:1]}
        return found - {""}


def _keeps(call: ast.Call, *, whole: bool) -> bool:
    """True if a method's result has the elements of its tensor, the first size still in front."""
    name = called_name(call.func)
    if name in KEEPING_FIRST or name in ROW_MAKERS:
        return name not in ROW_MAKERS or whole or _makes_rows(call)
    if name in ("transpose", "swapaxes"):
        positions = [one.value for one in call.args if isinstance(one, ast.Constant)]
        return whole or (
            len(positions) == 2 and all(isinstance(p, int) and p > 0 for p in positions)
        )
    return whole and name in ("permute", "flatten", "t", "squeeze", "unsqueeze")


def _makes_rows(call: ast.Call) -> bool:
    """True for ``x.view(-1, d)``: the first size is what is left."""
    match call.args:
        case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)), *_]:
            return True
        case [ast.Tuple(elts=[ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)), *_])]:
            return True
    return False


def _is_of(value: ast.expr, name: str, *, whole: bool) -> bool:
    """True for a chain of methods that keep the tensor of that name."""
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and _keeps(value, whole=whole)
    ):
        value = value.func.value
    return isinstance(value, ast.Name) and value.id == name
