"""The definitions around a line of a module; of an outline, no other is read."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from flake8_torchperf.project.module_index import FunctionInfo
from flake8_torchperf.project.stores.module_facts import once_per_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.project.module_index import ClassInfo, ModuleMap


def definition_at(module: ModuleMap, line: int) -> ClassInfo | FunctionInfo | None:
    """Return the function or class at module level of an outline whose lines hold a line.

    None for a line outside definitions, for one of a definition that another of its name replaces,
    and in a module that is no outline.
    """
    at = bisect_right(module.spans, line, key=lambda span: span.line) - 1
    if at < 0 or line >= module.spans[at].end:
        return None
    span = module.spans[at]
    found = (module.classes if span.is_class else module.functions).get(span.name)
    if found is None:
        return None
    return found if span.line <= found.tree.lineno < span.end else None


def function_at(module: ModuleMap, line: int) -> FunctionInfo | None:
    """Return the function or method whose lines, without decorators, hold a line.

    A function in a function is not listed by its module; the outer one is returned. Its body is not
    queried by that.
    """
    if not module.spans:
        return _holding(_by_line(module), line)
    around = definition_at(module, line)
    if around is None or isinstance(around, FunctionInfo):
        return None if around is None else _holding([around], line)
    return _holding(around.by_line, line)


@once_per_module
def _by_line(module: ModuleMap) -> list[FunctionInfo]:
    return sorted(module.defined, key=_first_line)


def _holding(functions: Sequence[FunctionInfo], line: int) -> FunctionInfo | None:
    """Return that of some functions, by their lines, which holds a line."""
    at = bisect_right(functions, line, key=_first_line) - 1
    if at < 0 or line > (functions[at].tree.end_lineno or line):
        return None
    return functions[at]


def _first_line(info: FunctionInfo) -> int:
    return info.tree.lineno
