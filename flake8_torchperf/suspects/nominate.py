"""Which functions of a file deserve a closer look: cheap, over-approximate, ast only.

Enters a module map; leaves the functions that hold anything a rule could object to. A function
is left out only where nothing in it can read a tensor or where no tensor can come into it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.suspects.modulemap import FunctionInfo, ModuleMap

# Methods that read, copy, wait or ask for a data-dependent shape, by name.
METHODS = {
    "item", "tolist", "cpu", "numpy", "nonzero", "unique", "unique_consecutive", "masked_select",
    "equal", "allclose", "is_nonzero", "synchronize", "barrier", "empty_cache", "bincount",
    "repeat_interleave", "argwhere", "to", "type", "cuda", "histogram", "histogramdd", "one_hot",
    "__bool__", "__int__", "__float__", "__index__", "where", "cat", "stack", "hstack", "vstack",
    "concat", "arange", "tensor", "as_tensor", "asarray", "array", "inv", "solve", "cholesky", "lstsq",
    "info", "debug", "warning", "error", "warn", "log", "format", "critical", "exception", "inverse",
    "pack_padded_sequence", "eigh", "eig", "svd", "det", "slogdet", "linspace", "full", "index_put_",
    "cholesky_inverse", "multinomial", "wait", "isclose",
}  # fmt: skip
NAMES = {
    "float", "int", "bool", "complex", "round", "max", "min", "sum", "any", "all", "sorted", "print",
    "str", "repr", "format", "range", "enumerate", "zip", "map", "filter", "list", "tuple", "set",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Suspects:
    """What the interpreter should look at."""

    functions: tuple[FunctionInfo, ...]
    module_level: bool

    def __bool__(self) -> bool:
        return bool(self.functions) or self.module_level


def nominate(module: ModuleMap) -> Suspects:
    """The suspect functions of a module, in the order of the file."""
    if not _uses_torch(module):
        return Suspects((), module_level=False)
    functions = tuple(info for info in module.defined if _suspect(info.node))
    level = [
        node
        for node in module.tree.body
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    return Suspects(functions, any(_suspect(node) for node in level))


def _uses_torch(module: ModuleMap) -> bool:
    return any("torch" in line for line in module.lines)


def _suspect(node: ast.AST) -> bool:
    return any(_objectionable(inner) for inner in ast.walk(node))


def _objectionable(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in NAMES
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in METHODS
        case (
            ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test)
        ):
            return _may_be_tensor(test)
        case ast.BoolOp(values=values):
            return any(_may_be_tensor(v) for v in values)
        case ast.comprehension(ifs=ifs):
            return True
        case ast.For() | ast.Subscript(slice=ast.Slice()) | ast.FormattedValue():
            return True
        case ast.Subscript(
            slice=ast.Compare() | ast.Name() | ast.UnaryOp() | ast.Call() | ast.Tuple()
        ):
            return True
    return False


def _may_be_tensor(test: ast.expr) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _may_be_tensor(inner)
        case ast.BoolOp(values=values):
            return any(_may_be_tensor(v) for v in values)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return False
        case ast.Call(func=ast.Name(id="isinstance" | "hasattr" | "callable" | "issubclass")):
            return False
        case ast.Constant():
            return False
        case ast.Compare(comparators=[ast.Constant(value=str() | None)]):
            return False
    return True
