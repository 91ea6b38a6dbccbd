"""The functions of a module that compiled code of its project reaches through calls.

The calls are those of `program/`; a call counts if it leads to the function for certain and stands
in code that the compiler traces.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.running import MAX_ON_THE_WAY
from flake8_torchperf.torch_compile.compile_calls import CompileSettings
from flake8_torchperf.torch_compile.compiled_code import Compilation
from flake8_torchperf.torch_compile.traced_nodes import body_of, is_entry, not_traced, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.outlines.outlining import Callable_
    from flake8_torchperf.program.running import Program
    from flake8_torchperf.project.module_index import FunctionInfo

    Place = tuple[int, int]


class Entry(NamedTuple):
    """A function that is compiled itself: its qualified name, and the file that compiles it.

    ``home`` is "" where it is assumed to be compiled.
    """

    name: str
    home: str = ""
    settings: CompileSettings = CompileSettings()


def entry_assumed(info: FunctionInfo) -> Entry | None:
    """Return a function as an entry if it is one where each ``forward`` counts as compiled."""
    return Entry(info.qualname) if is_entry(info) else None


class PackageReach:
    """Finds the functions that compiled code reaches; ``entry_at`` tells those compiled."""

    def __init__(
        self,
        program: Program,
        entry_at: Callable[[FunctionInfo], Entry | None],
    ) -> None:
        self._program = program
        self._entry_at = entry_at
        self._places: dict[ast.AST, frozenset[Place]] = {}
        # The entry that leads to a function, by the function's key; None if none does.
        self._known: dict[str, Entry | None] = {}

    def compilation(self, info: FunctionInfo) -> Compilation | None:
        """Return why compiled code runs a function; None if none does, or it is kept out."""
        if not_traced(info.node, info.module):
            return None
        entry = self._entry_at(info)
        if entry is not None and entry.home:
            words = f"of {info.name}, compiled in {entry.home}"
            return Compilation(words, entry.settings, entry.name, is_entry=True)
        entry = entry or self._entry(info)
        if entry is None:
            return None
        words = f"of {info.name}, called by the compiled {entry.name}"
        return Compilation(words, entry.settings, entry.name)

    def _entry(self, start: FunctionInfo) -> Entry | None:
        """Return the entry that leads to a function through traced code; None if none does."""
        seen = {start.key}
        waiting = [start]
        while waiting and len(seen) <= MAX_ON_THE_WAY:
            for caller in self._callers(waiting.pop(0)):
                found = self._entry_at(caller) or self._known.get(caller.key)
                if found is not None:
                    self._known[start.key] = found
                    return found
                if caller.key not in seen and caller.key not in self._known:
                    seen.add(caller.key)
                    waiting.append(caller)
        if len(seen) <= MAX_ON_THE_WAY:
            self._known.update(dict.fromkeys(seen))
        return None

    def _callers(self, info: FunctionInfo) -> Iterator[FunctionInfo]:
        """Yield the functions that the compiler traces up to a call of a function."""
        for caller, run in self._program.sure_callers(info):
            if not_traced(caller.node, caller.module):
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
