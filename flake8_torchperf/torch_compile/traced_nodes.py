"""The functions and nodes that `torch.compile` meets when it traces."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from flake8_torchperf.syntax.compile_guards import guarded, leaves
from flake8_torchperf.syntax.traversal import SCOPES, children, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.program.outlines.outlining import Callable_
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# Decorators that keep the compiler from tracing a function.
NOT_TRACED = frozenset((
    "disable", "_disable_dynamo", "allow_in_graph", "nonstrict_trace", "assume_constant_result",
    "substitute_in_graph", "custom_op", "triton_op", "disallow_in_graph", "leaf_function",
    "register_fake", "script", "jit", "autotune", "heuristics", "kernel", "register_kernel",
    "contextmanager", "asynccontextmanager", "skip",
))  # fmt: skip


def not_traced(node: Callable_, module: ModuleMap) -> bool:
    """True if a decorator keeps the compiler out of this function."""
    if isinstance(node, ast.Lambda):
        return False
    for decorator in node.decorator_list:
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        if module.qualify(inner).rpartition(".")[2] in NOT_TRACED:
            return True
    return False


def is_entry(info: FunctionInfo) -> bool:
    """True for the ``forward`` of a module, and for the ``__call__`` of a class that has one."""
    owner = info.owner
    if owner is None or not owner.bases or info.name not in ("forward", "__call__"):
        return False
    is_function = any(base.rpartition(".")[2] == "Function" for base in owner.bases)
    return "forward" in owner.methods and not is_function  # autograd's ``forward`` is no module's


def body_of(node: Callable_) -> list[ast.AST]:
    """Return the statements of a function, or the expression of a lambda."""
    return [node.body] if isinstance(node, ast.Lambda) else list(node.body)


def traced(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield every node that the compiler traces, without code that a guard excludes.

    Nested functions and lambdas are included, but not their bodies.
    """
    first = list(nodes)
    answer = _answers(first).get
    waiting = _met(first, answer)
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, (ast.If, ast.IfExp)):
            side = guarded(node.test, answer)
            if side is not None:
                kept = node.body if side else node.orelse
                waiting.extend(reversed(_met(kept, answer) if isinstance(kept, list) else [kept]))
                continue
        if isinstance(node, (ast.Raise, ast.ExceptHandler)):
            continue
        waiting.extend(reversed(_below(node, answer)))


def _below(node: ast.AST, answer: Callable[[str], bool | None]) -> list[ast.AST]:
    """Return the children of a node, without the statements of its blocks that are not traced."""
    found = children(node)
    for block in (getattr(node, part, None) for part in BLOCKS):
        if isinstance(block, list):
            left = set(map(id, block[len(_met(block, answer)) :]))
            found = [one for one in found if id(one) not in left] if left else found
    return found


BLOCKS = ("body", "orelse", "finalbody")


def _met(block: list[Any], answer: Callable[[str], bool | None]) -> list[ast.AST]:
    """Return the statements of a block up to ``if is_compiling(): return``."""
    for place, statement in enumerate(block):
        if isinstance(statement, ast.If) and leaves(statement, answer):
            return block[: place + 1]
    return block


def _answers(nodes: list[ast.AST]) -> dict[str, bool]:
    """Return the values in compiled code of names that are bound once: ``c = is_compiling()``."""
    bound: set[str] = set()
    found: dict[str, bool] = {}
    for node in walk(nodes):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                side = guarded(value)
                if side is not None:
                    found[name] = side
            case ast.Name(id=name, ctx=ast.Store()):
                if name in bound:
                    found.pop(name, None)
                bound.add(name)
    return found
