"""Blocks of code that torch records as a graph, and the functions that a recording leaves out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# Calls whose result records its block, and classes whose objects do: torch.accelerator.Graph, since
# torch 2.11, and breakable-cuda-graphs 0.1.0, which records several graphs in a row.
_CONTEXTS = frozenset(("torch.cuda.graph", "breakable_cuda_graphs.breakable_graph"))
_GRAPHS = frozenset(("torch.accelerator.Graph",))
# The decorator of breakable-cuda-graphs: the recording ends, the function runs, another one begins.
_LEFT_OUT = "breakable_cuda_graphs.no_graph"
# A function that has torch record a graph contains one of these names, or a block of an object.
_RECORDERS = frozenset(("graph", "breakable_graph", "make_graphed_callables", "compile"))


def recording_blocks(info: FunctionInfo) -> Iterator[ast.With | ast.AsyncWith]:
    """Yield the blocks of a function that torch records: ``with torch.cuda.graph(g):``."""
    for block in info.nodes.of_any(ast.With, ast.AsyncWith):
        assert isinstance(block, (ast.With, ast.AsyncWith))
        if any(_records(one.context_expr, info) for one in block.items):
            yield block


def may_record(info: FunctionInfo) -> bool:
    """True if a function may have torch record a graph."""
    return not _RECORDERS.isdisjoint(info.nodes.words()) or any(
        not isinstance(one.context_expr, ast.Call) or _is_graph(one.context_expr, info)
        for block in info.nodes.of_any(ast.With, ast.AsyncWith)
        for one in block.items
    )


def is_left_out(info: FunctionInfo) -> bool:
    """True for a function that runs between two recordings and not in one."""
    return _LEFT_OUT in info.decorators


def is_nested_left_out(node: ast.AST, module: ModuleMap) -> bool:
    """True for a nested function that runs between two recordings and not in one."""
    listed: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    bare = (one.func if isinstance(one, ast.Call) else one for one in listed)
    return any(module.qualify(one) == _LEFT_OUT for one in bare)


def _records(entered: ast.expr, info: FunctionInfo) -> bool:
    """True if entering an expression's value begins a recording."""
    match entered:
        case ast.Call(func=func):
            return info.module.qualify(func) in _CONTEXTS or _is_graph(entered, info)
        case ast.Name(id=name):
            given = _assigned(info, name) or info.module.constants.get(name, [])
            return any(_is_graph(one, info) for one in given) or _is_annotated(info, name)
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if info.owner is not None:
            methods = info.owner.methods.values()
            given = [one for method in methods for one in _assigned(method, f"self.{name}")]
            return any(_is_graph(one, info) for one in given)
    return False


def _is_graph(made: ast.expr, info: FunctionInfo) -> bool:
    return isinstance(made, ast.Call) and info.module.qualify(made.func) in _GRAPHS


def _assigned(info: FunctionInfo, name: str) -> list[ast.expr]:
    """Return the values that a function assigns to a name, or to an attribute of ``self``."""
    found: list[ast.expr] = []
    for node in info.nodes.of_any(ast.Assign, ast.AnnAssign):
        assert isinstance(node, (ast.Assign, ast.AnnAssign))
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None and any(ast.unparse(one) == name for one in targets):
            found.append(node.value)
    return found


def _is_annotated(info: FunctionInfo, name: str) -> bool:
    given = info.tree.args
    for one in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if one.arg == name and one.annotation is not None:
            return info.module.qualify(one.annotation) in _GRAPHS
    return False
