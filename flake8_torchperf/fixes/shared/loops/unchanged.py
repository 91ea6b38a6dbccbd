"""The changes that a loop makes, and the expressions that each of its rounds evaluates.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.code import names_in, written_by
from flake8_torchperf.fixes.shared.effects import is_pure
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.names import given_to

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings


@dataclass(frozen=True, slots=True)
class LoopWrites:
    """The names that a loop binds, whose tensors it writes into, and that it gives to calls.

    ``given`` holds the arguments of calls that may do more than compute a value.
    """

    bound: frozenset[str]
    written: frozenset[str]
    given: frozenset[str]


def changes_of(loop: ast.For, around: Surroundings) -> LoopWrites:
    """Return what a loop changes; each loop is looked at once."""
    known = around.known(_looked_at)
    if id(loop) not in known:
        nodes = [node for one in loop.body for node in ast.walk(one)]
        known[id(loop)] = LoopWrites(
            all_bound_by([loop.target, *loop.body]),
            frozenset(name for node in nodes for name in _written(node, around)),
            frozenset(name for node in nodes for name in _given(node, around)),
        )
    return known[id(loop)]


def _looked_at(_around: Surroundings) -> dict[int, LoopWrites]:
    return {}


def is_unchanged(names: frozenset[str], loop: ast.For, around: Surroundings) -> bool:
    """True if no statement of a loop binds the names or writes into their tensors."""
    changes = changes_of(loop, around)
    return names.isdisjoint(changes.bound) and names.isdisjoint(changes.written)


def _written(node: ast.AST, around: Surroundings) -> frozenset[str]:
    """Return the names whose tensors a node writes into, as collectives do with their arguments."""
    written = written_by(node)
    if isinstance(node, ast.Call) and around.qualified(node.func).startswith("torch.distributed."):
        written |= names_in(node.args)
    return written


def _given(node: ast.AST, around: Surroundings) -> frozenset[str]:
    """Return the names that a call receives which may change them."""
    if not isinstance(node, ast.Call) or is_pure(ast.Call(node.func, [], node.keywords), around):
        return frozenset()
    given = given_to(node)
    return frozenset(one.id for one in given if isinstance(one, ast.Name))


def runs_always(place: FixPlace, node: ast.AST, loop: ast.For) -> bool:
    """True if each round evaluates an expression, unless it ends before."""
    inner: ast.AST = node
    here = place.around.parent(node)
    while here is not None and here is not loop:
        if isinstance(here, (ast.IfExp, ast.BoolOp, ast.Try, ast.Match, ast.While, ast.For)):
            return False
        if isinstance(here, ast.If) and inner is not here.test:
            return False
        inner, here = here, place.around.parent(here)
    return True
