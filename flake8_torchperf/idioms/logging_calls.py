"""Values read only to be logged: expressions whose value goes to a logging call and nowhere else.

Values are followed within one function: into arguments, texts and dicts, and through names that are
used for nothing else.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.logging_calls import logs
from flake8_torchperf.syntax.traversal import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def logged(roots: Sequence[ast.AST], qualify: Callable[[ast.expr], str]) -> set[int]:
    """Return the identities of the nodes that are logged, including the logging calls.

    ``roots`` are a function, or the statements of a module; a module's names are not followed,
    because other modules may read them.
    """
    nodes = walk(roots)
    found: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and _logs(node.func, qualify):
            found.add(id(node))
            _add(node.args, found)
            _add([keyword.value for keyword in node.keywords], found)
    if found and len(roots) == 1 and isinstance(roots[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        _follow_names(nodes, found)
    return found


def _logs(called: ast.expr, qualify: Callable[[ast.expr], str]) -> bool:
    method = called.attr if isinstance(called, ast.Attribute) else ""
    return logs(qualify(called), method)


def _add(expressions: Sequence[ast.AST], found: set[int]) -> None:
    found.update([id(node) for node in walk(expressions)])


def _follow_names(nodes: Sequence[ast.AST], found: set[int]) -> None:
    """Add the values bound to names, or to keys of their values, that are only logged."""
    bound: dict[str, list[ast.AST]] = {}
    keyed: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if isinstance(target, ast.Subscript):
            target = target.value
            keyed.add(id(target))
        if isinstance(target, ast.Name):
            bound.setdefault(target.id, []).append(value)
    uses: dict[str, list[int]] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in keyed:
            uses.setdefault(node.id, []).append(id(node))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                bound.pop(name, None)
    while True:
        names = [name for name in bound if name in uses and found.issuperset(uses[name])]
        if not names:
            return
        for name in names:
            _add(bound.pop(name), found)
