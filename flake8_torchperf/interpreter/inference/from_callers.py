"""The type of a function's result by the use that its callers make of it.

``loss, logs = step(batch)`` above ``loss.backward()`` shows that the ``loss`` that ``step``
returns is a tensor. Callers are interpreted first.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.inference.usage import Use
from flake8_torchperf.interpreter.inference.usage_inference import USES, UsesOfNames, evidence_of
from flake8_torchperf.values.values import Function, Tensor, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.environments import Env

# By function and place among several results (-1: the only one): why the result is a tensor.
RETURNED: Cache[str, dict[int, str]] = Cache("results as callers use them")


def note_result(target: ast.expr, callee: Value, env: Env, analysis: Analysis) -> None:
    """Note which names that a call's result is assigned to are tensors by their use."""
    if not isinstance(callee, Function):
        return
    several = isinstance(target, (ast.Tuple, ast.List))
    places = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    for place, name in enumerate(places):
        value = env.get(name.id) if isinstance(name, ast.Name) else None
        if isinstance(value, Tensor) and value.reason.node is name:
            told = RETURNED.table(analysis).setdefault(callee.info.key, {})
            told.setdefault(place if several else -1, value.reason.fact)
            analysis.stack.shared += 1


def take_results(info: FunctionInfo, analysis: Analysis) -> None:
    """Add to the evidence of a function the use that its callers make of its results."""
    told = RETURNED.table(analysis).get(info.key)
    if not told:
        return
    names: dict[str, str] = {}
    for place, fact in told.items():
        returned = {_returned(node, place) for node in info.nodes.of(ast.Return)}
        name = returned.pop() if len(returned) == 1 else ""
        if name:
            names[name] = f"its caller: {fact}"
    if not names:
        return
    known = evidence_of(info.node, info.module, analysis)
    targets = dict(known.targets)
    for node in info.nodes.of(ast.Name):
        if isinstance(node.ctx, ast.Store) and node.id in names:
            use = targets.setdefault(id(node), Use())
            use.told = use.told or names[node.id]
    USES.table(analysis)[id(info.node)] = UsesOfNames(known.uses, targets)


def _returned(node: ast.Return, place: int) -> str:
    """Return the name that is returned at a place; "" if another expression is returned."""
    value = node.value
    if place >= 0:
        several = isinstance(value, ast.Tuple) and place < len(value.elts)
        value = value.elts[place] if several and isinstance(value, ast.Tuple) else None
    return value.id if isinstance(value, ast.Name) else ""
