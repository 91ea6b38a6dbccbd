"""Tests that ask for some steps: ``if self.step in milestones:``."""

from __future__ import annotations

import ast

from flake8_torchperf.knowledge.names import names_of
from flake8_torchperf.syntax.names import dotted_name

# Expressions that hold some steps; a call may return all of them, as ``range`` does.
_LISTED = (ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Set)


def asks_for_steps(test: ast.AST) -> bool:
    """True if a test asks if the count of steps is one of several, so that few steps pass it."""
    match test:
        case ast.Compare(
            left=ast.Name() | ast.Attribute() as count, ops=[ast.In()], comparators=[steps]
        ):
            last = dotted_name(count).rpartition(".")[2].rpartition("_")[2]
            return isinstance(steps, _LISTED) and last in names_of("step-counters")
    return False
