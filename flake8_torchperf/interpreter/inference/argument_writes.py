"""The arguments that a call may write into."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.project.module_index import FunctionInfo
from flake8_torchperf.project.noted_writes import ANY
from flake8_torchperf.values.values import Function, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis


def may_fill(callee: Value, position: int, analysis: Analysis) -> bool:
    """True if a call may write into the tensor that it is given at a position.

    The body of a function of the project is searched. The function writes nothing into a parameter
    if it does nothing in place and passes the parameter only to torch's functions.
    """
    if not isinstance(callee, Function):
        return True
    info = callee.info
    parameters = [*info.tree.args.posonlyargs, *info.tree.args.args][callee.bound is not None :]
    if position >= len(parameters):
        return True
    filled = FILLED.kept(analysis, info.key, lambda: _filled(info))
    return ANY in filled or parameters[position].arg in filled


FILLED: Cache[str, frozenset[str]] = Cache("arguments written into")


def _filled(info: FunctionInfo) -> frozenset[str]:
    """Return the names that a function may write into; ``ANY`` where it does anything in place."""
    stores = any(isinstance(s.ctx, ast.Store) for s in info.nodes.of(ast.Subscript))
    if stores or info.nodes.of(ast.AugAssign):
        return frozenset((ANY,))
    found: set[str] = set()
    for call in info.nodes.of(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr[-1] == "_":
            return frozenset((ANY,))
        if not info.module.qualify(call.func).startswith("torch."):
            found.update(a.id for a in call.args if isinstance(a, ast.Name))
        given = (k.value for k in call.keywords)
        found.update(value.id for value in given if isinstance(value, ast.Name))
    return frozenset(found)
