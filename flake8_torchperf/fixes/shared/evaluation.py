"""Decides whether an expression is always evaluated, and whether it is used only as a condition.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import FUNCTIONS

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

# Nodes that may skip a part of themselves, or evaluate it more than once.
_LAZY = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp,
         ast.GeneratorExp, *FUNCTIONS)  # fmt: skip


def is_lazy(place: FixPlace, node: ast.AST, statement: ast.stmt) -> bool:
    """True if a statement may skip an expression in it, or evaluate it several times."""
    here = place.around.parent(node)
    while here is not None and here is not statement:
        if isinstance(here, _LAZY):
            return True
        here = place.around.parent(here)
    return False


def is_condition(place: FixPlace, node: ast.expr) -> bool:
    """True if only the truth of an expression matters, so that a tensor serves as well."""
    here: ast.AST = node
    parent = place.around.parent(here)
    while isinstance(parent, ast.BoolOp) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    ):
        here, parent = parent, place.around.parent(parent)
    match parent:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return test is here
        case ast.While(test=test):
            return test is here
        case ast.comprehension(ifs=ifs):
            return any(one is here for one in ifs)
    return False
