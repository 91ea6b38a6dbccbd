"""Losses that a function runs ``backward()`` on and returns with their graph."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.guards import gradients_off
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.names import is_name
from flake8_torchperf.syntax.traversal import inside
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.values import ClassValue, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionInfo

# The methods that run backward.
BACKWARD_CALLS = methods_of("runs-backward")
# Options of backward that keep the graph for another use.
GRAPH_KEEPING = ("retain_graph", "create_graph")
# By the key of a function: the paths of losses in its result, "" for the result itself.
RETURNED: Cache[str, frozenset[str]] = Cache("losses that functions hand back")


def handed(path: str, loop: ast.AST, ctx: Context) -> bool:
    """True if a call in the loop returns this loss after running backward on it."""
    root = path.partition(".")[0].partition("[")[0]
    for node in inside(loop, ast.Assign):
        if not isinstance(node.value, ast.Call):
            continue
        target = node.targets[0]
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if not any(isinstance(name, ast.Name) and name.id == root for name in names):
            continue
        info = _called(node.value.func, ctx)
        if info is None or BACKWARD_CALLS.isdisjoint(info.nodes.words()):
            continue
        if any(path in _assigned(target, suffix) for suffix in _losses(info, ctx)):
            return True
    return False


def _losses(info: FunctionInfo, ctx: Context) -> frozenset[str]:
    return RETURNED.kept(ctx.analysis, info.key, lambda: frozenset(_returned(info, ctx)))


def _called(func: ast.expr, ctx: Context) -> FunctionInfo | None:
    """Return the function that a name, an imported path or a method of ``self`` refers to."""
    if isinstance(func, ast.Attribute) and is_name(func.value, ctx.self_name) and ctx.owner:
        method = find_method(ctx.owner, func.attr, ctx.analysis)
        return None if method is None else method.info
    if isinstance(func, ast.Name):
        found = ctx.analysis.lookup(ctx.module, func.id)
    else:
        found = ctx.analysis.external(ctx.module.qualify(func))
    return found.info if isinstance(found, Function) else None


def _assigned(target: ast.expr, suffix: str) -> set[str]:
    """Return the path that one part of a call's result is assigned to."""
    if isinstance(target, (ast.Tuple, ast.List)):
        place, _, rest = suffix.removeprefix("[").partition("]")
        if not suffix.startswith("[") or not place.isdigit() or int(place) >= len(target.elts):
            return set()
        path = path_of(target.elts[int(place)])
        return set() if path is None else {path + rest}
    path = path_of(target)
    return set() if path is None else {path + suffix}


def _returned(info: FunctionInfo, ctx: Context) -> Iterator[str]:
    """Yield the paths of losses in a function's result, if it always runs backward on them."""
    if any(gradients_off(decorator, info.module) for decorator in info.tree.decorator_list):
        return
    through = {path for statement in info.node.body for path in _used_up(statement)}
    results = [node.value for node in info.nodes.of(ast.Return)]
    if not through or len(results) != 1 or results[0] is None:
        return
    for node in info.nodes.of(ast.Assign):
        if any(path_of(target) in through for target in node.targets) and not _is_made(node.value):
            return
    yield from _paths(results[0], through, info, ctx)


def _is_made(value: ast.expr) -> bool:
    """True if the value keeps its graph: it contains no ``detach()``, ``item()`` or ``data``."""
    parts = (part for part in ast.walk(value) if isinstance(part, ast.Attribute))
    return all(part.attr not in methods_of("cuts-gradients") for part in parts)


def _used_up(statement: ast.stmt) -> Iterator[str]:
    """Yield the paths that a backward call starts from: ``scaler.scale(loss).backward()``."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name)) as call):
            if name not in BACKWARD_CALLS or any(
                keyword.arg in GRAPH_KEEPING for keyword in call.keywords
            ):
                return
            for root in (owner, *call.args):
                given = root.args[0] if isinstance(root, ast.Call) and root.args else root
                path = path_of(given)
                if path is not None:
                    yield path


def _paths(value: ast.expr, through: set[str], info: FunctionInfo, ctx: Context) -> Iterator[str]:
    path = path_of(value)
    if path is not None:
        for one in through:
            rest = one.removeprefix(path)
            if one.startswith(path) and (not rest or rest[0] in ".["):
                yield rest
        return
    match value:
        case ast.Tuple(elts=elements):
            for place, element in enumerate(elements):
                yield from (f"[{place}]{p}" for p in _paths(element, through, info, ctx))
        case ast.Dict(keys=keys, values=values):
            for key, held in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant):
                    inside = _paths(held, through, info, ctx)
                    yield from (f"[{key.value!r}]{p}" for p in inside)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            made = ctx.analysis.lookup(info.module, name)
            fields = list(made.info.annotations) if isinstance(made, ClassValue) else []
            for field, given in zip(fields, args, strict=False):
                yield from (f".{field}{p}" for p in _paths(given, through, info, ctx))
            for keyword in keywords if fields else ():
                if keyword.arg in fields:
                    inside = _paths(keyword.value, through, info, ctx)
                    yield from (f".{keyword.arg}{p}" for p in inside)
