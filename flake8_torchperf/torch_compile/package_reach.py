"""The functions of a module that compiled code in other modules reaches through calls.

The calls are those of `program/`; a call counts if it leads to the function for certain and stands
in code that the compiler traces.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.program.running import MAX_ON_THE_WAY, Program
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.whole_modules import noted_module
from flake8_torchperf.torch_compile.compile_calls import CompileSettings
from flake8_torchperf.torch_compile.compiled_code import Compilation
from flake8_torchperf.torch_compile.traced_nodes import body_of, is_entry, not_traced, traced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.program.outlines.outlining import Callable_
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.project.resolver import Project

    Place = tuple[int, int]


class PackageReach:
    """Finds what compiled code reaches where each ``forward`` of a module counts as compiled."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._program = Program(project)
        self._places: dict[ast.AST, frozenset[Place]] = {}
        # The entry that leads to a function, by the function's key; "" if none does.
        self._known: dict[str, str] = {}

    def compilation(self, info: FunctionInfo) -> Compilation | None:
        """Return why compiled code reaches a function of the linted module; None if none does."""
        entry = info.qualname if info.name == "__call__" and is_entry(info) else self._entry(info)
        if not entry:
            return None
        return Compilation(
            f"of {info.name}, called by the compiled {entry}", CompileSettings(), entry
        )

    def _entry(self, start: FunctionInfo) -> str:
        """Return the ``forward`` that leads to a function through traced code; "" if none does."""
        seen = {start.key}
        waiting = [start]
        while waiting and len(seen) <= MAX_ON_THE_WAY:
            for caller in self._callers(waiting.pop(0)):
                found = caller.qualname if is_entry(caller) else self._known.get(caller.key)
                if found:
                    self._known[start.key] = found
                    return found
                if found is None and caller.key not in seen:
                    seen.add(caller.key)
                    waiting.append(caller)
        if len(seen) <= MAX_ON_THE_WAY:
            self._known.update(dict.fromkeys(seen, ""))
        return ""

    def _callers(self, info: FunctionInfo) -> Iterator[FunctionInfo]:
        """Yield the functions that the compiler traces up to a call of a function."""
        for run in self._program.runs_of(info).outside_tests:
            if not run.is_sure:
                continue
            caller = function_at(noted_module(run.path, self._project), run.line)
            if caller is None or not_traced(caller.node, caller.module):
                continue
            if caller.node not in self._places:
                self._places[caller.node] = frozenset(_traced_places(caller.node))
            if (run.line, run.column) in self._places[caller.node]:
                yield caller


def _traced_places(function: Callable_) -> Iterator[Place]:
    """Yield where nodes begin that the compiler traces, those of nested functions included."""
    waiting = body_of(function)
    while waiting:
        nested: list[ast.AST] = []
        for node in traced(waiting):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                nested += body_of(node)
            if isinstance(node, (ast.expr, ast.stmt)):
                yield node.lineno, node.col_offset
        waiting = nested
