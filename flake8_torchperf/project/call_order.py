"""The order in which functions are interpreted: callers before the functions they call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.project.module_index import FunctionInfo


def callers_first(functions: Iterable[FunctionInfo]) -> tuple[FunctionInfo, ...]:
    """Return the functions, callers first, depth-first over calls by name; cycles are cut."""
    ordered = list(functions)
    by_name: dict[str, list[FunctionInfo]] = {}
    for info in ordered:
        by_name.setdefault(info.name, []).append(info)
    done: list[FunctionInfo] = []
    state: dict[int, bool] = {}
    for info in ordered:
        _visit(info, by_name, state, done)
    return tuple(reversed(done))


def _visit(
    start: FunctionInfo,
    by_name: dict[str, list[FunctionInfo]],
    state: dict[int, bool],
    done: list[FunctionInfo],
) -> None:
    """Append a function to ``done`` after all functions that it calls, without recursion."""
    waiting: list[tuple[FunctionInfo, bool]] = [(start, False)]
    while waiting:
        info, left = waiting.pop()
        if left:
            done.append(info)
            continue
        if id(info) in state:
            continue
        state[id(info)] = True
        waiting.append((info, True))
        for name in sorted(_called(info)):
            waiting.extend((callee, False) for callee in by_name.get(name, ()))


def _called(info: FunctionInfo) -> set[str]:
    names: set[str] = set()
    for call in info.nodes.of(ast.Call):
        if isinstance(call.func, ast.Name):
            names.add(call.func.id)
        elif isinstance(call.func, ast.Attribute):
            names.add(call.func.attr)
    return names
