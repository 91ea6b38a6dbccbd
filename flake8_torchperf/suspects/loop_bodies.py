"""The code that runs in the loops of a function, and whether a rule could object to it.

This module is used for functions that are cold outside their loops.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.nominate import (
    LOOP_NODES,
    measures,
    steps_by_index,
    suspect,
)
from flake8_torchperf.suspects.words import MOVE_CALLS, PER_PARAMETER
from flake8_torchperf.syntax.host_expressions import surely_host
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.syntax.traversal import COMPREHENSIONS, Nodes, walk

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from flake8_torchperf.suspects.nominate import Names

# Calls that run a function once per element.
REPEATING = {"map", "filter"}


def repeats(nodes: Nodes) -> bool:
    """True if the nodes hold a loop or a comprehension, or name a function that repeats others."""
    return bool(nodes.of_any(*LOOP_NODES)) or _maps(nodes)


def suspect_in_loops(hosts: Container[str], nodes: Nodes, names: Names) -> bool:
    """True if a rule could object to something that runs in a loop."""
    if _maps(nodes) or steps_by_index(nodes):
        return True
    if any(_head_repeats(loop, hosts) for loop in nodes.of_any(*LOOP_NODES)):
        return True
    inside = Nodes(_bodies(nodes))
    if suspect(inside, hosts, names):
        return True
    called = {called_name(node.func) for node in inside.of(ast.Call)}
    if not called.isdisjoint(PER_PARAMETER) or not called.isdisjoint(MOVE_CALLS):
        return True
    totals = any(isinstance(node.value, ast.BinOp) for node in inside.of(ast.Assign))
    return totals or bool(inside.of(ast.AugAssign))


def _maps(nodes: Nodes) -> bool:
    return not REPEATING.isdisjoint(nodes.words())


def _head_repeats(loop: ast.AST, hosts: Container[str]) -> bool:
    """True if a loop's head may read a tensor in each round, or counts positions."""
    if isinstance(loop, ast.While):
        return not surely_host(loop.test, hosts)
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        return measures(loop.iter)
    generators = loop.generators if isinstance(loop, COMPREHENSIONS) else []
    return any(not surely_host(test, hosts) for part in generators for test in part.ifs)


def _bodies(nodes: Nodes) -> list[ast.AST]:
    """Return the code that runs once per round; code of nested loops is not repeated."""
    found: list[ast.AST] = []
    seen: set[int] = set()
    for loop in (*nodes.of_any(ast.For, ast.AsyncFor, ast.While), *nodes.of_any(*COMPREHENSIONS)):
        if id(loop) not in seen:
            pieces = list(_body(loop))
            seen.update(map(id, walk(pieces)))
            found.extend(pieces)
    # A lambda runs where it is called, which may be in a loop.
    found.extend(one.body for one in nodes.of(ast.Lambda) if id(one) not in seen)
    return found


def _body(loop: ast.AST) -> Iterable[ast.AST]:
    if isinstance(loop, ast.While):
        yield loop.test
    if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        yield from loop.body
        return
    if isinstance(loop, ast.DictComp):
        yield loop.key
        yield loop.value
    elif isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield loop.elt
    if isinstance(loop, COMPREHENSIONS):
        for number, part in enumerate(loop.generators):
            yield from part.ifs
            if number:
                yield part.iter
                # The iteration itself is repeated too.
                yield ast.For(part.target, part.iter, [], [])
