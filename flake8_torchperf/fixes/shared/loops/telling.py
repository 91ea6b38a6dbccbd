"""Blocks that only report a condition: they log, count, raise or leave, and change no tensor.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.logging_calls import logs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.fixes.engine.surroundings import Surroundings


def only_tells(block: Sequence[ast.stmt], asked: frozenset[str], around: Surroundings) -> bool:
    """True if a block only reports or leaves, and binds none of the names in ``asked``."""
    return all(_tells(statement, asked, around) for statement in block)


def _tells(statement: ast.stmt, asked: frozenset[str], around: Surroundings) -> bool:
    match statement:
        case ast.Raise() | ast.Return() | ast.Break() | ast.Continue() | ast.Pass():
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
            return name not in asked
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.Constant()):
            return name not in asked
        case ast.If(body=body, orelse=orelse):
            return only_tells([*body, *orelse], asked, around)
        case ast.Expr(value=ast.Call() as call):
            return _logs(call, asked, around)
    return False


def _logs(call: ast.Call, asked: frozenset[str], around: Surroundings) -> bool:
    """True if a call logs, warns, or appends to a list that is not in ``asked``."""
    known = around.qualified(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if logs(known, method) or known == "warnings.warn":
        return True
    match call.func:
        case ast.Attribute(value=ast.Name(id=name), attr="append"):
            return name not in asked
    return False
