"""Whether a loop leaves a tensor as it is, and whether each round evaluates an expression.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.code import bound_by, names_in, writes_into

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings


def is_unchanged(names: frozenset[str], loop: ast.For, around: Surroundings) -> bool:
    """True if no statement of a loop binds the names or writes into their tensors.

    Collectives write into the tensors that they are given.
    """
    if names & bound_by([loop.target, *loop.body]):
        return False
    if any(writes_into(one, names) for one in loop.body):
        return False
    calls = (one for part in loop.body for one in ast.walk(part) if isinstance(one, ast.Call))
    return not any(
        around.qualified(call.func).startswith("torch.distributed.") and names & names_in(call.args)
        for call in calls
    )


def runs_always(place: Place, node: ast.AST, loop: ast.For) -> bool:
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
