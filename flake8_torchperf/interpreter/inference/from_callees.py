"""The type of a parameter by the functions of the project that it is passed to.

Only the annotations and the body of a callee count, not the functions that it calls in turn. So the
result does not depend on the order in which functions are analysed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.inference.usage_inference import evidence_of
from flake8_torchperf.interpreter.stated_types.annotations import annotated
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import UNKNOWN, Function, Reason, Strength, Tensor, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.inference.usage import Use
    from flake8_torchperf.project.module_index import FunctionInfo

# The most calls that are looked at.
MAX_CALLS = 8


def told_by_callees(use: Use, name: str, info: FunctionInfo, analysis: Analysis) -> Value:
    """Return a tensor if any function that a parameter is passed to takes one there."""
    if use.foreign or use.told:
        return UNKNOWN
    for func, place in use.given[:MAX_CALLS]:
        callee = _callee(func, info, analysis)
        taken = UNKNOWN if callee is None else _taken(callee, place, analysis)
        if callee is not None and isinstance(taken, Tensor):
            fact = f"`{name}` is passed to `{callee.qualname}`"
            return Tensor(Reason(fact, func, taken.reason, Strength.INFERRED), taken.dtype)
    return UNKNOWN


def _callee(func: ast.expr, info: FunctionInfo, analysis: Analysis) -> FunctionInfo | None:
    match func:
        case ast.Name(id=name):
            found = analysis.lookup(info.module, name)
        case ast.Attribute(attr=name) if info.owner is not None:
            method = find_method(info.owner, name, analysis)
            found = UNKNOWN if method is None else method
        case _:
            return None
    return found.info if isinstance(found, Function) else None


def _taken(callee: FunctionInfo, place: int | str, analysis: Analysis) -> Value:
    """Return the value that a function takes at a position or under a keyword, by its own code."""
    spec = callee.node.args
    ordinary = [*spec.posonlyargs, *spec.args]
    if callee.owner is not None and "staticmethod" not in callee.decorators:
        ordinary = ordinary[1:]
    if isinstance(place, int):
        found = ordinary[place] if place < len(ordinary) else None
    else:
        found = next((a for a in (*ordinary, *spec.kwonlyargs) if a.arg == place), None)
    if found is None:
        return UNKNOWN
    if found.annotation is not None:
        told = f"annotation of parameter `{found.arg}` of `{callee.qualname}`"
        reason = Reason(told, source=Source.PARAMETER_ANNOTATION)
        return annotated(found.annotation, callee.module, analysis, reason)
    return evidence_of(callee.node, callee.module, analysis).value_of(found.arg, None)
